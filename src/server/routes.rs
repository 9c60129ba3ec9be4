//! The seven routes: which one a request means, what it reads, what it answers.
//!
//! Knows no HTTP library: a request is looked at once, without waiting ([`Shared::read`]); what is left to do, if
//! anything, is owned by itself and can wait for Postgres or the hashing thread ([`Shared::answer`]).

use std::borrow::Cow;

use axum::http::StatusCode;
use serde::Serialize;

use super::auth::Verifier;
use super::config::Limits;
use super::error::ApiError;
use super::hash::Hasher;
use super::parameter::{self, Page};
use super::reply::Reply;
use super::store::Store;
use super::timestamp::Timestamp;
use super::validation::{self, Order};

/// Why a request is given up that Postgres or the hashing thread has not answered within its time.
pub(super) const TOO_SLOW: &str = "the request took too long";

/// What all requests of one worker share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) verifier: Verifier,
    pub(super) hasher: Hasher,
    pub(super) limits: Limits,
}

/// The methods that some route knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
    Other,
}

impl Method {
    /// From the request line; methods are case-sensitive.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            _ => Self::Other,
        }
    }
}

/// The request line, taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) method: Method,
    /// As sent: escapes are not decoded.
    pub(super) path: &'a [u8],
    pub(super) query: Option<&'a [u8]>,
}

/// A route of the contract, with what its path and query hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Health,
    Echo,
    Me,
    User { id: &'a [u8] },
    List { query: Option<&'a [u8]> },
    Order,
    Cpu { query: Option<&'a [u8]> },
}

/// What a route is given besides its target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    /// The one `authorization` header.
    pub(super) authorization: Option<&'a str>,
    /// Whether the headers say that the body is plain JSON.
    pub(super) is_json: bool,
    pub(super) body: &'a [u8],
}

/// What is left to do for a request.
#[derive(Debug)]
pub(super) enum Work {
    User(i32),
    Users(Page),
    Insert(Order),
    Hash(u32),
}

/// What looking at a request gave.
#[derive(Debug)]
pub(super) enum Looked {
    Answered(Reply),
    Waits(Work),
}

impl<'a> Target<'a> {
    /// The route; 404 for an unknown path, 405 for a known one under another method.
    pub(super) fn route(self) -> Result<Route<'a>, ApiError> {
        const READS: &str = "GET,HEAD";
        let (route, allow) = match self.path {
            b"/health" => (Route::Health, READS),
            b"/echo" => (Route::Echo, "POST"),
            b"/me" => (Route::Me, READS),
            b"/users" => (Route::List { query: self.query }, READS),
            b"/orders" => (Route::Order, "POST"),
            b"/cpu" => (Route::Cpu { query: self.query }, READS),
            path => match path.strip_prefix(b"/users/") {
                Some(id) if !id.is_empty() && !id.contains(&b'/') => (Route::User { id }, READS),
                _ => return Err(ApiError::NotFound),
            },
        };
        match (self.method, allow) {
            (Method::Get | Method::Head, READS) | (Method::Post, "POST") => Ok(route),
            _ => Err(ApiError::MethodNotAllowed(allow)),
        }
    }
}

impl Route<'_> {
    /// Whether the route reads a body.
    pub(super) fn takes_body(&self) -> bool {
        matches!(self, Self::Echo | Self::Order)
    }
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

#[derive(Serialize)]
struct Hashed<'a> {
    n: u32,
    hash: &'a str,
}

impl Shared {
    /// Reads and checks a request, and answers it where nothing has to be waited for.
    pub(super) fn read(&self, route: Route<'_>, given: &Given<'_>) -> Result<Looked, ApiError> {
        if route.takes_body() && !given.is_json {
            return Err(ApiError::UnsupportedMediaType);
        }
        Ok(Looked::Waits(match route {
            Route::Health => return Ok(Looked::Answered(Reply::json(StatusCode::OK, &Health { status: "ok" }))),
            Route::Echo => {
                let echo = validation::echo(given.body)?;
                return Ok(Looked::Answered(Reply::of(StatusCode::OK, echo.json())));
            }
            Route::Me => Work::User(self.verifier.user(given.authorization)?),
            Route::User { id } => {
                let id = decoded(id).and_then(|id| parameter::id(&id));
                Work::User(id.ok_or_else(|| ApiError::field("id", "must be an integer from 1 to 2147483647"))?)
            }
            Route::List { query } => Work::Users(parameter::page(query)?),
            Route::Order => Work::Insert(validation::order(given.body)?),
            Route::Cpu { query } => Work::Hash(parameter::rounds(query)?),
        }))
    }

