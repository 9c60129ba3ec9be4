//! The requests the load sends: varied from a fixed seed, so that nothing can be answered from memory.

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::{Expected, HASHES, Route, render_user, token};
use crate::dataset::{USERS, user};

/// How much the requests of a route differ from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variety {
    /// Ids, tokens, pages and bodies vary as the contract says, from this seed.
    Seeded(u64),
    /// Only the example of the contract, as published write-ups send it.
    Fixed,
}

/// One request, without what belongs to the connection (`host`, framing).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Path and query, sent verbatim.
    pub target: String,
    /// Headers besides `host` and `content-length`, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Empty for GET.
    pub body: Vec<u8>,
    /// The reply it must get.
    pub expected: Expected,
}

/// Users that have a token in the load.
const TOKENS: u32 = 1_000;
/// Bodies of `echo` and `order`, all of equal length.
const BODIES: u32 = 400;
/// Pages of `list`: a far page costs Postgres a long scan, which would hide the server.
const PAGES: u32 = 20;
const LIMIT: u32 = 20;
const CURRENCIES: [&str; 3] = ["USD", "EUR", "GBP"];

/// The requests of a route in the order they are to be sent, again from the start when they run out.
pub fn requests(route: Route, variety: Variety, secret: &str) -> Vec<Request> {
    let Variety::Seeded(seed) = variety else { return vec![example(route, secret)] };
    let mut random = StdRng::seed_from_u64(seed);
    let mut requests: Vec<Request> = match route {
        Route::Health | Route::Cpu => return vec![example(route, secret)],
        Route::Echo => (0..BODIES).map(echo_variant).collect(),
        Route::Me => {
            let mut ids: Vec<u32> = (1..=USERS).collect();
            let (chosen, _) = ids.partial_shuffle(&mut random, TOKENS as usize);
            chosen.iter().map(|&id| me(id, secret)).collect()
        }
        Route::User => (1..=USERS).map(one_user).collect(),
        Route::List => (1..=PAGES).map(|page| list(page, LIMIT)).collect(),
        Route::Order => (0..BODIES).map(|k| order_variant(k, random.random_range(10_000..=USERS))).collect(),
    };
    requests.shuffle(&mut random);
    requests
}

/// The example of the contract's table.
fn example(route: Route, secret: &str) -> Request {
    match route {
        Route::Health => get("/health".to_owned(), r#"{"status":"ok"}"#.to_owned()),
        Route::Echo => echo("Jane Doe", "jane@example.com", 30),
        Route::Me => me(4242, secret),
        Route::User => one_user(4242),
        Route::List => list(7, 20),
        Route::Order => order(4242, 1999, "USD"),
        Route::Cpu => {
            let (n, hash) = HASHES[3];
            get(format!("/cpu?n={n}"), format!(r#"{{"n":{n},"hash":"{hash}"}}"#))
        }
    }
}

fn get(target: String, body: String) -> Request {
    Request {
        method: "GET",
        target,
        headers: Vec::new(),
        body: Vec::new(),
        expected: Expected::Exact(body.into_bytes()),
    }
}

fn post(target: &str, body: String, expected: Expected) -> Request {
    let headers = vec![("content-type", "application/json".to_owned())];
    Request { method: "POST", target: target.to_owned(), headers, body: body.into_bytes(), expected }
}

fn one_user(id: u32) -> Request {
    get(format!("/users/{id}"), render_user(&user(id)))
}

fn me(id: u32, secret: &str) -> Request {
    let mut request = get("/me".to_owned(), render_user(&user(id)));
    request.headers.push(("authorization", format!("Bearer {}", token::for_user(id, secret))));
    request
}

fn list(page: u32, limit: u32) -> Request {
    let first = (page - 1) * limit + 1;
    let items: Vec<String> = (first..first + limit).map(|id| render_user(&user(id))).collect();
    get(
        format!("/users?page={page}&limit={limit}"),
        format!(r#"{{"page":{page},"limit":{limit},"items":[{}]}}"#, items.join(",")),
    )
}

fn echo(name: &str, email: &str, age: u32) -> Request {
    let body = format!(r#"{{"name":"{name}","email":"{email}","age":{age},"tags":["a","b"]}}"#);
    post("/echo", body.clone(), Expected::Exact(body.into_bytes()))
}

fn echo_variant(k: u32) -> Request {
    echo(&format!("Jane {k:03}"), &format!("j{k:03}@example.com"), 10 + k % 90)
}

fn order(user_id: u32, cents: u32, currency: &'static str) -> Request {
    let amount = format!("{}.{:02}", cents / 100, cents % 100);
    let body = format!(r#"{{"userId":{user_id},"amount":{amount},"currency":"{currency}"}}"#);
    post("/orders", body, Expected::Order { user_id, amount, currency })
}

/// Amounts of four digits that do not end in zero: as JSON numbers they read back as they were written.
fn order_variant(k: u32, user_id: u32) -> Request {
    order(user_id, 1_001 + (k * 7) % 8_990 / 10 * 10, CURRENCIES[k as usize % CURRENCIES.len()])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::contract::BENCH_SECRET;

    #[test]
    fn the_examples_are_those_of_the_contract() {
        let order = example(Route::Order, BENCH_SECRET);
        assert_eq!(order.body, br#"{"userId":4242,"amount":19.99,"currency":"USD"}"#);
        let echo = example(Route::Echo, BENCH_SECRET);
        assert_eq!(echo.body, br#"{"name":"Jane Doe","email":"jane@example.com","age":30,"tags":["a","b"]}"#);
        assert_eq!(example(Route::Cpu, BENCH_SECRET).target, "/cpu?n=15000");
    }

    #[test]
    fn requests_vary_as_the_contract_says() {
        let distinct = |route| {
            let requests = requests(route, Variety::Seeded(1), BENCH_SECRET);
            requests.iter().map(|r| (r.target.clone(), r.headers.clone(), r.body.clone())).collect::<HashSet<_>>().len()
        };
        assert_eq!(Route::ALL.map(distinct), [1, 400, 1_000, 50_000, 20, 400, 1]);
    }

    #[test]
    fn bodies_of_a_route_have_equal_length() {
        for route in [Route::Echo, Route::Order] {
            let lengths: HashSet<usize> =
                requests(route, Variety::Seeded(7), BENCH_SECRET).iter().map(|r| r.body.len()).collect();
            assert_eq!(lengths.len(), 1, "{route}: {lengths:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_seed_others() {
        let of = |seed| requests(Route::User, Variety::Seeded(seed), BENCH_SECRET);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn fixed_sends_the_example_alone() {
        for route in Route::ALL {
            assert_eq!(requests(route, Variety::Fixed, BENCH_SECRET), [example(route, BENCH_SECRET)]);
        }
    }
}
