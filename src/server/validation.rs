//! The rules of the two request bodies. All fields are required, none may be null, nothing is coerced.

use std::borrow::Cow;

use validator::{Validate, ValidationError, ValidationErrors};

use super::amount::{self, Amount};
use super::error::{ApiError, FieldError};
use super::json::{self, BodyError, Json};
use super::reply::append_text;

/// Holds most replies to `POST /echo` without growing.
const ECHO_BYTES: usize = 256;

/// The body of `POST /echo`, and its reply.
#[derive(Debug, PartialEq, Validate)]
pub(super) struct Echo<'a> {
    #[validate(length(min = 1, max = 100))]
    name: Cow<'a, str>,
    #[validate(custom(function = "email"))]
    email: Cow<'a, str>,
    #[validate(range(min = 0, max = 150))]
    age: i64,
    #[validate(length(max = 10))]
    tags: Vec<Cow<'a, str>>,
}

impl Echo<'_> {
    /// The reply's body, in the key order of the contract.
    ///
    /// Written by hand, as users are: the generic serialiser looks at every byte of every string by itself.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(ECHO_BYTES);
        body.extend_from_slice(b"{\"name\":");
        append_text(&mut body, &self.name);
        body.extend_from_slice(b",\"email\":");
        append_text(&mut body, &self.email);
        body.extend_from_slice(b",\"age\":");
        body.extend_from_slice(itoa::Buffer::new().format(self.age).as_bytes());
        body.extend_from_slice(b",\"tags\":[");
        for (place, tag) in self.tags.iter().enumerate() {
            if place > 0 {
                body.push(b',');
            }
            append_text(&mut body, tag);
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// The body of `POST /orders`.
#[derive(Debug, PartialEq, Validate)]
pub(super) struct NewOrder {
    #[validate(range(min = 1, max = 2_147_483_647))]
    user_id: i64,
    #[validate(range(min = 0.0, max = "amount::MOST"))]
    amount: f64,
    #[validate(custom(function = "currency"))]
    currency: String,
}

/// A valid order: what is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) user_id: i32,
    pub(super) amount: Amount,
    pub(super) currency: String,
}

const NAME: &str = "must be a string of 1 to 100 characters";
const EMAIL: &str = "must be an email address";
const AGE: &str = "must be an integer from 0 to 150";
const TAGS: &str = "must be an array of at most 10 strings";
const USER_ID: &str = "must be an integer from 1 to 2147483647";
const AMOUNT: &str = "must be a number from 0 to 9999999999.99";
const CURRENCY: &str = "must be USD, EUR or GBP";

/// Reads and checks the body of `POST /echo`.
pub(super) fn echo(body: &[u8]) -> Result<Echo<'_>, ApiError> {
    let [name, email, age, tags] = json::fields(body, ["name", "email", "age", "tags"])?;
    let mut faults = Faults::default();
    let echo = Echo {
        name: faults.take("name", NAME, text(name)),
        email: faults.take("email", EMAIL, text(email)),
        age: faults.take("age", AGE, integer(&age)),
        tags: faults.take("tags", TAGS, texts(tags)),
    };
    faults.rules(echo.validate(), &[("name", NAME), ("email", EMAIL), ("age", AGE), ("tags", TAGS)]);
    faults.none()?;
    Ok(echo)
}

/// Reads and checks the body of `POST /orders`; whether the user exists is for the database to say.
pub(super) fn order(body: &[u8]) -> Result<Order, ApiError> {
    let [user_id, amount, currency] = json::fields(body, ["userId", "amount", "currency"])?;
    let mut faults = Faults::default();
    let order = NewOrder {
        user_id: faults.take("userId", USER_ID, integer(&user_id)),
        amount: faults.take("amount", AMOUNT, number(&amount)),
        currency: faults.take("currency", CURRENCY, text(currency)).into_owned(),
    };
    faults.rules(order.validate(), &[("userId", USER_ID), ("amount", AMOUNT), ("currency", CURRENCY)]);
    faults.none()?;
    let user_id = i32::try_from(order.user_id).expect("the range has been checked");
    Ok(Order { user_id, amount: Amount::round(order.amount), currency: order.currency })
}