    /// Does what is left to do.
    pub(super) async fn answer(&self, work: Work) -> Result<Reply, ApiError> {
        Ok(match work {
            Work::User(id) => Reply::of(StatusCode::OK, self.store.user(id).await?.ok_or(ApiError::NotFound)?),
            Work::Users(page) => {
                let start = format!(r#"{{"page":{},"limit":{},"items":["#, page.page, page.limit);
                let mut body = self.store.users(page.limit, page.offset(), start.into_bytes()).await?;
                body.extend_from_slice(b"]}");
                Reply::of(StatusCode::OK, body)
            }
            Work::Insert(order) => {
                let stored = self.store.insert(&order, Timestamp::now()).await?;
                Reply::json(StatusCode::CREATED, &stored)
            }
            Work::Hash(n) => {
                let hash = self.hasher.hash(n).await?;
                let hash = std::str::from_utf8(&hash).expect("hexadecimal digits are ASCII");
                Reply::json(StatusCode::OK, &Hashed { n, hash })
            }
        })
    }
}

/// A path segment with its escapes decoded; escapes that are no UTF-8 are no id either.
fn decoded(segment: &[u8]) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode(segment).decode_utf8().ok()
}

/// Whether a body with these headers is plain JSON: `application/json` in any case, with or without parameters
/// (RFC 9110, section 8.3.1), without a content encoding.
pub(super) fn is_json(content_type: Option<&[u8]>, content_encoding: Option<&[u8]>) -> bool {
    let essence = content_type.and_then(|value| value.split(|&b| b == b';').next());
    let is_encoded = content_encoding.is_some_and(|coding| coding != b"identity");
    !is_encoded && essence.is_some_and(|essence| essence.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &str) -> Result<Route<'_>, String> {
        Target { method, path: path.as_bytes(), query: None }.route().map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn paths_are_exact() {
        assert_eq!(route(Method::Get, "/health"), Ok(Route::Health));
        assert_eq!(route(Method::Head, "/health"), Ok(Route::Health));
        assert_eq!(route(Method::Post, "/echo"), Ok(Route::Echo));
        assert_eq!(route(Method::Get, "/users/4%20x"), Ok(Route::User { id: b"4%20x" }));
        for path in [
            "",
            "/",
            "*",
            "/Health",
            "/health/",
            "//health",
            "/users/",
            "/users/1/",
            "/users/1/x",
            "/user",
            "/%68ealth",
        ] {
            assert_eq!(route(Method::Get, path), Err("NotFound".to_owned()), "{path}");
        }
        assert_eq!(route(Method::Post, "/health"), Err("MethodNotAllowed(\"GET,HEAD\")".to_owned()));
        assert_eq!(route(Method::Other, "/echo"), Err("MethodNotAllowed(\"POST\")".to_owned()));
        assert_eq!(route(Method::Get, "/echo"), Err("MethodNotAllowed(\"POST\")".to_owned()));
    }

    #[test]
    fn json_is_a_media_type_not_a_spelling() {
        let is = |value: &str| is_json(Some(value.as_bytes()), None);
        for value in ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x"]
        {
            assert!(is(value), "{value}");
        }
        for value in ["", "text/plain", "application/jsonx", "application/json, text/plain", "application/problem+json"]
        {
            assert!(!is(value), "{value}");
        }
        assert!(!is_json(None, None));
        assert!(is_json(Some(b"application/json"), Some(b"identity")));
        assert!(!is_json(Some(b"application/json"), Some(b"gzip")));
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(decoded(b"%31").as_deref(), Some("1"));
        assert_eq!(decoded(b"1%2F2").as_deref(), Some("1/2"));
        assert_eq!(decoded(b"%zz").as_deref(), Some("%zz"));
        assert_eq!(decoded(b"%2531").as_deref(), Some("%31"));
        assert_eq!(decoded(b"%FF"), None);
    }
}
