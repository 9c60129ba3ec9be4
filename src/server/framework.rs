//! axum over hyper: the front a Rust team writes first, measured beside our own (`http`).
//!
//! Both fronts read and answer through `routes`; what is here is what a framework asks for.

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HOST};
use axum::http::{HeaderMap, HeaderValue, Method as HttpMethod, Response, Uri, Version};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service as _;

use super::config::{DRAINED_BYTES, Limits};
use super::error::ApiError;
use super::http::Stop;
use super::reply::Reply;
use super::routes::{Given, Looked, Method, Shared, TOO_SLOW, Target, is_json};

/// Serves a connection until its client leaves, a limit ends it or the server stops.
pub(super) async fn serve(stream: TcpStream, router: Router, limits: Limits, stop: Arc<Stop>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        async move {
            match refusal(&request) {
                None => router.call(request.map(Body::new)).await,
                Some(response) => Ok(response),
            }
        }
    });
    let mut builder = http1::Builder::new();
    // hyper has one timer for the wait for a request and for its head.
    builder.timer(TokioTimer::new()).header_read_timeout(limits.idle_time).max_buf_size(limits.head_bytes);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that breaks off or speaks no HTTP is not a fault of the server: hyper has answered what can be answered.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.wait() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// What HTTP/1.1 forbids and hyper lets pass: a request without exactly one `host` (RFC 9112, section 3.2).
///
/// A request framed in two ways at once never gets here as such: hyper drops the length and reads the chunks, which is
/// what section 6.3 asks for.
fn refusal(request: &hyper::Request<Incoming>) -> Option<Response<Body>> {
    let hosts = request.headers().get_all(HOST).iter().take(2).count();
    if hosts == 1 || request.version() != Version::HTTP_11 {
        return None;
    }
    let refused = Reply::from(ApiError::BadRequest("exactly one host header is required".to_owned()));
    Some(Reply { closes: true, ..refused }.into_response())
}

type Answer = Result<Reply, ApiError>;

/// All routes of the contract; anything else is 404, a known path under another method 405.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(read))
        .route("/echo", post(write))
        .route("/me", get(read))
        .route("/users/{id}", get(read))
        .route("/users", get(read))
        .route("/orders", post(write))
        .route("/cpu", get(read))
        .fallback(refuse)
        .method_not_allowed_fallback(refuse)
        .with_state(shared)
}

/// A route without a body.
async fn read(State(shared): State<Arc<Shared>>, method: HttpMethod, uri: Uri, headers: HeaderMap) -> Answer {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let authorization = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
    respond(&shared, &method, &uri, &Given { authorization, is_json: false, body: &[] }).await
}

/// A route with one.
async fn write(State(shared): State<Arc<Shared>>, method: HttpMethod, uri: Uri, JsonBody(body): JsonBody) -> Answer {
    respond(&shared, &method, &uri, &Given { authorization: None, is_json: true, body: &body }).await
}

async fn respond(shared: &Shared, method: &HttpMethod, uri: &Uri, given: &Given<'_>) -> Answer {
    match shared.read(target(method, uri).route()?, given)? {
        Looked::Answered(reply) => Ok(reply),
        Looked::Waits(work) => match timeout(shared.limits.request_time, shared.answer(work)).await {
            Ok(answer) => answer,
            Err(_) => Err(ApiError::Unavailable(TOO_SLOW)),
        },
    }
}

async fn refuse(method: HttpMethod, uri: Uri) -> ApiError {
    target(&method, &uri).route().err().unwrap_or(ApiError::NotFound)
}

fn target<'a>(method: &HttpMethod, uri: &'a Uri) -> Target<'a> {
    Target {
        method: Method::from_name(method.as_str()),
        path: uri.path().as_bytes(),
        query: uri.query().map(str::as_bytes),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        Reply::from(self).into_response()
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if let Some(extra) = self.extra {
            headers.insert(extra.name, HeaderValue::from_static(extra.value));
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The bytes of a body that says it is JSON.
struct JsonBody(Bytes);

impl FromRequest<Arc<Shared>> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let bytes = |name| head.headers.get(name).map(HeaderValue::as_bytes);
        if !is_json(bytes(CONTENT_TYPE), bytes(CONTENT_ENCODING)) {
            return Err(ApiError::UnsupportedMediaType);
        }
        let limits = &shared.limits;
        match timeout(limits.body_time, collect(body, &head.headers, limits.body_bytes)).await {
            Ok(body) => body.map(Self),
            Err(_) => Err(ApiError::RequestTimeout),
        }
    }
}

async fn collect(mut body: Body, headers: &HeaderMap, limit: usize) -> Result<Bytes, ApiError> {
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
