//! What a reply must be, and how far one is from it. Pure.

use serde_json::Value;

use super::framing::Reply;
use super::show;
use crate::dataset::ORDERS;

/// The reply a request must get.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expect {
    statuses: &'static [u16],
    media: Media,
    body: Body,
    /// A header that must hold this word, compared without case.
    header: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    /// `application/json` or any `application/…+json`.
    JsonLike,
    Problem,
    Any,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    Exact(Vec<u8>),
    /// A JSON object, of the server's own shape.
    Object,
    /// A JSON object that names each of these fields.
    Names(&'static [&'static str]),
    Order(OrderFields),
    Empty,
    Any,
}

/// What an accepted order must show; `id` and `createdAt` are the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderFields {
    /// As sent.
    pub(super) user_id: u32,
    /// As it must be answered: two decimals.
    pub(super) amount: String,
    /// As sent.
    pub(super) currency: &'static str,
}

/// An order a server has confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confirmed {
    /// Of the new row.
    pub(super) id: i32,
    /// As sent and answered.
    pub(super) fields: OrderFields,
    /// The answered time.
    pub(super) created_at_ms: i64,
}

/// A refusal that is not told apart further: any client error but the ones about authorization.
const REFUSALS: &[u16] = &[400, 404, 405, 413, 414, 415, 422, 431];

/// 200 and this JSON, byte for byte.
pub(super) fn ok(body: impl Into<Vec<u8>>) -> Expect {
    Expect { statuses: &[200], media: Media::Json, body: Body::Exact(body.into()), header: None }
}

/// 201 and an order.
pub(super) fn created(user_id: u32, amount: impl Into<String>, currency: &'static str) -> Expect {
    let body = Body::Order(OrderFields { user_id, amount: amount.into(), currency });
    Expect { statuses: &[201], media: Media::Json, body, header: None }
}

/// One of these statuses, with a JSON object as body.
pub(super) fn refused(statuses: &'static [u16]) -> Expect {
    Expect { statuses, media: Media::JsonLike, body: Body::Object, header: None }
}

/// 422, with a JSON object as body.
pub(super) fn unprocessable() -> Expect {
    refused(&[422])
}

/// One of these statuses, whatever the body.
pub(super) fn status(statuses: &'static [u16]) -> Expect {
    Expect { statuses, media: Media::Any, body: Body::Any, header: None }
}

/// Any refusal, whatever the body.
pub(super) fn any_refusal() -> Expect {
    status(REFUSALS)
}