/// 422 for an order whose user is not there.
pub(super) fn unknown_user() -> ApiError {
    ApiError::field("userId", "must be the id of an existing user")
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::NotJson(detail) => Self::BadRequest(detail),
            BodyError::NotAnObject => Self::field("", "the body must be an object"),
        }
    }
}

/// Collects one entry per offending field, whatever is wrong with it.
#[derive(Default)]
struct Faults {
    errors: Vec<FieldError>,
}

impl Faults {
    /// Notes a field of the wrong type and goes on with a placeholder, so that the other fields are looked at too.
    fn take<T: Default>(&mut self, field: &'static str, detail: &'static str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.errors.push(FieldError { field, detail });
            T::default()
        })
    }

    /// Adds what the rules found, except for fields already noted. `names` maps in the order of the reply.
    fn rules(&mut self, outcome: Result<(), ValidationErrors>, names: &[(&'static str, &'static str)]) {
        let Err(found) = outcome else { return };
        for &(field, detail) in names {
            let rule_name = if field == "userId" { "user_id" } else { field };
            let broken = found.errors().contains_key(rule_name);
            if broken && !self.errors.iter().any(|e| e.field == field) {
                self.errors.push(FieldError { field, detail });
            }
        }
    }

    fn none(self) -> Result<(), ApiError> {
        if self.errors.is_empty() { Ok(()) } else { Err(ApiError::Unprocessable(self.errors)) }
    }
}

