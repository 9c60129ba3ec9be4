//! The reference server's input: bodies, paths and query strings that somebody's server once answered wrongly.

use crate::served::{Served, on_both_fronts};
use crate::session::Session;
use crate::support::TestDatabase;
use crate::wire::{Reply, Wire};

const ORDER: &str = r#"{"userId":4242,"amount":19.99,"currency":"USD"}"#;
const ECHO: &str = r#"{"name":"Jane Doe","email":"jane@example.com","age":30,"tags":["a","b"]}"#;

/// An answer of the contract's shape: JSON, with a problem document where the contract fixes no body.
fn check(reply: &Reply, status: u16, request: &str) {
    assert_eq!(reply.status, status, "{request}: {}", reply.body);
    let media_type =
        if matches!(status, 200 | 201 | 401 | 404) { "application/json" } else { "application/problem+json" };
    assert_eq!(reply.header("content-type"), Some(media_type), "{request}");
    let body: serde_json::Value = serde_json::from_str(&reply.body).expect("a JSON body");
    if media_type == "application/problem+json" {
        assert_eq!(body["status"], status, "{request}");
    }
    for word in ["SELECT", "INSERT", "postgres", "src/", ".rs", "panicked"] {
        assert!(!reply.body.contains(word), "{request} shows {word}: {}", reply.body);
    }
}

