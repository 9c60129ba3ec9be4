//! Which failure gets which answer.
//!
//! Client mistakes carry their detail (RFC 9457 problem documents). What goes wrong on our side is logged to stderr and
//! answered without SQL, paths or stacks. 401 and 404 have the fixed bodies of the contract.

use std::io::Write as _;

use axum::http::StatusCode;
use serde::Serialize;

use super::reply::{Extra, Reply};

/// Says one line to whoever runs the server. A stderr that takes nothing must not stop it.
pub(super) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "headroom serve: {line}");
}

/// A request that is not answered with success.
#[derive(Debug)]
pub(super) enum ApiError {
    /// 400: the request is not what its media type promises.
    BadRequest(String),
    /// 401: no token, or none that is valid; never says why.
    Unauthorized,
    /// 404: no such row, or no such route.
    NotFound,
    /// 405: the path exists under these methods, written as the `allow` header has them.
    MethodNotAllowed(&'static str),
    /// 408: the request did not arrive in time.
    RequestTimeout,
    /// 413: the body is longer than the limit, in bytes.
    PayloadTooLarge(usize),
    /// 415: not `application/json`.
    UnsupportedMediaType,
    /// 417: an `expect` other than `100-continue`.
    ExpectationFailed,
    /// 422: well-formed, but a field breaks its rule.
    Unprocessable(Vec<FieldError>),
    /// 431: more bytes or lines of headers than the limit.
    HeadTooLarge,
    /// 501: a transfer coding other than `chunked`.
    UnknownCoding,
    /// 505: a version other than HTTP/1.
    UnknownVersion,
    /// 503: Postgres is away or a queue is full.
    Unavailable(&'static str),
    /// 500: a fault of ours, or an answer of Postgres we did not expect.
    Internal(&'static str),
}

/// A field and the rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FieldError {
    /// Name of the field, path or query parameter; empty for the body as a whole.
    pub(super) field: &'static str,
    /// The rule, as a phrase that follows the field's name.
    pub(super) detail: &'static str,
}

/// RFC 9457, with one entry per offending field.
#[derive(Serialize)]
struct Problem<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

/// How long a client should stay away when Postgres does: long enough for a restart, short enough to notice it.
const RETRY_AFTER_S: &str = "1";

impl ApiError {
    /// 422 for a single field.
    pub(super) fn field(field: &'static str, detail: &'static str) -> Self {
        Self::Unprocessable(vec![FieldError { field, detail }])
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        use ApiError as E;
        match error {
            E::Unauthorized => fixed(StatusCode::UNAUTHORIZED, r#"{"error":"unauthorized"}"#),
            E::NotFound => fixed(StatusCode::NOT_FOUND, r#"{"error":"not found"}"#),
            E::BadRequest(detail) => problem(StatusCode::BAD_REQUEST, &detail, &[]),
            E::MethodNotAllowed(allow) => {
                let detail = "this path answers the methods in the allow header";
                with(problem(StatusCode::METHOD_NOT_ALLOWED, detail, &[]), "allow", allow)
            }
            E::RequestTimeout => {
                closing(problem(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time", &[]))
            }
            E::PayloadTooLarge(limit) => {
                let detail = format!("the request body is longer than {limit} bytes");
                closing(problem(StatusCode::PAYLOAD_TOO_LARGE, &detail, &[]))
            }
            E::UnsupportedMediaType => problem(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type must be application/json, without a content encoding",
                &[],
            ),
            E::ExpectationFailed => {
                problem(StatusCode::EXPECTATION_FAILED, "the only expectation known is 100-continue", &[])
            }
            E::Unprocessable(errors) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "the request breaks a rule of its fields", &errors)
            }
            E::HeadTooLarge => {
                problem(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the request head is too long", &[])
            }
            E::UnknownCoding => problem(StatusCode::NOT_IMPLEMENTED, "the only transfer coding known is chunked", &[]),
            E::UnknownVersion => problem(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "this server speaks HTTP/1.1", &[]),
            E::Unavailable(detail) => {
                with(problem(StatusCode::SERVICE_UNAVAILABLE, detail, &[]), "retry-after", RETRY_AFTER_S)
            }
            E::Internal(detail) => problem(StatusCode::INTERNAL_SERVER_ERROR, detail, &[]),
        }
    }
}

fn fixed(status: StatusCode, body: &str) -> Reply {
    Reply::of(status, body.into())
}

fn problem(status: StatusCode, detail: &str, errors: &[FieldError]) -> Reply {
    let title = status.canonical_reason().unwrap_or("error");
    let problem = Problem { r#type: "about:blank", title, status: status.as_u16(), detail, errors };
    Reply { media_type: "application/problem+json", ..Reply::json(status, &problem) }
}

fn with(reply: Reply, name: &'static str, value: &'static str) -> Reply {
    Reply { extra: Some(Extra { name, value }), ..reply }
}

/// The rest of the request will not be read: the connection cannot carry another one.
fn closing(reply: Reply) -> Reply {
    Reply { closes: true, ..reply }
}
