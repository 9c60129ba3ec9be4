//! Request bodies: only JSON, only up to the limit, only as long as it may take.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::error::ApiError;
use super::routes::Shared;

/// How much of an over-long body is read away before it is refused, so that a client that is still writing can read the
/// 413 instead of a reset connection.
const DRAINED_BYTES: u64 = 8 * 1024 * 1024;

/// The bytes of a body that says it is JSON.
pub(super) struct JsonBody(pub(super) Bytes);

impl FromRequest<Arc<Shared>> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let is_encoded = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if !is_json(head.headers.get(CONTENT_TYPE)) || is_encoded {
            return Err(ApiError::UnsupportedMediaType);
        }
        let limits = &shared.limits;
        match timeout(limits.body_time, read(body, &head.headers, limits.body_bytes)).await {
            Ok(body) => body.map(Self),
            Err(_) => Err(ApiError::RequestTimeout),
        }
    }
}

/// `application/json` in any case, with or without parameters (RFC 9110, section 8.3.1).
fn is_json(content_type: Option<&HeaderValue>) -> bool {
    let essence = content_type.and_then(|value| value.to_str().ok()).and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

async fn read(mut body: Body, headers: &HeaderMap, limit: usize) -> Result<Bytes, ApiError> {
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        // A client that asked first has sent nothing yet, and is told no before it does.
        if !headers.contains_key(EXPECT) {
            drain(&mut body).await;
        }
        return Err(ApiError::PayloadTooLarge(limit));
    }
    let first = next(&mut body).await?.unwrap_or_default();
    if body.is_end_stream() && first.len() <= limit {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    loop {
        if whole.len() > limit {
            drain(&mut body).await;
            return Err(ApiError::PayloadTooLarge(limit));
        }
        match next(&mut body).await? {
            Some(bytes) => whole.extend_from_slice(&bytes),
            None => return Ok(whole.freeze()),
        }
    }
}

/// The next piece of data; trailers are read over.
async fn next(body: &mut Body) -> Result<Option<Bytes>, ApiError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::BadRequest("the body ended early or is framed wrongly".to_owned()))?;
        if let Ok(bytes) = frame.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

async fn drain(body: &mut Body) {
    let mut drained = 0;
    while drained < DRAINED_BYTES {
        match next(body).await {
            Ok(Some(bytes)) => drained += bytes.len() as u64,
            Ok(None) | Err(_) => return,
        }
    }
}
