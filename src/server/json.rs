//! A JSON body as an object whose fields keep their own type, so that every wrong one can be named.
//!
//! Deserialising straight into the target struct would stop at the first field of a wrong type. Here only what is not
//! JSON, or names a key twice, is an error of the whole body; the rest is left to `validation`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value of a known field; objects are kept only as the fact that they are there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Json<'a> {
    /// The key is not there.
    #[default]
    Missing,
    Null,
    Bool,
    /// A number that an `i64` holds.
    Integer(i64),
    /// Any other finite number.
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object,
}

/// The values of `KEYS`, in that order.
pub(super) type Fields<'a, const N: usize> = [Json<'a>; N];

/// Why a body is no object to look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// 400, with what is wrong.
    NotJson(String),
    /// 422: JSON, but not an object.
    NotAnObject,
}

/// Reads an object's known fields; unknown keys are read over.
pub(super) fn fields<'a, const N: usize>(body: &'a [u8], keys: [&str; N]) -> Result<Fields<'a, N>, BodyError> {
    // serde_json does not look inside strings it skips, so UTF-8 is checked as a whole.
    let text = std::str::from_utf8(body).map_err(|e| BodyError::NotJson(format!("the body is not UTF-8: {e}")))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_any(ObjectVisitor { keys });
    let fields = read.and_then(|fields| reader.end().map(|()| fields));
    match fields {
        Ok(Some(fields)) => Ok(fields),
        Ok(None) => Err(BodyError::NotAnObject),
        Err(error) => Err(BodyError::NotJson(format!("the body is not JSON: {error}"))),
    }
}

struct ObjectVisitor<'k, const N: usize> {
    keys: [&'k str; N],
}

/// Anything but an object reads as `None`.
macro_rules! not_an_object {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> { Ok(None) })*
    };
}

impl<'de, const N: usize> Visitor<'de> for ObjectVisitor<'_, N> {
    type Value = Option<Fields<'de, N>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    not_an_object! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = [const { Json::Missing }; N];
        let mut unknown = HashSet::new();
        while let Some(Key(key)) = entries.next_key()? {
            let repeated = if let Some(place) = self.keys.iter().position(|known| *known == key) {
                std::mem::replace(&mut fields[place], entries.next_value()?) != Json::Missing
            } else {
                entries.next_value::<IgnoredAny>()?;
                !unknown.insert(key)
            };
            if repeated {
                return Err(serde::de::Error::custom("a key is given twice"));
            }
        }
        Ok(Some(fields))
    }
}

