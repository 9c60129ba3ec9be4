//! The reference server's tokens: which ones speak for a user, and that every other is answered alike.

use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};

use headroom::contract::{BENCH_SECRET, EXAMPLE_TOKEN, token};

use crate::served::{Served, on_both_fronts};
use crate::support::TestDatabase;
use crate::wire::{Reply, Wire};

const HS256: &str = r#"{"alg":"HS256"}"#;
const USER_4242: &str =
    r#"{"id":4242,"name":"User 4242","email":"user4242@example.com","age":36,"createdAt":"2023-11-14T23:24:01.000Z"}"#;

fn me(wire: &mut Wire, authorization: &str) -> Reply {
    wire.ask(format!("GET /me HTTP/1.1\r\nhost: t\r\nauthorization: {authorization}\r\n\r\n"))
}

fn accepted(wire: &mut Wire, authorization: &str) {
    let reply = me(wire, authorization);
    assert_eq!((reply.status, reply.body.as_str()), (200, USER_4242), "{authorization}");
}

/// 401, and nothing in it that tells one fault from another.
fn refused(wire: &mut Wire, authorization: &str) {
    let reply = me(wire, authorization);
    let media_type = reply.header("content-type");
    let seen = (reply.status, media_type, reply.body.as_str());
    assert_eq!(seen, (401, Some("application/json"), r#"{"error":"unauthorized"}"#), "{authorization}");
    assert_eq!(reply.head.lines().count(), 4, "status, type, length and date alone: {}", reply.head);
}

fn signed(payload: &str) -> String {
    format!("Bearer {}", token::hs256(HS256, payload, BENCH_SECRET))
}

fn now_s() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

#[test]
fn the_first_request_of_all_may_carry_a_token() {
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let served = Served::start(database.url(), &["--workers", "1", "--http", front]);
        accepted(&mut served.wire(), &format!("Bearer {EXAMPLE_TOKEN}"));
    }
}

#[test]
fn the_algorithm_is_hs256_whatever_the_token_says() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let payload = r#"{"sub":"4242"}"#;
        let text = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let signature = EXAMPLE_TOKEN.rsplit('.').next().unwrap();
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"None"}"#, r#"{"alg":"NONE"}"#, r#"{"alg":""}"#, "{}"] {
            let parts = format!("{}.{}", text(header), text(payload));
            refused(&mut wire, &format!("Bearer {parts}."));
            refused(&mut wire, &format!("Bearer {parts}"));
            refused(&mut wire, &format!("Bearer {parts}.{signature}"));
            // Even where it is signed with the right key.
            refused(&mut wire, &format!("Bearer {}", token::hs256(header, payload, BENCH_SECRET)));
        }
        let key = EncodingKey::from_secret(BENCH_SECRET.as_bytes()).unwrap();
        for algorithm in [Algorithm::HS384, Algorithm::HS512] {
            let claims = serde_json::json!({"sub": "4242"});
            let other = jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap();
            refused(&mut wire, &format!("Bearer {other}"));
        }
        for alg in ["hs256", "RS256", "ES256", "HS384"] {
            let header = format!(r#"{{"alg":"{alg}"}}"#);
            refused(&mut wire, &format!("Bearer {}", token::hs256(&header, payload, BENCH_SECRET)));
        }
        accepted(
            &mut wire,
            &format!("Bearer {}", token::hs256(r#"{"alg":"HS256","typ":"JWT"}"#, payload, BENCH_SECRET)),
        );
    });
}