/// The 401 of the contract.
pub(super) fn unauthorized() -> Expect {
    Expect { statuses: &[401], ..ok(r#"{"error":"unauthorized"}"#) }
}

/// The 404 of the contract.
pub(super) fn not_found() -> Expect {
    Expect { statuses: &[404], ..ok(r#"{"error":"not found"}"#) }
}

/// This status as `application/problem+json` (RFC 9457), naming each of these fields.
pub(super) fn problem(statuses: &'static [u16], fields: &'static [&'static str]) -> Expect {
    Expect { statuses, media: Media::Problem, body: Body::Names(fields), header: None }
}

/// This status and no body at all.
pub(super) fn empty(statuses: &'static [u16]) -> Expect {
    Expect { statuses, media: Media::Any, body: Body::Empty, header: None }
}

impl Expect {
    /// And a header that holds this word.
    #[must_use]
    pub(super) fn with_header(mut self, name: &'static str, word: &'static str) -> Self {
        self.header = Some((name, word));
        self
    }

    /// What must come back, in one line.
    pub(super) fn wanted(&self) -> String {
        let body = match &self.body {
            Body::Exact(body) => show::line(body),
            Body::Object => "a JSON object".to_owned(),
            Body::Names(fields) => format!("a JSON object that names {}", fields.join(", ")),
            Body::Order(fields) => format!(
                "the stored order of user {} over {} {}, with its id and createdAt",
                fields.user_id, fields.amount, fields.currency
            ),
            Body::Empty => "no body".to_owned(),
            Body::Any => "any body".to_owned(),
        };
        let header = self.header.map_or_else(String::new, |(name, word)| format!(", {name} with {word}"));
        let media = self.media.name();
        let gap = if media.is_empty() { "" } else { " " };
        format!("{}{gap}{media} {body}{header}", self.statuses_or())
    }

    fn statuses_or(&self) -> String {
        self.statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
    }

    /// Compares. An accepted order comes back with what the server chose.
    ///
    /// # Errors
    /// Says in one line what differs, and from which byte on.
    pub(super) fn check(&self, reply: &Reply) -> Result<Option<Confirmed>, String> {
        if !self.statuses.contains(&reply.status) {
            let wanted = self.statuses_or();
            return Err(format!("expected status {wanted}, got {} with {}", reply.status, shown_body(reply)));
        }
        let confirmed = self.check_body(reply)?;
        self.check_media(reply)?;
        if let Some((name, word)) = self.header {
            let found = reply.header(name);
            if !found.is_some_and(|value| value.to_ascii_lowercase().contains(&word.to_ascii_lowercase())) {
                return Err(format!("expected the header {name} to hold {word}, got {}", found.unwrap_or("none")));
            }
        }
        Ok(confirmed)
    }

    fn check_body(&self, reply: &Reply) -> Result<Option<Confirmed>, String> {
        match &self.body {
            Body::Any => Ok(None),
            Body::Exact(expected) if *expected == reply.body => Ok(None),
            Body::Exact(expected) => Err(format!(
                "expected {}, got {}; {}",
                show::line(expected),
                shown_body(reply),
                show::difference(expected, &reply.body)
            )),
            Body::Empty if reply.body.is_empty() => Ok(None),
            Body::Empty => Err(format!("expected no body, got {}", shown_body(reply))),
            Body::Object => json_object(reply).map(|_| None),
            Body::Names(fields) => {
                let text = json_object(reply)?.to_string();
                match fields.iter().find(|field| !text.contains(**field)) {
                    Some(field) => Err(format!("expected an entry for {field}, got {}", shown_body(reply))),
                    None => Ok(None),
                }
            }
            Body::Order(fields) => confirm(fields, reply).map(Some),
        }
    }

    fn check_media(&self, reply: &Reply) -> Result<(), String> {
        let found = reply.media_type().unwrap_or_default();
        let json_like = found == "application/json" || (found.starts_with("application/") && found.ends_with("+json"));
        let good = match self.media {
            Media::Any => true,
            Media::JsonLike => json_like,
            Media::Json | Media::Problem => found == self.media.name(),
        };
        if good {
            return Ok(());
        }
        let got = reply.header("content-type").unwrap_or("none");
        Err(format!("expected the content type {}, got {got} on status {}", self.media.name(), reply.status))
    }
}

impl Media {
    /// As a failure names it; empty for any.
    fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Json => "application/json",
            Self::JsonLike => "application/json or application/…+json",
            Self::Problem => "application/problem+json",
        }
    }
}

fn shown_body(reply: &Reply) -> String {
    if reply.body.is_empty() { "an empty body".to_owned() } else { show::line(&reply.body) }
}

fn json_object(reply: &Reply) -> Result<Value, String> {
    match serde_json::from_slice::<Value>(&reply.body) {
        Ok(value) if value.is_object() => Ok(value),
        _ => Err(format!("expected a JSON object with status {}, got {}", reply.status, shown_body(reply))),
    }
}

/// Takes `id` and `createdAt` from the reply, rebuilds the body the contract owes for them, and compares bytes:
/// key order, spacing and types in one comparison.
fn confirm(fields: &OrderFields, reply: &Reply) -> Result<Confirmed, String> {
    let got = json_object(reply)?;
    let created_at = got["createdAt"].as_str().unwrap_or("a time");
    let OrderFields { user_id, amount, currency } = fields;
    let id = got["id"].as_i64();
    let shown_id = id.map_or_else(|| "a new id".to_owned(), |id| id.to_string());
    let expected = format!(
        r#"{{"id":{shown_id},"userId":{user_id},"amount":"{amount}","currency":"{currency}","createdAt":"{created_at}"}}"#
    );
    if expected.as_bytes() != reply.body {
        let difference = show::difference(expected.as_bytes(), &reply.body);
        return Err(format!("expected {expected}, got {}; {difference}", shown_body(reply)));
    }
    let new = id.and_then(|id| i32::try_from(id).ok()).filter(|id| i64::from(*id) > i64::from(ORDERS));
    let Some(id) = new else {
        return Err(format!("expected an id above the {ORDERS} seeded ones, got {}", shown_body(reply)));
    };
    let Some(created_at_ms) = milliseconds(created_at) else {
        return Err(format!("expected createdAt in UTC with three decimals and Z, got {created_at}"));
    };
    Ok(Confirmed { id, fields: fields.clone(), created_at_ms })
}

/// `2026-01-02T03:04:05.678Z`, exactly of that shape, as milliseconds after the epoch.
fn milliseconds(text: &str) -> Option<i64> {
    let shape = "dddd-dd-ddTdd:dd:dd.dddZ";
    let fits = text.len() == shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(got, like)| if like == b'd' { got.is_ascii_digit() } else { got == like });
    if !fits {
        return None;
    }
    Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, content_type: &str, body: &str) -> Reply {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Reply { status, headers, body: body.as_bytes().to_vec(), interim: Vec::new(), closes: false }
    }

    #[test]
    fn an_exact_body_tells_where_it_differs() {
        let expect = ok(r#"{"n":1}"#);
        assert_eq!(expect.check(&reply(200, "application/json;charset=UTF-8", r#"{"n":1}"#)), Ok(None));
        let error = expect.check(&reply(200, "application/json", r#"{"n":2}"#)).unwrap_err();
        assert!(error.contains("at byte 5"), "{error}");
        assert!(expect.check(&reply(200, "text/plain", r#"{"n":1}"#)).unwrap_err().contains("content type"));
        assert!(expect.check(&reply(201, "application/json", r#"{"n":1}"#)).unwrap_err().contains("status 200"));
    }

    #[test]
    fn a_refusal_is_a_json_object_under_a_json_type() {
        assert!(unprocessable().check(&reply(422, "application/problem+json", "{}")).is_ok());
        for (content_type, body) in [("text/plain", "{}"), ("application/json", "no"), ("application/json", "[]")] {
            assert!(unprocessable().check(&reply(422, content_type, body)).is_err(), "{content_type} {body}");
        }
    }

    #[test]
    fn a_problem_names_its_fields() {
        let expect = problem(&[422], &["name", "age"]);
        let body = |field: &str| format!(r#"{{"errors":[{{"field":"name"}},{{"field":"{field}"}}]}}"#);
        assert!(expect.check(&reply(422, "application/problem+json", &body("age"))).is_ok());
        assert!(expect.check(&reply(422, "application/problem+json", &body("tags"))).is_err());
    }

    #[test]
    fn a_confirmed_order_is_checked_to_the_byte() {
        let good =
            r#"{"id":200001,"userId":7,"amount":"0.13","currency":"USD","createdAt":"2026-01-02T03:04:05.678Z"}"#;
        let expect = created(7, "0.13", "USD");
        let confirmed = expect.check(&reply(201, "application/json", good)).unwrap().unwrap();
        assert_eq!((confirmed.id, confirmed.created_at_ms), (200_001, 1_767_323_045_678));
        for (from, to) in [
            ("200001", "200000"),
            ("200001", "4294967296"),
            ("200001", r#""200001""#),
            (r#""userId":7"#, r#""userId":8"#),
            (r#""0.13""#, "0.13"),
            ("0.13", "0.12"),
            ("USD", "EUR"),
            (".678Z", "Z"),
            (".678Z", ".67Z"),
            (".678Z", ".678+00:00"),
            ("2026-01-02", "2026-13-02"),
            (r#","currency""#, r#", "currency""#),
            (r#""currency":"USD","#, ""),
        ] {
            let changed = good.replace(from, to);
            assert_ne!(changed, good);
            assert!(expect.check(&reply(201, "application/json", &changed)).is_err(), "{from} → {to} was accepted");
        }
    }

    #[test]
    fn a_header_is_compared_without_case() {
        let mut found = reply(405, "application/json", "{}");
        found.headers.push(("allow".to_owned(), "GET, HEAD".to_owned()));
        assert!(refused(&[405]).with_header("allow", "get").check(&found).is_ok());
        assert!(refused(&[405]).with_header("allow", "POST").check(&found).is_err());
    }
}
