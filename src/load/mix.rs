//! Several requests in one run: a file of targets with weights, and how often each is sent.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Request;
use super::template::Template;

/// Requests written out for a run that has variants: enough that no cache holds the answers, few enough for memory.
const WRITTEN_OUT: u64 = 16_384;

/// A request with places, and how often it is sent relative to the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Of all weights together, this part.
    pub weight: u32,
    /// Any method but CONNECT.
    pub method: String,
    /// Path and query.
    pub target: Template,
    /// Empty for none.
    pub body: Template,
}

/// The parts of a file: a line each, `[WEIGHT] METHOD TARGET [BODY]`; empty lines and those with `#` first are skipped.
///
/// # Errors
/// Names the line that cannot be read, and why.
pub fn parse_targets(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        parts.push(part(line).map_err(|why| format!("line {}: {why}", number + 1))?);
    }
    if parts.is_empty() {
        return Err("it names no target: write lines such as `3 GET /users/{id:1..50000}`".to_owned());
    }
    Ok(parts)
}

/// The first word, and what follows its blanks.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn part(line: &str) -> Result<Part, String> {
    let (first, rest) = word(line);
    let (weight, line) = if first.bytes().all(|byte| byte.is_ascii_digit()) {
        let weight = first.parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
        (weight.ok_or_else(|| format!("the weight {first} is not 1 to 1000000"))?, rest)
    } else {
        (1, line)
    };
    let (method, rest) = word(line);
    let (target, body) = word(rest);
    if !target.starts_with('/') {
        return Err(format!(
            "{method:?} is read as the method and {target:?} is no path that begins with /: \
             write [WEIGHT] METHOD TARGET [BODY], with a whole number for the weight"
        ));
    }
    Ok(Part { weight, method: method.to_owned(), target: Template::parse(target)?, body: Template::parse(body)? })
}

/// Writes the requests out in random order, as often as their weights say; a part without variants that stands alone
/// is written once. `headers` go with each of them.
pub fn write_out(parts: &[Part], headers: &[(String, String)], seed: u64) -> Vec<Request> {
    let mut random = StdRng::seed_from_u64(seed);
    let variants = |part: &Part| part.target.variants().saturating_mul(part.body.variants());
    let weights: u64 = parts.iter().map(|part| u64::from(part.weight)).sum();
    let is_plain = parts.len() == 1 && variants(&parts[0]) == 1;
    let count = if is_plain { 1 } else { WRITTEN_OUT };
    (0..count)
        .map(|_| {
            let mut place = random.random_range(0..weights);
            let part = parts.iter().find(|part| {
                let is_here = place < u64::from(part.weight);
                place = place.saturating_sub(u64::from(part.weight));
                is_here
            });
            let part = part.expect("the place is below the sum of the weights");
            Request {
                method: part.method.clone(),
                target: part.target.draw(&mut random),
                headers: headers.to_vec(),
                body: part.body.draw(&mut random).into_bytes(),
                expected: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_weights_and_bodies() {
        let text = "# a comment\n\n3 GET /users/{id:1..9}\nPOST /echo {\"n\":{n:1..2}} \n";
        let parts = parse_targets(text).unwrap();
        assert_eq!(parts.iter().map(|part| part.weight).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(parts.iter().map(|part| part.method.as_str()).collect::<Vec<_>>(), ["GET", "POST"]);
        assert_eq!((parts[0].target.variants(), parts[1].body.variants()), (9, 2));
    }

    #[test]
    fn weights_decide_how_often_each_is_sent() {
        let parts = parse_targets("3 GET /a\n1 POST /b x").unwrap();
        let written = write_out(&parts, &[("a".into(), "b".into())], 1);
        let share = written.iter().filter(|request| request.target == "/a").count() as f64 / written.len() as f64;
        assert!((share - 0.75).abs() < 0.02, "{share}");
        assert!(written.iter().all(|request| request.headers.len() == 1));
        assert!(written.iter().all(|request| request.body.is_empty() == (request.method == "GET")));
        assert_eq!(written, write_out(&parts, &[("a".into(), "b".into())], 1));
    }

    #[test]
    fn one_plain_request_is_written_once() {
        assert_eq!(write_out(&parse_targets("GET /").unwrap(), &[], 1).len(), 1);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (text, says) in [
            ("", "no target"),
            ("# x\n", "no target"),
            ("GET /\nGET", "line 2"),
            ("GET users", "begins with /"),
            ("GET   users", "\"users\""),
            ("0 GET /", "weight 0"),
            ("99999999999 GET /", "weight"),
            ("GET /{a:2..1}", "empty"),
        ] {
            let error = parse_targets(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
