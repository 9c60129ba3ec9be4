//! `POST /echo`: bodies as text. Escapes, encodings, sizes, content types, and what is no JSON.

use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{Expect, ok, refused, status};
use crate::parity::request::{Request, post, post_as, post_untyped};
use crate::parity::values::Values;

/// Bodies that are not JSON: id, what it proves, body.
const NOT_JSON: &[(&str, &str, &str)] = &[
    ("echo-malformed-json-not-400", "a body that is no JSON is 400", "{"),
    ("echo-plain-words-not-400", "words are no JSON", "hello"),
    (
        "echo-truncated-json-not-400",
        "a body that ends too early is 400",
        r#"{"name":"A","email":"a@example.com","age":3"#,
    ),
    (
        "echo-trailing-garbage-not-400",
        "bytes after the value make a body no JSON",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":[]} x"#,
    ),
    (
        "echo-trailing-comma-not-400",
        "a trailing comma makes a body no JSON",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":[],}"#,
    ),
    (
        "echo-single-quotes-not-400",
        "single quotes are no JSON",
        r"{'name':'A','email':'a@example.com','age':30,'tags':[]}",
    ),
    ("echo-nan-not-400", "NaN is no JSON", r#"{"name":"A","email":"a@example.com","age":NaN,"tags":[]}"#),
];

/// Bodies that are 400 or 422: id, what it proves, body.
const EITHER: &[(&str, &str, &str)] = &[
    ("echo-empty-body-accepted", "an empty body is 400 or 422", ""),
    ("echo-null-body-accepted", "a bare null is 400 or 422", "null"),
    ("echo-string-body-accepted", "a bare string is 400 or 422", "\"name\""),
    (
        "echo-infinite-age-accepted",
        "1e400 is 400 or 422, never null in the reply",
        r#"{"name":"A","email":"a@example.com","age":1e400,"tags":[]}"#,
    ),
];

const GOOD: &str = r#"{"name":"A","email":"a@example.com","age":30,"tags":[]}"#;
const UNTYPED: &[u16] = &[400, 415, 422];

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let mut checks = vec![
        core("echo-alters-escapes", "escapes are read, and written only where JSON needs them").sends(
            post("/echo", r#"{"name":"\u00e9\ud83e\udd80\/\u0041","email":"a@example.com","age":1,"tags":["\"\\","\n\t\r","\u0001"]}"#),
            ok(r#"{"name":"é🦀/A","email":"a@example.com","age":1,"tags":["\"\\","\n\t\r","\u0001"]}"#),
        ),
        core("echo-alters-large-body", "a body of 32 KB comes back whole").sends(post("/echo", large(32)), ok(large(32))),
        core("echo-refuses-charset", "a charset parameter of the content type is accepted").sends_all(
            ["application/json; charset=utf-8", "application/json;charset=UTF-8"]
                .map(|content_type| (post_as(content_type, "/echo", values.echo()), ok(values.echo()))),
        ),
        core("echo-accepts-missing-content-type", "a body without a content type is refused")
            .sends(post_untyped("/echo", GOOD), refused(UNTYPED)),
        core("echo-accepts-text-plain", "a body of another content type is refused")
            .sends(post_as("text/plain", "/echo", GOOD), refused(UNTYPED)),
        core("echo-accepts-form", "a form is refused").sends(
            post_as("application/x-www-form-urlencoded", "/echo", "name=A&email=a%40example.com&age=30&tags=a"),
            refused(UNTYPED),
        ),
    ];
    let each = |table: &'static [(&str, &str, &str)], statuses| {
        table.iter().map(move |&(id, proves, body)| core(id, proves).sends(post("/echo", body), refused(statuses)))
    };
    checks.extend(each(NOT_JSON, &[400]));
    checks.extend(each(EITHER, &[400, 422]));
    checks.extend(strict_checks());
    checks
}

fn strict_checks() -> Vec<Check> {
    let with_name = |name: &[u8]| [br#"{"name":""#, name, br#"","email":"a@example.com","age":30,"tags":[]}"#].concat();
    let bad_request = |id, proves, body: Vec<u8>| strict(id, proves).sends(post("/echo", body), refused(&[400]));
    vec![
        bad_request("echo-accepts-invalid-utf8", "invalid UTF-8 is 400", with_name(b"\xff\xfe")),
        bad_request("echo-accepts-overlong-utf8", "overlong UTF-8 is 400", with_name(b"\xc0\xaf")),
        bad_request("echo-accepts-encoded-surrogate", "a surrogate in UTF-8 is 400", with_name(b"\xed\xa0\x80")),
        bad_request("echo-accepts-lone-surrogate", "a lone surrogate escape is 400", with_name(br"\ud83e")),
        bad_request(
            "echo-accepts-byte-order-mark",
            "a byte-order mark is 400",
            [b"\xef\xbb\xbf", GOOD.as_bytes()].concat(),
        ),
        bad_request(
            "echo-accepts-duplicate-key",
            "a field given twice is 400",
            br#"{"name":"A","email":"a@example.com","age":30,"age":31,"tags":[]}"#.to_vec(),
        ),
        bad_request(
            "echo-accepts-duplicate-unknown-key",
            "an unknown key given twice is 400 too",
            br#"{"x":1,"name":"A","email":"a@example.com","age":30,"x":2,"tags":[]}"#.to_vec(),
        ),
        strict("echo-alters-nul", "NUL inside a string is echoed")
            .sends(post("/echo", with_name(br"a\u0000b")), ok(with_name(br"a\u0000b"))),
        strict("echo-missing-content-type-not-415", "a body without a JSON content type is 415").sends_all([
            (post_untyped("/echo", GOOD), refused(&[415])),
            (post_as("text/plain", "/echo", GOOD), refused(&[415])),
            (post_as("application/jsonp", "/echo", GOOD), refused(&[415])),
        ]),
        strict("echo-refuses-60-kb", "a body of 60 KB is below the limit")
            .sends(post("/echo", large(60)), ok(large(60))),
        too_large("echo-accepts-more-than-64-kb", "a body above 64 KiB is 413", post("/echo", large(65))),
        too_large(
            "echo-accepts-more-than-64-kb-in-chunks",
            "a body above 64 KiB in chunks is 413, not cut or read as empty",
            post("/echo", large(65)).in_chunks(8 * 1024),
        ),
        too_large(
            "echo-breaks-on-3-mb",
            "the 413 for 3 MB can be read while the client still sends",
            post("/echo", large(3000)),
        ),
        too_large(
            "echo-breaks-on-3-mb-in-chunks",
            "the 413 for 3 MB in chunks can be read while the client still sends",
            post("/echo", large(3000)).in_chunks(64 * 1024),
        ),
    ]
}

fn too_large(id: &'static str, proves: &'static str, request: Request) -> Check {
    let expect: Expect = status(&[413]);
    strict(id, proves).sends(request, expect)
}

/// A valid body of a little more than this many KiB: tags have no length limit of their own.
fn large(kib: usize) -> String {
    format!(r#"{{"name":"A","email":"a@example.com","age":30,"tags":["{}"]}}"#, "x".repeat(kib * 1024))
}
