//! The seven routes: what each reads from the request, and the reply it makes of it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::routing::{get, post};
use serde::Serialize;

use super::auth::Verifier;
use super::body::JsonBody;
use super::error::ApiError;
use super::hash::Hasher;
use super::store::{Store, User};
use super::timestamp::Timestamp;
use super::{parameter, validation};

/// What the handlers of one worker share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) verifier: Verifier,
    pub(super) hasher: Hasher,
    /// Longest body, and how long it may take.
    pub(super) limits: super::config::Limits,
}

type Reply = Result<Response<Body>, ApiError>;

/// All routes of the contract; anything else is 404, a known path under another method 405.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/echo", post(echo))
        .route("/me", get(me))
        .route("/users/{id}", get(user))
        .route("/users", get(list))
        .route("/orders", post(order))
        .route("/cpu", get(cpu))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .with_state(shared)
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

async fn health() -> Reply {
    Ok(json(StatusCode::OK, &Health { status: "ok" }))
}

async fn echo(JsonBody(body): JsonBody) -> Reply {
    Ok(json(StatusCode::OK, &validation::echo(&body)?))
}

async fn me(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Reply {
    let id = shared.verifier.user(&headers)?;
    found(shared.store.user(id).await?)
}

async fn user(State(shared): State<Arc<Shared>>, path: Result<RawPathParams, RawPathParamsRejection>) -> Reply {
    // Escapes that are no UTF-8 are no id either.
    let path = path.ok();
    let id = path.as_ref().and_then(|path| path.iter().next()).and_then(|(_, text)| parameter::id(text));
    let id = id.ok_or_else(|| ApiError::field("id", "must be an integer from 1 to 2147483647"))?;
    found(shared.store.user(id).await?)
}

fn found(user: Option<User>) -> Reply {
    Ok(json(StatusCode::OK, &user.ok_or(ApiError::NotFound)?))
}

#[derive(Serialize)]
struct UserPage {
    page: u32,
    limit: u32,
    items: Vec<User>,
}

async fn list(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Reply {
    let page = parameter::page(query.as_deref())?;
    let items = shared.store.users(i64::from(page.limit), page.offset()).await?;
    Ok(json(StatusCode::OK, &UserPage { page: page.page, limit: page.limit, items }))
}

async fn order(State(shared): State<Arc<Shared>>, JsonBody(body): JsonBody) -> Reply {
    let order = validation::order(&body)?;
    Ok(json(StatusCode::CREATED, &shared.store.insert(&order, Timestamp::now()).await?))
}

#[derive(Serialize)]
struct Hashed<'a> {
    n: u32,
    hash: &'a str,
}

async fn cpu(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Reply {
    let n = parameter::rounds(query.as_deref())?;
    let hash = shared.hasher.hash(n).await?;
    let hash = std::str::from_utf8(&hash).expect("hexadecimal digits are ASCII");
    Ok(json(StatusCode::OK, &Hashed { n, hash }))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    /// Holds every reply but a page of users without growing.
    const USUAL_BYTES: usize = 160;
    let mut body = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut body, value).expect("replies are structs of strings and numbers");
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
