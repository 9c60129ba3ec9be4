//! `/users/{id:1..50000}` and `{kind:a,b,c}`: requests that differ, written out before the run.
//!
//! A place is a name, a colon and a range or a list, in braces. Other braces stand for themselves: JSON is full of them.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// A text with places.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    /// Both ends included.
    Range(i64, i64),
    List(Vec<String>),
}

impl Template {
    /// # Errors
    /// Where a range is empty, or no range.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            let inside = rest[open + 1..].split_once('}');
            if let Some((place, after)) = inside.and_then(|(inside, after)| Some((place(inside)?, after))) {
                parts.extend([Part::Text(std::mem::take(&mut plain)), place?]);
                rest = after;
            } else {
                plain.push('{');
                rest = &rest[open + 1..];
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self { parts })
    }

    /// How many texts it stands for; saturating.
    pub fn variants(&self) -> u64 {
        let of = |part: &Part| match part {
            Part::Text(_) => 1,
            Part::Range(low, high) => high.abs_diff(*low).saturating_add(1),
            Part::List(items) => items.len() as u64,
        };
        self.parts.iter().map(of).fold(1, u64::saturating_mul)
    }

    /// One of them, each place drawn by itself.
    pub fn draw(&self, random: &mut StdRng) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Range(low, high) => text.push_str(&random.random_range(*low..=*high).to_string()),
                Part::List(items) => text.push_str(&items[random.random_range(0..items.len())]),
            }
        }
        text
    }
}

/// What stands in a pair of braces, where that is a place.
fn place(inside: &str) -> Option<Result<Part, String>> {
    let (name, values) = inside.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name || values.is_empty() {
        return None;
    }
    let range = values.split_once("..").and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    Some(match range {
        Some((low, high)) if low > high => Err(format!("the range {{{inside}}} is empty: write the lower end first")),
        Some((low, high)) => Ok(Part::Range(low, high)),
        None if values.contains("..") => Err(format!("{{{inside}}} is no range: write it like {{id:1..50000}}")),
        None => Ok(Part::List(values.split(',').map(str::to_owned).collect())),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng as _;

    use super::*;

    fn drawn(text: &str, count: usize) -> BTreeSet<String> {
        let (template, mut random) = (Template::parse(text).unwrap(), StdRng::seed_from_u64(1));
        (0..count).map(|_| template.draw(&mut random)).collect()
    }

    #[test]
    fn ranges_and_lists_reach_both_ends() {
        let all = drawn("/u/{id:-1..1}?k={kind:a,b c,}", 500);
        assert_eq!(all.len(), 9);
        assert!(all.contains("/u/-1?k=a") && all.contains("/u/1?k=b c") && all.contains("/u/0?k="));
        assert_eq!(Template::parse("{a:1..3}{b:x,y}").unwrap().variants(), 6);
        assert_eq!(Template::parse("{a:-9223372036854775808..9223372036854775807}").unwrap().variants(), u64::MAX);
    }

    #[test]
    fn other_braces_stand_for_themselves() {
        for text in [
            "",
            "/a",
            r#"{"a":1}"#,
            r#"{"a":{"b":[1,2]}}"#,
            "{id}",
            "{",
            "}",
            "{a:",
            "{:1..2}",
            "{a b:1}",
            "{{",
            "{a:}",
        ] {
            assert_eq!(drawn(text, 3), BTreeSet::from([text.to_owned()]), "{text}");
            assert_eq!(Template::parse(text).unwrap().variants(), 1, "{text}");
        }
        assert_eq!(drawn(r#"{"id":{id:7..7}}"#, 1), BTreeSet::from([r#"{"id":7}"#.to_owned()]));
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for wrong in ["/{id:5..1}", "/{id:1..}", "/{id: 1..3}", "/{id:1..99999999999999999999}", "{id:a..b}"] {
            let error = Template::parse(wrong).unwrap_err();
            assert!(error.contains("{id:"), "{error}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| Template::parse("{a:1..1000000}").unwrap().draw(&mut StdRng::seed_from_u64(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
