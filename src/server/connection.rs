//! One client connection: HTTP/1.1 with its limits, from the first request to the last.

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HOST};
use axum::http::{HeaderValue, Request, Response, Version};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tower_service::Service as _;

use super::config::Limits;
use super::error::ApiError;

/// Serves a connection until its client leaves, a limit ends it or the server stops.
pub(super) async fn serve(stream: TcpStream, router: Router, limits: Limits, stop: Watcher) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move {
            match refusal(&request) {
                None => router.call(request.map(Body::new)).await,
                Some(response) => Ok(response),
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(limits.head_bytes);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or speaks no HTTP is not a fault of the server: hyper has answered what can be answered.
    let _ = stop.watch(connection).await;
}

/// What HTTP/1.1 forbids and hyper lets pass: a request without exactly one `host` (RFC 9112, section 3.2).
///
/// A request framed in two ways at once never gets here as such: hyper drops the length and reads the chunks, which is
/// what section 6.3 asks for.
fn refusal(request: &Request<Incoming>) -> Option<Response<Body>> {
    let hosts = request.headers().get_all(HOST).iter().take(2).count();
    if hosts == 1 || request.version() != Version::HTTP_11 {
        return None;
    }
    let mut response = ApiError::BadRequest("exactly one host header is required".to_owned()).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}
