//! Which failure gets which answer.
//!
//! Client mistakes carry their detail (RFC 9457 problem documents). What goes wrong on our side is logged to stderr and
//! answered without SQL, paths or stacks. 401 and 404 have the fixed bodies of the contract.

use std::io::Write as _;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde::Serialize;

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
    /// 405: the path exists under another method.
    MethodNotAllowed,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 413: the body is longer than the limit, in bytes.
    PayloadTooLarge(usize),
    /// 415: not `application/json`.
    UnsupportedMediaType,
    /// 422: well-formed, but a field breaks its rule.
    Unprocessable(Vec<FieldError>),
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

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Unauthorized => fixed(StatusCode::UNAUTHORIZED, r#"{"error":"unauthorized"}"#),
            Self::NotFound => fixed(StatusCode::NOT_FOUND, r#"{"error":"not found"}"#),
            Self::BadRequest(detail) => problem(StatusCode::BAD_REQUEST, &detail, &[]),
            Self::MethodNotAllowed => {
                problem(StatusCode::METHOD_NOT_ALLOWED, "this path answers the methods in the allow header", &[])
            }
            Self::RequestTimeout => {
                let response = problem(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time", &[]);
                closing(response)
            }
            Self::PayloadTooLarge(limit) => {
                let detail = format!("the request body is longer than {limit} bytes");
                closing(problem(StatusCode::PAYLOAD_TOO_LARGE, &detail, &[]))
            }
            Self::UnsupportedMediaType => problem(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type must be application/json, without a content encoding",
                &[],
            ),
            Self::Unprocessable(errors) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "the request breaks a rule of its fields", &errors)
            }
            Self::Unavailable(detail) => {
                let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, detail, &[]);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
                response
            }
            Self::Internal(detail) => problem(StatusCode::INTERNAL_SERVER_ERROR, detail, &[]),
        }
    }
}

fn fixed(status: StatusCode, body: &'static str) -> Response<Body> {
    with_type(status, "application/json", Body::from(body))
}

fn problem(status: StatusCode, detail: &str, errors: &[FieldError]) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("error");
    let problem = Problem { r#type: "about:blank", title, status: status.as_u16(), detail, errors };
    let body = serde_json::to_vec(&problem).expect("strings and numbers serialise");
    with_type(status, "application/problem+json", Body::from(body))
}

fn with_type(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The rest of the body will not be read: the connection cannot carry another request.
fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(axum::http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}