#[test]
fn times_have_no_leeway() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let now = now_s();
        for expired in [now, now - 1, now - 59, now - 61, 0] {
            refused(&mut wire, &signed(&format!(r#"{{"sub":"4242","exp":{expired}}}"#)));
        }
        // Far enough ahead for the slowest machine.
        accepted(&mut wire, &signed(&format!(r#"{{"sub":"4242","exp":{}}}"#, now + 600)));
        accepted(&mut wire, &signed(&format!(r#"{{"sub":"4242","nbf":{}}}"#, now - 1)));
        refused(&mut wire, &signed(&format!(r#"{{"sub":"4242","nbf":{}}}"#, now + 600)));
        for good in ["4102444800.5", "4102444800.0", "4.1024448e9", "1e300", "18446744073709551615"] {
            accepted(&mut wire, &signed(&format!(r#"{{"sub":"4242","exp":{good}}}"#)));
        }
        for wrong in ["\"4102444800\"", "null", "true", "[4102444800]", "{}", "1e400", "-1", "-1e300", "NaN"] {
            refused(&mut wire, &signed(&format!(r#"{{"sub":"4242","exp":{wrong}}}"#)));
        }
        for wrong in ["\"0\"", "null", "false", "[]", "1e300"] {
            refused(&mut wire, &signed(&format!(r#"{{"sub":"4242","nbf":{wrong}}}"#)));
        }
    });
}

#[test]
fn the_scheme_is_read_in_any_case_and_the_token_in_its_own() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for scheme in ["Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer  ", "BEARER     "] {
            accepted(&mut wire, &format!("{scheme}{EXAMPLE_TOKEN}"));
        }
        // White space around a header's value belongs to the header, not to the value.
        accepted(&mut wire, &format!("  Bearer {EXAMPLE_TOKEN} \t"));
        let other_case: String = EXAMPLE_TOKEN
            .chars()
            .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect();
        let (signed, signature) = EXAMPLE_TOKEN.rsplit_once('.').unwrap();
        for wrong in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            EXAMPLE_TOKEN.to_owned(),
            format!("Token {EXAMPLE_TOKEN}"),
            format!("Basic {EXAMPLE_TOKEN}"),
            format!("Bearer{EXAMPLE_TOKEN}"),
            format!("Bearer\t{EXAMPLE_TOKEN}"),
            format!("Bearer: {EXAMPLE_TOKEN}"),
            format!("Bearer {EXAMPLE_TOKEN} x"),
            format!("Bearer {EXAMPLE_TOKEN},"),
            format!("Bearer x {EXAMPLE_TOKEN}"),
            format!("Bearer \"{EXAMPLE_TOKEN}\""),
            format!("Bearer {EXAMPLE_TOKEN}, Bearer {EXAMPLE_TOKEN}"),
            format!("Bearer {other_case}"),
            format!("Bearer {EXAMPLE_TOKEN}="),
            format!("Bearer {signed}=.{signature}"),
            format!("Bearer {signed}.{signature}."),
            format!("Bearer .{EXAMPLE_TOKEN}"),
            format!("Bearer {signed}."),
            format!("Bearer {signed}"),
            "Bearer ..".to_owned(),
            "Bearer .".to_owned(),
            "Bearer a.b.c".to_owned(),
            format!("Bearer {}", "a".repeat(60_000)),
            format!("Bearer {}", "a.".repeat(30_000)),
        ] {
            refused(&mut wire, &wrong);
        }
        let reply = wire.get("/me");
        assert_eq!((reply.status, reply.body.as_str()), (401, r#"{"error":"unauthorized"}"#));
    });
}

#[test]
fn the_subject_is_the_id_of_a_user() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for sub in [
            "0",
            "-1",
            "+4242",
            "04242",
            " 4242",
            "4242 ",
            "4242.0",
            "4e3",
            "0x10",
            "abc",
            "",
            "2147483648",
            "9223372036854775808",
            "9999999999999999999999999999999999999999",
            "4242\\u0000",
            "\\u0661",
        ] {
            refused(&mut wire, &signed(&format!(r#"{{"sub":"{sub}"}}"#)));
        }
        for payload in [
            "{}",
            r#"{"sub":4242}"#,
            r#"{"sub":null}"#,
            r#"{"sub":["4242"]}"#,
            r#"{"sub":"4242","sub":"1"}"#,
            r#"{"Sub":"4242"}"#,
            // A list in the order of the claims is no object.
            r#"["4242"]"#,
            r#"["4242",null,null]"#,
            r#"["4242",4102444800,0]"#,
            r#""4242""#,
            "null",
            "4242",
            "",
            r#"{"sub":"4242""#,
            r#"{"sub":"4242"}x"#,
            "\u{feff}{\"sub\":\"4242\"}",
        ] {
            refused(&mut wire, &signed(payload));
        }
        for unknown in ["50001", "2147483647"] {
            let reply = me(&mut wire, &signed(&format!(r#"{{"sub":"{unknown}"}}"#)));
            assert_eq!((reply.status, reply.body.as_str()), (404, r#"{"error":"not found"}"#));
        }
        // Escapes are JSON's business, and claims that do not count may be anything.
        accepted(&mut wire, &signed(r#"{"sub":"\u0034242"}"#));
        accepted(&mut wire, &signed(r#" {"aud":["x"],"iss":3,"jti":{},"iat":0,"sub":"4242"} "#));
    });
}

#[test]
fn every_request_is_checked_for_itself() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let good = format!("Bearer {EXAMPLE_TOKEN}");
        let forged = format!("Bearer {}", token::hs256(HS256, r#"{"sub":"4242","iat":0}"#, "another secret"));
        for _ in 0..3 {
            accepted(&mut wire, &good);
            refused(&mut wire, &forged);
        }
        // A signature changed in any one place.
        let at = EXAMPLE_TOKEN.rfind('.').unwrap() + 1;
        for place in at..EXAMPLE_TOKEN.len() {
            let other = if EXAMPLE_TOKEN.as_bytes()[place] == b'A' { "B" } else { "A" };
            refused(&mut wire, &format!("Bearer {}{other}{}", &EXAMPLE_TOKEN[..place], &EXAMPLE_TOKEN[place + 1..]));
        }
        accepted(&mut wire, &good);
    });
}