fn post(wire: &mut Wire, target: &str, headers: &str, body: &[u8]) -> Reply {
    let mut request =
        format!("POST {target} HTTP/1.1\r\nhost: t\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    request.extend_from_slice(body);
    wire.ask(request)
}

fn echo_with(field: &str, value: &str) -> String {
    let mut fields = [("name", r#""x""#), ("email", r#""x@example.com""#), ("age", "1"), ("tags", "[]")];
    for (name, old) in &mut fields {
        if *name == field {
            *old = value;
        }
    }
    format!("{{{}}}", fields.map(|(name, value)| format!(r#""{name}":{value}"#)).join(","))
}

fn order_with(field: &str, value: &str) -> String {
    let mut fields = [("userId", "1"), ("amount", "1"), ("currency", r#""USD""#)];
    for (name, old) in &mut fields {
        if *name == field {
            *old = value;
        }
    }
    format!("{{{}}}", fields.map(|(name, value)| format!(r#""{name}":{value}"#)).join(","))
}

/// Rows of `orders` beyond the seed.
fn new_orders(database: &TestDatabase) -> i64 {
    Session::connect(database.url()).number("SELECT count(*) FROM orders WHERE id > 200000")
}

#[test]
fn bodies_that_are_no_json_are_400() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for target in ["/echo", "/orders"] {
            for body in [
                "",
                " ",
                "{",
                "}",
                "{]",
                "{}x",
                "{}{}",
                "[",
                "nul",
                "'x'",
                "{'a':1}",
                "{a:1}",
                "{\"a\"}",
                "{\"a\":1,}",
                "// x\n{}",
            ] {
                check(&wire.post(target, body), 400, body);
            }
            // JSON, and none of it an object.
            for body in ["null", "true", "1", "\"x\"", "[]", "[{}]"] {
                check(&wire.post(target, body), 422, body);
            }
            check(&wire.post(target, "{}"), 422, "{}");
            check(&wire.post(target, &"[".repeat(60_000)), 400, "nested lists");
            check(&wire.post(target, &r#"{"a":"#.repeat(12_000)), 400, "nested objects");
            // A deep value that nobody looks at is JSON all the same.
            let deep = format!(r#"{{"x":{}1{}}}"#, "[".repeat(30_000), "]".repeat(30_000));
            check(&wire.post(target, &deep), 422, "a deep value");
        }
    });
}

#[test]
fn bodies_whose_bytes_are_wrong_are_400() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let json = "content-type: application/json\r\n";
        let marked = [b"\xef\xbb\xbf", ECHO.as_bytes()].concat();
        let utf16: Vec<u8> = ECHO.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let overlong = [b"{\"name\":\"\xc0\x80\"".as_slice(), b"}"].concat();
        for body in [&marked[..], &utf16, &overlong, b"{\"x\":\"\xff\"}", b"{\"x\":\"\xed\xa0\x80\"}", b"{\"\xff\":1}"]
        {
            check(&post(&mut wire, "/echo", json, body), 400, &String::from_utf8_lossy(body));
        }
        for name in
            [r#""\ud800""#, r#""\udc00\ud800""#, r#""\ud800x""#, r#""\x41""#, r#""\u12""#, "\"\t\"", "\"\n\"", "\"\0\""]
        {
            check(&wire.post("/echo", &echo_with("name", name)), 400, name);
        }
        let echoed = wire.post("/echo", &echo_with("name", r#""\u0000\ud83e\udd80é""#));
        check(&echoed, 200, "NUL and a pair");
        let body: serde_json::Value = serde_json::from_str(&echoed.body).unwrap();
        assert_eq!(body["name"], "\0🦀é");
    });
}

#[test]
fn the_content_type_decides_whether_a_body_is_read() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for target in ["/echo", "/orders"] {
            let (body, status) = if target == "/echo" { (ECHO, 200) } else { (ORDER, 201) };
            for value in [
                "application/json",
                "application/json; charset=utf-8",
                "application/json;charset=UTF-8",
                "Application/JSON",
            ] {
                let header = format!("content-type: {value}\r\n");
                check(&post(&mut wire, target, &header, body.as_bytes()), status, value);
            }
            for value in [
                "text/plain",
                "",
                "application/x-www-form-urlencoded",
                "multipart/form-data; boundary=x",
                "application/json5",
                "text/json",
                "json",
            ] {
                let header = format!("content-type: {value}\r\n");
                check(&post(&mut wire, target, &header, body.as_bytes()), 415, value);
            }
            check(&post(&mut wire, target, "", body.as_bytes()), 415, "no type");
            check(&post(&mut wire, target, "", b""), 415, "no type, no body");
            check(&post(&mut wire, target, "", b"{"), 415, "no type, no JSON");
        }
    });
}

#[test]
fn a_key_given_twice_is_400() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let before = &ECHO[..ECHO.len() - 1];
        for twice in [
            format!(r#"{before},"name":"Other"}}"#),
            format!(r#"{before},"name":"Jane Doe"}}"#),
            format!(r#"{before},"n\u0061me":"Other"}}"#),
            format!(r#"{before},"x":1,"x":2}}"#),
            format!(r#"{before},"x":1,"\u0078":1}}"#),
            format!(r#"{before},"":1,"":1}}"#),
        ] {
            check(&wire.post("/echo", &twice), 400, &twice);
        }
        // Inside a value that nobody looks at it is nobody's business; other spellings are other keys.
        for fine in [
            format!(r#"{before},"x":{{"y":1,"y":2}}}}"#),
            format!(r#"{before},"Name":"x"}}"#),
            format!(r#"{before},"__proto__":{{}}}}"#),
        ] {
            let reply = wire.post("/echo", &fine);
            check(&reply, 200, &fine);
            assert_eq!(reply.body, ECHO);
        }
    });
}

#[test]
fn numbers_are_neither_coerced_nor_rounded() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for (age, read) in [
            ("3", "3"),
            ("3.0", "3"),
            ("3e0", "3"),
            ("30E-1", "3"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e9", "0"),
            ("150", "150"),
        ] {
            let reply = wire.post("/echo", &echo_with("age", age));
            check(&reply, 200, age);
            assert!(reply.body.contains(&format!(r#""age":{read},"#)), "{age}: {}", reply.body);
        }
        for age in [
            "3.5",
            "3.0000001",
            "150.5",
            "151",
            "-1",
            "9007199254740993",
            "18446744073709551616",
            "1e300",
            "\"3\"",
            "true",
            "null",
            "[3]",
            "{}",
        ] {
            check(&wire.post("/echo", &echo_with("age", age)), 422, age);
        }
        // No number of JSON, or none that there is: never a null in the echo.
        for age in ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "03", "+3", "3.", ".3", "0x3", "3e", "1_0"] {
            check(&wire.post("/echo", &echo_with("age", age)), 400, age);
            check(&wire.post("/orders", &order_with("amount", age)), 400, age);
        }
        for (amount, stored) in [
            ("0.125", "0.13"),
            ("1.005", "1.00"),
            ("-0", "0.00"),
            ("9999999999.99", "9999999999.99"),
            ("1e2", "100.00"),
            ("5e-324", "0.00"),
        ] {
            let reply = wire.post("/orders", &order_with("amount", amount));
            check(&reply, 201, amount);
            assert!(reply.body.contains(&format!(r#""amount":"{stored}","#)), "{amount}: {}", reply.body);
        }
        for amount in ["10000000000", "-0.01", "1e300", "\"1\"", "null"] {
            check(&wire.post("/orders", &order_with("amount", amount)), 422, amount);
        }
    });
}

#[test]
fn refused_orders_leave_no_row_and_no_broken_connection() {
    let database = TestDatabase::new();
    for (front, store) in [("own", "pipelined"), ("axum", "pipelined"), ("own", "sqlx")] {
        let before = new_orders(&database);
        let flags = ["--workers", "1", "--connections", "1", "--http", front, "--store", store];
        let served = Served::start(database.url(), &flags);
        let mut wire = served.wire();
        for (field, value) in [
            ("currency", r#""US\u0000""#),
            ("currency", r#""\u0000""#),
            ("currency", r#""usd""#),
            ("currency", r#""USDX""#),
            ("currency", r#"" USD""#),
            ("currency", "null"),
            ("userId", "0"),
            ("userId", "-1"),
            ("userId", "1.5"),
            ("userId", "2147483648"),
            ("userId", "9223372036854775807"),
            ("userId", "9223372036854775808"),
            ("userId", "9999999999999999999999999999999999999999"),
            ("userId", "\"1\""),
            // A user that does not exist is for Postgres to find.
            ("userId", "50001"),
            ("userId", "2147483647"),
        ] {
            check(&wire.post("/orders", &order_with(field, value)), 422, value);
            check(&wire.post("/orders", ORDER), 201, "the order after it");
        }
        assert_eq!(new_orders(&database) - before, 16, "{front} {store}");
    }
}

#[test]
fn ids_in_paths_are_strict() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for id in ["1", "%31", "50000", "5000%30"] {
            check(&wire.get(&format!("/users/{id}")), 200, id);
        }
        for id in ["50001", "2147483647"] {
            check(&wire.get(&format!("/users/{id}")), 404, id);
        }
        for id in [
            "abc",
            "0",
            "-1",
            "+1",
            "01",
            "1.5",
            "1.0",
            "1e3",
            "0x10",
            "%201",
            "1%20",
            "1%0A",
            "1%0D%0A",
            "%2B1",
            "1+",
            "%zz",
            "%FF",
            "%",
            "%3",
            "1%",
            "1%2F2",
            "1%00",
            "%00",
            "%2531",
            "%C0%B1",
            "%EF%BC%91",
            "1;x",
            "1,2",
            "1'",
            "2147483648",
            "9223372036854775807",
            "9223372036854775808",
            &"9".repeat(40),
            &"1".repeat(120),
            &"%31".repeat(11),
            "..",
            "%2e%2e",
            "*",
        ] {
            check(&wire.get(&format!("/users/{id}")), 422, id);
        }
    });
}

#[test]
fn paths_are_exact() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for target in ["/health", "/health?", "/health?x", "/health?x=%zz&&=", "/users/1?x=1", "/users?"] {
            check(&wire.get(target), 200, target);
        }
        for target in [
            "/",
            "/HEALTH",
            "/Health",
            "/health/",
            "//health",
            "/health//",
            "/./health",
            "/x/../health",
            "/health%3Fx",
            "/%68ealth",
            "/health;x",
            "/users/",
            "/users/1/",
            "/users/1/orders",
            "//users/1",
            "/users//1",
            "/Users/1",
            "/?/health",
        ] {
            let reply = wire.get(target);
            check(&reply, 404, target);
            assert_eq!((reply.body.as_str(), reply.header("location")), (r#"{"error":"not found"}"#, None), "{target}");
        }
    });
}

#[test]
fn query_keys_are_read_once_and_strictly() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let first_page = wire.get("/users").body;
        for query in [
            "page=1&limit=20",
            "",
            "&&",
            "&&page=1&&",
            "x=1",
            "x=1&x=2",
            "page[]=3",
            "PAGE=3",
            "page%00=3",
            "p%61ge=%31",
            "=",
            "=3",
            "%zz=%zz",
            "limit=20&%FF=%FF",
            "a=b=c&limit=20",
        ] {
            let reply = wire.get(&format!("/users?{query}"));
            check(&reply, 200, query);
            assert_eq!(reply.body, first_page, "{query}");
        }
        for query in [
            "page=1&page=2",
            "page=1&page=1",
            "page=1&p%61ge=1",
            "page=",
            "page",
            "page=+1",
            "page=%2B1",
            "page=%201",
            "page=1%20",
            "page=0",
            "page=-1",
            "page=01",
            "page=1.0",
            "page=1e1",
            "page=abc",
            "page=%zz",
            "page=%FF",
            "page=1%00",
            "page=2147483648",
            "page=9223372036854775808",
            "limit=0",
            "limit=101",
            "limit=",
            "limit=1;x",
            "limit=20&limit=20",
        ] {
            check(&wire.get(&format!("/users?{query}")), 422, query);
        }
        let far = wire.get("/users?page=2147483647&limit=100");
        assert_eq!((far.status, far.body.as_str()), (200, r#"{"page":2147483647,"limit":100,"items":[]}"#));
        for query in [
            "",
            "?",
            "?n",
            "?n=",
            "?n=0",
            "?n=-1",
            "?n=abc",
            "?n=1e9",
            "?n=1000001",
            "?n=1000000000",
            "?n=1&n=1",
            "?n=1.0",
            "?n=%zz",
            "?N=1",
        ] {
            check(&wire.get(&format!("/cpu{query}")), 422, query);
        }
        check(&wire.get("/cpu?x=y&n=%31"), 200, "an escaped 1");
    });
}
