//! Servers that miss one thing: the real one, seen through a proxy that changes it.

#![expect(clippy::unwrap_used, reason = "a test ends where one of its parts cannot go on")]

use headroom::contract::BENCH_SECRET;
use headroom::contract::token::for_user;

use super::edits::{
    edited, id_and_name, made_up, mixed_under_concurrency, page_and_limit, remembered, repaired, signed_again,
};
use super::proxy::{Handler, Message};

/// A server that misses one thing.
#[derive(Debug)]
pub(super) struct Mutant {
    /// What is wrong with it.
    pub(super) what: &'static str,
    /// Checks that must fail, each by its id.
    pub(super) caught_by: &'static [&'static str],
    pub(super) handler: Handler,
}

/// What the gate sees without a database.
pub(super) const SEEN_FROM_OUTSIDE: &[Mutant] = &[
    Mutant {
        what: "health answers 202",
        caught_by: &["health-body-differs"],
        handler: |request, ask, _| {
            let reply = ask(&request);
            if request.is("GET", "/health") { Message { start: "HTTP/1.1 202 X".to_owned(), ..reply } } else { reply }
        },
    },
    Mutant {
        what: "one byte of health is another",
        caught_by: &["health-body-differs"],
        handler: |request, ask, _| edited(&request, ask, "/health", r#""ok""#, r#""oK""#),
    },
    Mutant {
        what: "keys of a user in another order",
        caught_by: &["user-row-differs", "user-rows-mixed-under-concurrency"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if let (true, Some((id, name))) = (request.target().starts_with("/users/"), id_and_name(&reply.body)) {
                reply.body = reply.body.replacen(&format!("{id},{name}"), &format!("{name},{id}"), 1);
            }
            reply
        },
    },
    Mutant {
        what: "a column more in the rows of a list, and nowhere else",
        caught_by: &["list-page-differs", "list-defaults-differ"],
        handler: |request, ask, _| edited(&request, ask, "/users", r#".000Z"},"#, r#".000Z","role":null},"#),
    },
    Mutant {
        what: "the age of a user as a string",
        caught_by: &["user-row-differs"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if let Some((before, rest)) = reply.body.clone().split_once(r#""age":"#) {
                let (age, after) = rest.split_once(',').unwrap();
                if request.target().starts_with("/users/") {
                    reply.body = format!(r#"{before}"age":"{age}",{after}"#);
                }
            }
            reply
        },
    },
    Mutant {
        what: "times without milliseconds",
        caught_by: &["user-row-differs", "me-row-differs", "list-page-differs"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            reply.body = reply.body.replace(".000Z", "Z");
            reply
        },
    },
    Mutant {
        what: "pages off by one",
        caught_by: &["list-page-differs"],
        handler: |mut request, ask, _| {
            let Some((page, limit)) = page_and_limit(request.target()) else { return ask(&request) };
            request.set_target(&format!("/users?page={}&limit={limit}", page + 1));
            let mut reply = ask(&request);
            reply.body = reply.body.replacen(&format!(r#""page":{}"#, page + 1), &format!(r#""page":{page}"#), 1);
            reply
        },
    },
    Mutant {
        what: "a default limit of 10",
        caught_by: &["list-defaults-differ"],
        handler: |mut request, ask, _| {
            if request.is("GET", "/users") {
                request.set_target("/users?limit=10");
            }
            ask(&request)
        },
    },
    Mutant {
        what: "the row of the next user",
        caught_by: &["user-row-differs"],
        handler: |mut request, ask, _| {
            if let Some(Ok(id)) = request.target().strip_prefix("/users/").map(str::parse::<u32>) {
                request.set_target(&format!("/users/{}", if id == 50_000 { 1 } else { id.saturating_add(1) }));
            }
            ask(&request)
        },
    },
    Mutant {
        what: "authorization ignored",
        caught_by: &["me-accepts-no-header", "me-accepts-wrong-signature", "me-accepts-alg-none", "me-row-differs"],
        handler: |mut request, ask, _| {
            request.set_header("authorization", &format!("Bearer {}", for_user(4242, BENCH_SECRET)));
            ask(&request)
        },
    },
    Mutant {
        what: "signatures not looked at",
        caught_by: &["me-accepts-wrong-signature", "me-accepts-swapped-payload", "me-caches-verification"],
        handler: |request, ask, _| ask(&signed_again(request, |_| true)),
    },
    Mutant {
        what: "HS512 taken for HS256",
        caught_by: &["me-accepts-hs512"],
        handler: |request, ask, _| ask(&signed_again(request, |header| header.contains("HS512"))),
    },
    Mutant {
        what: "401 with a body of its own",
        caught_by: &["me-accepts-no-header", "me-accepts-expired"],
        handler: |request, ask, _| edited(&request, ask, "/me", "unauthorized", "token expired"),
    },
    Mutant {
        what: "me answered from memory, whoever asks",
        caught_by: &["me-row-differs", "me-accepts-no-header"],
        handler: |request, ask, state| remembered(request.target().to_owned(), "/me", &request, ask, state),
    },
    Mutant {
        what: "the same order answered from memory",
        caught_by: &["order-replayed", "order-ids-not-increasing"],
        handler: |request, ask, state| remembered(request.body.clone(), "/orders", &request, ask, state),
    },
    Mutant {
        what: "rows mixed up while many are asked for",
        caught_by: &["user-rows-mixed-under-concurrency"],
        handler: |request, ask, state| mixed_under_concurrency(&request, ask, state),
    },
    Mutant {
        what: "unknown keys kept in echo",
        caught_by: &["echo-leaks-unknown-key"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if request.is("POST", "/echo") && reply.status() == 200 && request.body.contains(r#""role":"admin""#) {
                reply.body = reply.body.replace('}', r#","role":"admin"}"#);
            }
            reply
        },
    },
    Mutant {
        what: "a string taken for a number",
        caught_by: &["echo-coerces-age-string"],
        handler: |request, ask, _| ask(&repaired(request, r#""age":"30""#, r#""age":30"#)),
    },
    Mutant {
        what: "null taken for 0",
        caught_by: &["echo-accepts-null-age"],
        handler: |request, ask, _| ask(&repaired(request, r#""age":null"#, r#""age":0"#)),
    },
    Mutant {
        what: "a fraction cut off",
        caught_by: &["echo-accepts-age-fraction"],
        handler: |request, ask, _| ask(&repaired(request, r#""age":3.5"#, r#""age":3"#)),
    },
    Mutant {
        what: "a body read without its content type",
        caught_by: &["echo-accepts-missing-content-type", "order-accepts-missing-content-type"],
        handler: |mut request, ask, _| {
            if request.method() == "POST" && request.header("content-type").is_none() {
                request.set_header("content-type", "application/json");
            }
            ask(&request)
        },
    },
    Mutant {
        what: "a charset refused",
        caught_by: &["echo-refuses-charset", "order-refuses-charset"],
        handler: |request, ask, _| {
            if request.header("content-type").is_some_and(|value| value.contains("charset")) {
                return Message::reply(415, "{}");
            }
            ask(&request)
        },
    },
    Mutant {
        what: "malformed JSON answered 500",
        caught_by: &["echo-malformed-json-not-400", "client-mistake-answered-500"],
        handler: |request, ask, _| {
            let reply = ask(&request);
            if reply.status() == 400 && request.body == "{" { Message::reply(500, "{}") } else { reply }
        },
    },
    Mutant {
        what: "the framework's own page for an unknown path",
        caught_by: &["path-unknown-not-404"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if request.target() == "/nope" {
                reply.set_header("content-type", "text/html");
                reply.body = String::from("<pre>Cannot GET /nope</pre>");
            }
            reply
        },
    },
    Mutant {
        what: "an error that shows its statement",
        caught_by: &["error-shows-internals"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if reply.status() == 422 && request.target() == "/users/2147483648" {
                reply.body =
                    String::from(r#"{"error":"Failed query: select \"id\" from \"users\" where \"id\" = $1"}"#);
            }
            reply
        },
    },
    Mutant {
        what: "2147483648 left to the database",
        caught_by: &["user-accepts-int4-overflow", "client-mistake-answered-500"],
        handler: |request, ask, _| {
            if request.target() == "/users/2147483648" {
                return Message::reply(500, r#"{"error":"internal"}"#);
            }
            ask(&request)
        },
    },
    Mutant {
        what: "ties rounded to even",
        caught_by: &["order-rounds-tie-to-even"],
        handler: |request, ask, _| edited(&request, ask, "/orders", r#""0.13""#, r#""0.12""#),
    },
    Mutant {
        what: "an amount as a number",
        caught_by: &["order-reply-differs", "order-rounds-tie-to-even"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if let (true, Some((before, rest))) =
                (reply.status() == 201, reply.body.clone().split_once(r#""amount":""#))
            {
                let (amount, after) = rest.split_once('"').unwrap();
                reply.body = format!(r#"{before}"amount":{amount}{after}"#);
            }
            reply
        },
    },
    Mutant {
        what: "times of orders in whole seconds",
        caught_by: &["order-clock-of-whole-seconds"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if let (201, Some(at)) = (reply.status(), reply.body.find("Z\"}")) {
                reply.body.replace_range(at - 3..at, "000");
            }
            reply
        },
    },
    Mutant {
        what: "a currency that defaults to USD",
        caught_by: &["order-defaults-missing-currency"],
        handler: |mut request, ask, _| {
            if request.is("POST", "/orders") && request.body.ends_with(r#""amount":19.99}"#) {
                request.body = request.body.replace('}', r#","currency":"USD"}"#);
            }
            ask(&request)
        },
    },
    Mutant {
        what: "a hash that is wrong for n=100",
        caught_by: &["cpu-hundredth-hash-differs"],
        handler: |request, ask, _| edited(&request, ask, "/cpu?n=100", "83f6", "83f7"),
    },
    Mutant {
        what: "hashes known only for the published n",
        caught_by: &["cpu-any-hash-differs"],
        handler: |mut request, ask, _| {
            let n = request.target().strip_prefix("/cpu?n=").and_then(|n| n.parse::<u32>().ok());
            let Some(n) = n.filter(|n| (3..15_000).contains(n) && *n != 100) else { return ask(&request) };
            request.set_target("/cpu?n=100");
            let mut reply = ask(&request);
            reply.body = reply.body.replacen("100", &n.to_string(), 1);
            reply
        },
    },
    Mutant {
        what: "a connection closed after every reply",
        caught_by: &["wire-connection-not-kept"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            reply.set_header("connection", "close");
            reply
        },
    },
];

/// What only the database shows.
pub(super) const SEEN_IN_DATABASE: &[Mutant] = &[
    Mutant {
        what: "orders confirmed and not stored",
        caught_by: &["order-not-stored-as-answered", "order-count-differs"],
        handler: |request, ask, state| match made_up(&request, state) {
            Some(reply) => reply,
            None => ask(&request),
        },
    },
    Mutant {
        what: "orders stored twice",
        caught_by: &["order-count-differs"],
        handler: |request, ask, _| {
            if request.is("POST", "/orders") && request.header("content-type").is_some() {
                ask(&request);
            }
            ask(&request)
        },
    },
    Mutant {
        what: "an order refused and stored all the same",
        caught_by: &["order-refused-yet-stored", "order-count-differs"],
        handler: |request, ask, _| {
            let reply = ask(&request);
            if reply.status() == 422 && request.is("POST", "/orders") && request.body.contains("JPY") {
                ask(&repaired(request, "JPY", "USD"));
            }
            reply
        },
    },
    Mutant {
        what: "an answer of another time than the stored one",
        caught_by: &["order-not-stored-as-answered"],
        handler: |request, ask, _| {
            let mut reply = ask(&request);
            if let (201, Some(at)) = (reply.status(), reply.body.find("Z\"}")) {
                let last = if reply.body.as_bytes()[at - 1] == b'1' { "2" } else { "1" };
                reply.body.replace_range(at - 1..at, last);
            }
            reply
        },
    },
];