/// A key, borrowed unless it holds an escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Self(text)),
            _ => Err(serde::de::Error::custom("a key is not a string")),
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        // Beyond every rule's range: the nearest float is as good for refusing it.
        Ok(i64::try_from(value).map_or(Json::Number(value as f64), Json::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::Number(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Json::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<[Json<'_>; 2], BodyError> {
        fields(body.as_bytes(), ["a", "b"])
    }

    #[test]
    fn known_fields_keep_their_type() {
        assert_eq!(read(r#"{"b":"x","c":[1],"a":1}"#), Ok([Json::Integer(1), Json::Text("x".into())]));
        assert_eq!(read(r#"{"a":30.0}"#), Ok([Json::Number(30.0), Json::Missing]));
        assert_eq!(read(r#"{"a":null,"b":{"a":1}}"#), Ok([Json::Null, Json::Object]));
        assert_eq!(read(r#"{"a":[true,"x"],"b":18446744073709551615}"#).map(|[a, _]| a), {
            Ok(Json::List(vec![Json::Bool, Json::Text("x".into())]))
        });
        assert_eq!(read(r#"{"\u0061":"\u0000"}"#), Ok([Json::Text("\0".into()), Json::Missing]));
    }

    #[test]
    fn what_is_not_json_is_told_from_what_is_no_object() {
        for body in ["null", "1", r#""x""#, "[]", "true", "-1.5"] {
            assert_eq!(read(body), Err(BodyError::NotAnObject), "{body}");
        }
        let nested = "[".repeat(10_000);
        for body in [
            "",
            "{",
            "{}x",
            "{}{}",
            r#"{"a":1,}"#,
            r#"{"a":NaN}"#,
            r#"{"a":1e400}"#,
            r#"{"a":-1e400}"#,
            r#"{"a":01}"#,
            r#"{"a":"\ud800"}"#,
            "\u{feff}{}",
            r#"{"a":1,"a":1}"#,
            r#"{"x":1,"x":2}"#,
            r#"{"a":null,"a":1}"#,
            "{\"a\":\"\n\"}",
            &nested,
        ] {
            assert!(matches!(read(body), Err(BodyError::NotJson(_))), "{body:?}");
        }
        assert!(matches!(fields(b"{\"x\":\"\xff\"}", ["a"]), Err(BodyError::NotJson(_))));
    }

    /// What an object's field must read as.
    fn model(value: Option<&serde_json::Value>) -> Json<'static> {
        use serde_json::Value as V;
        match value {
            None => Json::Missing,
            Some(V::Null) => Json::Null,
            Some(V::Bool(_)) => Json::Bool,
            Some(V::Number(number)) => {
                number.as_i64().map_or_else(|| Json::Number(number.as_f64().expect("finite")), Json::Integer)
            }
            Some(V::String(text)) => Json::Text(text.clone().into()),
            Some(V::Array(items)) => Json::List(items.iter().map(|item| model(Some(item))).collect()),
            Some(V::Object(_)) => Json::Object,
        }
    }

    /// Whether what `serde_json` reads as a whole is read here alike.
    fn agrees(text: &str) -> bool {
        use serde_json::Value as V;
        match (serde_json::from_str(text), read(text)) {
            (Ok(V::Object(map)), Ok([a, b])) => model(map.get("a")) == a && model(map.get("b")) == b,
            // A map takes the last of two; here that is refused.
            (Ok(V::Object(_)), Err(BodyError::NotJson(why))) => why.contains("twice"),
            (Ok(_), outcome) => outcome == Err(BodyError::NotAnObject),
            (Err(_), Err(BodyError::NotJson(_))) => true,
            // What is read over is looked at for its shape alone: neither its depth nor the size of its numbers.
            (Err(error), Ok(_) | Err(BodyError::NotAnObject)) => {
                let why = error.to_string();
                ["number out of range", "recursion", "surrogate", "hex escape"].iter().any(|known| why.contains(known))
            }
        }
    }

    #[test]
    fn random_text_reads_as_serde_json_reads_it() {
        use rand::rngs::StdRng;
        use rand::seq::IndexedRandom as _;
        use rand::{RngExt as _, SeedableRng as _};
        const PARTS: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\":",
            "\"b\":",
            "\"x\":",
            "\"\\u0061\":",
            "1",
            "-0",
            "1.5",
            "1e400",
            "30.0",
            "9223372036854775808",
            "-9223372036854775809",
            "null",
            "true",
            "\"x\"",
            "\"\\ud800\"",
            "\"\\ud83e\\udd80\"",
            "\"\\u0000\"",
            "\"é\"",
            " ",
            "\n",
            "{\"a\":1}",
            "[1,[2]]",
            "\u{feff}",
            "\"",
        ];
        let rng = &mut StdRng::seed_from_u64(1);
        let mut objects = 0;
        for _ in 0..20_000 {
            let mut text = String::new();
            if rng.random_bool(0.5) {
                // An object of random fields, most of them good.
                let field =
                    |rng: &mut StdRng| [6..9, 10..24].map(|part| *PARTS[part].choose(rng).expect("parts")).concat();
                let fields: Vec<String> = (0..rng.random_range(0..4)).map(|_| field(rng)).collect();
                text = format!("{{{}}}", fields.join(","));
            }
            for _ in 0..rng.random_range(0..4) {
                let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                text.insert_str(*places.choose(rng).expect("an end"), PARTS.choose(rng).expect("parts"));
            }
            objects += u32::from(read(&text).is_ok());
            assert!(agrees(&text), "{text:?} reads as {:?}", read(&text));
        }
        assert!(objects > 1_000, "only {objects} objects");
    }
}