fn text(value: Json<'_>) -> Option<Cow<'_, str>> {
    if let Json::Text(text) = value { Some(text) } else { None }
}

fn texts(value: Json<'_>) -> Option<Vec<Cow<'_, str>>> {
    if let Json::List(items) = value { items.into_iter().map(text).collect() } else { None }
}

fn number(value: &Json<'_>) -> Option<f64> {
    match *value {
        Json::Integer(value) => Some(value as f64),
        Json::Number(value) => Some(value),
        _ => None,
    }
}

/// `30.0` and `3e1` are the integer 30; `30.5` is none.
fn integer(value: &Json<'_>) -> Option<i64> {
    /// Below 2^53 every integer is exact; what lies beyond is out of every rule's range.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match *value {
        Json::Integer(value) => Some(value),
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 fits")]
        Json::Number(value) if value.fract() == 0.0 && value.abs() < EXACT => Some(value as i64),
        _ => None,
    }
}

fn currency(code: &str) -> Result<(), ValidationError> {
    if matches!(code, "USD" | "EUR" | "GBP") { Ok(()) } else { Err(ValidationError::new("currency")) }
}

/// The pattern of the WHATWG's HTML standard for `<input type=email>`: a local part of its characters, `@`, labels of
/// letters, digits and inner hyphens, at most 63 long, separated by points.
fn email(address: &str) -> Result<(), ValidationError> {
    const LONGEST_LABEL: usize = 63;
    let wrong = || ValidationError::new("email");
    let (local, domain) = address.split_once('@').ok_or_else(wrong)?;
    let local_char = |c: u8| c.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&c);
    let label = |label: &str| {
        let bytes = label.as_bytes();
        !bytes.is_empty()
            && bytes.len() <= LONGEST_LABEL
            && bytes.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'-')
            && bytes[0] != b'-'
            && bytes[bytes.len() - 1] != b'-'
    };
    let good = !local.is_empty() && local.bytes().all(local_char) && domain.split('.').all(label);
    if good { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(error: ApiError) -> Vec<&'static str> {
        let ApiError::Unprocessable(errors) = error else { panic!("not a 422: {error:?}") };
        errors.iter().map(|e| e.field).collect()
    }

    #[test]
    fn every_offending_field_is_named_once() {
        let wrong = |body: &str| fields(echo(body.as_bytes()).expect_err("must be refused"));
        assert_eq!(wrong("{}"), ["name", "email", "age", "tags"]);
        assert_eq!(wrong(r#"{"name":"","email":"x","age":151,"tags":[1]}"#), ["tags", "name", "email", "age"]);
        assert_eq!(wrong(r#"{"name":null,"email":"a@b","age":"30","tags":{}}"#), ["name", "age", "tags"]);
        let wrong = |body: &str| fields(order(body.as_bytes()).expect_err("must be refused"));
        assert_eq!(wrong(r#"{"userId":0,"amount":-0.01,"currency":"usd"}"#), ["userId", "amount", "currency"]);
    }

    #[test]
    fn echo_keeps_its_fields_alone() {
        let body = r#"{"x":1,"tags":["a"],"age":30.0,"email":"j@example.com","name":"J"}"#;
        let reply = echo(body.as_bytes()).expect("valid").json();
        assert_eq!(String::from_utf8_lossy(&reply), r#"{"name":"J","email":"j@example.com","age":30,"tags":["a"]}"#);
    }

    #[test]
    fn echo_is_written_as_a_serialiser_writes_it() {
        for text in ["x", "a\"b", "back\\slash", "line\nbreak", "nul\0", "\u{1f}\u{7f}é😀", "\u{2028}"] {
            for tags in [vec![], vec![text], vec![text, "", text]] {
                let (name, tags) = (serde_json::to_string(text), serde_json::to_string(&tags));
                let body = format!(
                    r#"{{"name":{},"email":"j@example.com","age":0,"tags":{}}}"#,
                    name.expect("JSON"),
                    tags.expect("JSON")
                );
                let reply = echo(body.as_bytes()).expect("valid").json();
                assert_eq!(String::from_utf8(reply).expect("UTF-8"), body);
            }
        }
    }

    #[test]
    fn names_count_characters() {
        let named = |name: &str| {
            let body = format!(r#"{{"name":"{name}","email":"j@example.com","age":1,"tags":[]}}"#);
            echo(body.as_bytes()).is_ok()
        };
        assert!(named(&"é".repeat(100)) && named(&"🦀".repeat(100)) && named("x"));
        assert!(!named(&"x".repeat(101)) && !named(""));
    }

    #[test]
    fn integers_are_not_rounded() {
        let aged = |age: &str| {
            let body = format!(r#"{{"name":"x","email":"j@example.com","age":{age},"tags":[]}}"#);
            echo(body.as_bytes()).map(|e| e.age).ok()
        };
        assert_eq!(["30", "30.0", "3e1", "-0", "0", "150"].map(aged), [30, 30, 30, 0, 0, 150].map(Some));
        assert_eq!(["3.5", "-1", "151", "9007199254740993", "\"30\"", "null", "true", "1e300"].map(aged), [None; 8]);
    }

    #[test]
    fn orders_are_rounded_and_bounded() {
        let cents = |amount: &str| {
            let body = format!(r#"{{"userId":1,"amount":{amount},"currency":"EUR"}}"#);
            order(body.as_bytes()).map(|o| o.amount.cents()).ok()
        };
        assert_eq!(cents("19.99"), Some(1999));
        assert_eq!(cents("0.125"), Some(13));
        assert_eq!(cents("-0"), Some(0));
        assert_eq!(cents("9999999999.99"), Some(999_999_999_999));
        assert_eq!(cents("10000000000"), None);
        assert_eq!(cents("-0.001"), None);
        assert_eq!(cents("\"1\""), None);
    }

    #[test]
    fn emails_follow_the_pattern() {
        let long = format!("a@{}.com", "x".repeat(63));
        for good in ["x@example.com", "a.b+c@d-e.f", "!#$%&'*+/=?^_`{|}~-@x", "..@1", &long] {
            assert!(email(good).is_ok(), "{good}");
        }
        let longer = format!("a@{}.com", "x".repeat(64));
        for wrong in [
            "",
            "x",
            "@x",
            "x@",
            "a@b@c",
            "a b@c",
            "a@-b",
            "a@b-",
            "a@b..c",
            "a@b.",
            "é@x",
            "a@é",
            "a@[127.0.0.1]",
            &longer,
        ] {
            assert!(email(wrong).is_err(), "{wrong}");
        }
    }

    /// The fields of a body that break the contract, each rule in its plainest words.
    fn model(body: &serde_json::Value) -> Vec<&'static str> {
        let number = |field: &str| body[field].as_f64();
        let whole = |field: &str, from: f64, to: f64| {
            number(field).is_some_and(|n| n.fract() == 0.0 && (from..=to).contains(&n))
        };
        let text = |field: &str| body[field].as_str();
        let good = [
            ("name", text("name").is_some_and(|name| (1..=100).contains(&name.chars().count()))),
            ("email", text("email").is_some_and(|email| email.split('@').filter(|part| !part.is_empty()).count() == 2)),
            ("age", whole("age", 0.0, 150.0)),
            (
                "tags",
                body["tags"]
                    .as_array()
                    .is_some_and(|tags| tags.len() <= 10 && tags.iter().all(serde_json::Value::is_string)),
            ),
            ("userId", whole("userId", 1.0, 2_147_483_647.0)),
            ("amount", number("amount").is_some_and(|n| (0.0..=9_999_999_999.99).contains(&n))),
            ("currency", text("currency").is_some_and(|code| ["USD", "EUR", "GBP"].contains(&code))),
        ];
        good.into_iter().filter(|(_, good)| !good).map(|(field, _)| field).collect()
    }

    #[test]
    fn random_bodies_are_judged_as_the_contract_says() {
        use rand::rngs::StdRng;
        use rand::seq::IndexedRandom as _;
        use rand::{RngExt as _, SeedableRng as _};
        const FIELDS: [&str; 7] = ["name", "email", "age", "tags", "userId", "amount", "currency"];
        let hundred = format!("\"{}\"", "é".repeat(100));
        let longer = format!("\"{}\"", "é".repeat(101));
        let values = [
            "0",
            "1",
            "-1",
            "-0",
            "30.0",
            "150",
            "151",
            "1.5",
            "1e3",
            "2147483647",
            "2147483648",
            "9223372036854775807",
            "18446744073709551616",
            "9999999999.99",
            "9999999999.995",
            "10000000000",
            "5e-324",
            "-5e-324",
            "null",
            "true",
            "{}",
            "[]",
            "[1]",
            "[\"a\"]",
            r#"["","","","","","","","","",""]"#,
            r#"["","","","","","","","","","",""]"#,
            "\"\"",
            "\"\\u0000\"",
            "\"a@b\"",
            "\"a@b@c\"",
            "\"@b\"",
            "\"a@\"",
            "\"USD\"",
            "\"EUR\"",
            "\"usd\"",
            &hundred,
            &longer,
        ];
        let rng = &mut StdRng::seed_from_u64(1);
        let mut good = 0;
        for _ in 0..20_000 {
            let mut body =
                r#"{"name":"x","email":"a@b","age":1,"tags":[],"userId":1,"amount":1,"currency":"USD""#.to_owned();
            for field in FIELDS {
                // A field is given once: in place of the good value, or not at all.
                let rest = body.split_once(&format!("\"{field}\":")).expect("it is there").1;
                let end = rest.find(",\"").unwrap_or(rest.len());
                let at = body.len() - rest.len();
                match rng.random_range(0..10) {
                    0..3 => body.replace_range(at..at + end, values.choose(rng).expect("values")),
                    3 => body.replace_range(at - field.len() - 3..at, "\"unknown\":"),
                    _ => {}
                }
                if body.matches("\"unknown\"").count() == 1 {
                    body = body.replace("\"unknown\"", &format!("\"not {field}\""));
                }
            }
            body.push('}');
            let wrong = model(&serde_json::from_str(&body).expect("JSON"));
            let named = |outcome: Result<(), ApiError>| outcome.err().map(fields).unwrap_or_default();
            let mut found = named(echo(body.as_bytes()).map(drop));
            found.extend(named(order(body.as_bytes()).map(drop)));
            found.sort_unstable_by_key(|field| FIELDS.iter().position(|known| known == field));
            assert_eq!(found, wrong, "{body}");
            good += u32::from(wrong.is_empty());
        }
        assert!(good > 100, "only {good} good bodies");
    }
}
