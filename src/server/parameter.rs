//! Numbers in paths, query strings and tokens: decimal digits only, no sign, point, exponent, space or leading zero.

use std::borrow::Cow;

use super::error::{ApiError, FieldError};

/// Largest value of `int4`, the type of every id.
const MOST_ID: u32 = i32::MAX as u32;
const MOST_LIMIT: u32 = 100;
/// Most rounds of the `cpu` route: about 0.2 s of hashing.
const MOST_ROUNDS: u32 = 1_000_000;

/// An id, `1..=2147483647`.
pub(super) fn id(text: &str) -> Option<i32> {
    number(text, MOST_ID).and_then(|id| i32::try_from(id).ok())
}

/// `page` and `limit` of `GET /users`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// 1 for the first.
    pub(super) page: u32,
    /// Rows of a page.
    pub(super) limit: u32,
}

impl Page {
    /// Rows before this page.
    pub(super) fn offset(&self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.limit)
    }
}

/// Reads `page` and `limit`, each at most once; other keys are ignored.
pub(super) fn page(query: Option<&[u8]>) -> Result<Page, ApiError> {
    const PAGE_RULE: &str = "must be an integer from 1 to 2147483647, given once";
    const LIMIT_RULE: &str = "must be an integer from 1 to 100, given once";
    let [page, limit] = values(query, ["page", "limit"]);
    let page = page.or(1, MOST_ID);
    let limit = limit.or(20, MOST_LIMIT);
    if let (Some(page), Some(limit)) = (page, limit) {
        return Ok(Page { page, limit });
    }
    let wrong = [("page", page, PAGE_RULE), ("limit", limit, LIMIT_RULE)];
    let errors = wrong.into_iter().filter(|(_, value, _)| value.is_none());
    Err(ApiError::Unprocessable(errors.map(|(field, _, detail)| FieldError { field, detail }).collect()))
}

/// Reads `n` of `GET /cpu`, required.
pub(super) fn rounds(query: Option<&[u8]>) -> Result<u32, ApiError> {
    let [n] = values(query, ["n"]);
    match n {
        Value::Once(text) => number(&text, MOST_ROUNDS),
        Value::Absent | Value::Repeated => None,
    }
    .ok_or_else(|| ApiError::field("n", "must be an integer from 1 to 1000000, given once"))
}

enum Value<'q> {
    Absent,
    Once(Cow<'q, str>),
    Repeated,
}

impl Value<'_> {
    fn or(self, default: u32, most: u32) -> Option<u32> {
        match self {
            Self::Absent => Some(default),
            Self::Once(text) => number(&text, most),
            Self::Repeated => None,
        }
    }
}

fn values<'q, const N: usize>(query: Option<&'q [u8]>, keys: [&str; N]) -> [Value<'q>; N] {
    let mut values = [const { Value::Absent }; N];
    for (key, text) in form_urlencoded::parse(query.unwrap_or_default()) {
        if let Some(place) = keys.iter().position(|known| *known == key) {
            values[place] = match values[place] {
                Value::Absent => Value::Once(text),
                Value::Once(_) | Value::Repeated => Value::Repeated,
            };
        }
    }
    values
}

/// `1..=most` in strict digits.
fn number(text: &str, most: u32) -> Option<u32> {
    /// Digits of the largest value there is, 2147483647.
    const MOST_DIGITS: usize = 10;
    let strict = !text.is_empty() && text.len() <= MOST_DIGITS && !text.starts_with('0');
    if !strict || !text.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|value| (1..=most).contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strict() {
        assert_eq!(id("1"), Some(1));
        assert_eq!(id("2147483647"), Some(i32::MAX));
        let forty = "9".repeat(40);
        for wrong in [
            "",
            "0",
            "-1",
            "+1",
            "01",
            "1.5",
            "1.0",
            "1e3",
            "0x10",
            " 1",
            "1 ",
            "abc",
            "2147483648",
            "4294967297",
            &forty,
            "١",
        ] {
            assert_eq!(id(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pages_have_defaults_and_bounds() {
        let of = |query: Option<&str>| page(query.map(str::as_bytes)).map(|p| (p.page, p.limit)).ok();
        assert_eq!(of(None), Some((1, 20)));
        assert_eq!(of(Some("")), Some((1, 20)));
        assert_eq!(of(Some("page=7&limit=20")), Some((7, 20)));
        assert_eq!(of(Some("limit=100&&x=1&x=2&page=2147483647")), Some((2_147_483_647, 100)));
        assert_eq!(of(Some("p%61ge=%37")), Some((7, 20)));
        for wrong in [
            "page=0",
            "page=",
            "page",
            "page=+1",
            "page=1&page=2",
            "limit=101",
            "limit=0",
            "page=2147483648",
            "limit=1e1",
        ] {
            assert_eq!(of(Some(wrong)), None, "{wrong}");
        }
        assert_eq!(of(Some("page[]=3")), Some((1, 20)));
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let Err(ApiError::Unprocessable(errors)) = page(Some(b"page=x&limit=x")) else { panic!("accepted") };
        assert_eq!(errors.iter().map(|e| e.field).collect::<Vec<_>>(), ["page", "limit"]);
    }

    #[test]
    fn rounds_are_required_and_bounded() {
        assert_eq!(rounds(Some(b"n=1000000")).ok(), Some(1_000_000));
        for wrong in [None, Some(""), Some("n=0"), Some("n=1000001"), Some("n=abc"), Some("n=1&n=1"), Some("n=-1")] {
            assert!(rounds(wrong.map(str::as_bytes)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_farthest_page_has_an_offset() {
        assert_eq!(Page { page: 2_147_483_647, limit: 100 }.offset(), 214_748_364_600);
    }

    #[test]
    fn random_parameters_are_their_own_digits() {
        use rand::rngs::StdRng;
        use rand::seq::IndexedRandom as _;
        use rand::{RngExt as _, SeedableRng as _};
        const PARTS: &[&str] =
            &["0", "1", "7", "99", "2147483647", "2147483648", "-", "+", ".", "e", " ", "\0", "x", "٣", "0x"];
        // The one text that a number has, and nothing else, is that number.
        let model = |text: &str, most: i64| {
            text.parse::<i64>().ok().filter(|n| n.to_string() == text && (1..=most).contains(n))
        };
        let rng = &mut StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let text = |rng: &mut StdRng| {
                (0..rng.random_range(0..3)).map(|_| *PARTS.choose(rng).expect("parts")).collect::<String>()
            };
            let (one, two) = (text(rng), text(rng));
            assert_eq!(id(&one).map(i64::from), model(&one, 2_147_483_647), "{one:?}");
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("limit", &one)
                .append_pair("x", &two)
                .append_pair("page", &two)
                .finish();
            let expected = model(&two, 2_147_483_647).zip(model(&one, 100));
            let read = page(Some(query.as_bytes())).ok();
            assert_eq!(read.map(|read| (i64::from(read.page), i64::from(read.limit))), expected, "{query}");
            let query = query.replace("page=", "n=");
            assert_eq!(rounds(Some(query.as_bytes())).ok().map(i64::from), model(&two, 1_000_000), "{query}");
        }
    }
}
