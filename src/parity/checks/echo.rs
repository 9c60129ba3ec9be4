//! `POST /echo`: the four fields and their rules.

use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{ok, unprocessable};
use crate::parity::request::post;
use crate::parity::values::Values;

/// Bodies that are valid JSON and break one rule: id, what it proves, body.
const REFUSED: &[(&str, &str, &str)] = &[
    ("echo-accepts-missing-name", "name is required", r#"{"email":"a@example.com","age":30,"tags":[]}"#),
    ("echo-accepts-missing-email", "email is required", r#"{"name":"A","age":30,"tags":[]}"#),
    ("echo-accepts-missing-age", "age is required", r#"{"name":"A","email":"a@example.com","tags":[]}"#),
    ("echo-accepts-missing-tags", "tags is required", r#"{"name":"A","email":"a@example.com","age":30}"#),
    ("echo-accepts-empty-object", "an object without the fields is 422", "{}"),
    ("echo-accepts-array-body", "a body that is JSON but no object is 422", "[]"),
    ("echo-accepts-null-name", "name is not nullable", r#"{"name":null,"email":"a@example.com","age":30,"tags":[]}"#),
    ("echo-accepts-null-email", "email is not nullable", r#"{"name":"A","email":null,"age":30,"tags":[]}"#),
    ("echo-accepts-null-age", "age is not nullable", r#"{"name":"A","email":"a@example.com","age":null,"tags":[]}"#),
    ("echo-accepts-null-tags", "tags is not nullable", r#"{"name":"A","email":"a@example.com","age":30,"tags":null}"#),
    ("echo-coerces-name-number", "a number is no string", r#"{"name":7,"email":"a@example.com","age":30,"tags":[]}"#),
    ("echo-coerces-email-number", "a number is no address", r#"{"name":"A","email":7,"age":30,"tags":[]}"#),
    ("echo-coerces-age-string", "\"30\" is not 30", r#"{"name":"A","email":"a@example.com","age":"30","tags":[]}"#),
    ("echo-coerces-age-boolean", "true is not 1", r#"{"name":"A","email":"a@example.com","age":true,"tags":[]}"#),
    ("echo-coerces-age-empty-string", "\"\" is not 0", r#"{"name":"A","email":"a@example.com","age":"","tags":[]}"#),
    ("echo-coerces-age-array", "[30] is not 30", r#"{"name":"A","email":"a@example.com","age":[30],"tags":[]}"#),
    ("echo-coerces-tags-string", "a string is no array", r#"{"name":"A","email":"a@example.com","age":30,"tags":"a"}"#),
    (
        "echo-coerces-tags-object",
        "an object is no array",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":{"0":"a"}}"#,
    ),
    (
        "echo-coerces-tag-number",
        "a number in tags is no string",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":["a",7]}"#,
    ),
    (
        "echo-accepts-null-tag",
        "null in tags is no string",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":[null]}"#,
    ),
    (
        "echo-accepts-empty-name",
        "name has at least 1 character",
        r#"{"name":"","email":"a@example.com","age":30,"tags":[]}"#,
    ),
    ("echo-accepts-age-below", "age is at least 0", r#"{"name":"A","email":"a@example.com","age":-1,"tags":[]}"#),
    ("echo-accepts-age-above", "age is at most 150", r#"{"name":"A","email":"a@example.com","age":151,"tags":[]}"#),
    ("echo-accepts-age-fraction", "3.5 is no integer", r#"{"name":"A","email":"a@example.com","age":3.5,"tags":[]}"#),
    (
        "echo-accepts-age-beyond-doubles",
        "an age no double holds exactly is out of range like any other",
        r#"{"name":"A","email":"a@example.com","age":9007199254740993,"tags":[]}"#,
    ),
    (
        "echo-accepts-eleven-tags",
        "tags holds at most 10 strings",
        r#"{"name":"A","email":"a@example.com","age":30,"tags":["1","2","3","4","5","6","7","8","9","10","11"]}"#,
    ),
    (
        "echo-accepts-email-without-at",
        "a string without @ is no address",
        r#"{"name":"A","email":"example.com","age":30,"tags":[]}"#,
    ),
    ("echo-accepts-empty-email", "an empty string is no address", r#"{"name":"A","email":"","age":30,"tags":[]}"#),
];

/// Bodies that must come back as they were sent: id, what it proves, body.
const RETURNED: &[(&str, &str, &str)] = &[
    ("echo-refuses-age-zero", "age may be 0", r#"{"name":"A","email":"a@example.com","age":0,"tags":[]}"#),
    ("echo-refuses-age-150", "age may be 150", r#"{"name":"A","email":"a@example.com","age":150,"tags":[]}"#),
    (
        "echo-refuses-short-email",
        "x@example.com is an address",
        r#"{"name":"A","email":"x@example.com","age":1,"tags":[]}"#,
    ),
    ("echo-refuses-empty-tag", "a tag may be empty", r#"{"name":"A","email":"a@example.com","age":1,"tags":["",""]}"#),
    (
        "echo-refuses-ten-tags",
        "tags may hold 10 strings",
        r#"{"name":"A","email":"a@example.com","age":1,"tags":["1","2","3","4","5","6","7","8","9","10"]}"#,
    ),
    (
        "echo-trims-strings",
        "spaces at the ends of a string stay",
        r#"{"name":"  A  ","email":"a@example.com","age":1,"tags":[" b "]}"#,
    ),
    (
        "echo-alters-utf8",
        "characters of two, three and four bytes come back as they were sent",
        r#"{"name":"Zoë Łuk 東京 🦀","email":"a@example.com","age":1,"tags":["ñ","ÿ€","🇦🇺"]}"#,
    ),
];

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let body = values.echo();
    let mut checks = vec![
        core("echo-body-differs", "the four fields come back, byte for byte")
            .sends(post("/echo", body.clone()), ok(body)),
        core("echo-leaks-unknown-key", "unknown keys are gone from the reply")
            .sends(post("/echo", with_unknown_keys(values)), ok(values.echo())),
        core("echo-key-order-follows-request", "keys are answered in the order of the contract")
            .sends(post("/echo", reordered(values)), ok(values.echo())),
        core("echo-refuses-integer-with-point", "30.0 is the integer 30")
            .sends(post("/echo", aged("30.0")), ok(aged("30"))),
        core("echo-refuses-name-of-100", "name may have 100 characters")
            .sends(post("/echo", named(&"n".repeat(100))), ok(named(&"n".repeat(100)))),
        core("echo-accepts-name-of-101", "name has at most 100 characters")
            .sends(post("/echo", named(&"n".repeat(101))), unprocessable()),
    ];
    checks.extend(RETURNED.iter().map(|&(id, proves, body)| core(id, proves).sends(post("/echo", body), ok(body))));
    checks
        .extend(REFUSED.iter().map(|&(id, proves, body)| core(id, proves).sends(post("/echo", body), unprocessable())));
    checks.extend(strict_checks(values));
    checks
}

fn strict_checks(values: &Values) -> [Check; 6] {
    let crabs = |count: usize| named(&"🦀".repeat(count));
    [
        strict("echo-counts-utf16-units", "name is counted in Unicode scalar values: 100 crabs fit")
            .sends(post("/echo", crabs(100)), ok(crabs(100))),
        strict("echo-accepts-101-scalars", "name is counted in Unicode scalar values: 101 crabs do not fit")
            .sends(post("/echo", crabs(101)), unprocessable()),
        strict("echo-refuses-odd-email", "what the WHATWG pattern for e-mail matches is an address").sends_all(
            ["a@b", "a.b+c@mail.example.co.uk", "!#$%&'*+/=?^_`{|}~-@example.com", "a..b@example.com"]
                .map(|email| (post("/echo", mailed(email)), ok(mailed(email)))),
        ),
        strict("echo-accepts-odd-email", "what the WHATWG pattern for e-mail does not match is no address").sends_all(
            [
                "a b@example.com",
                "@example.com",
                "a@",
                "a@b@example.com",
                "a@-b.com",
                "a@b-.com",
                "a@b_c.com",
                "a@b..com",
                "a@b.",
            ]
            .map(|email| (post("/echo", mailed(email)), unprocessable())),
        ),
        strict("echo-leaks-prototype-key", "__proto__ and constructor are unknown keys like any other").sends(
            post("/echo", values.echo().replacen('{', r#"{"__proto__":{"x":1},"constructor":{"y":2},"#, 1)),
            ok(values.echo()),
        ),
        strict("echo-sees-inherited-field", "a field inside __proto__ does not stand for a missing one").sends(
            post("/echo", r#"{"__proto__":{"age":30},"name":"A","email":"a@example.com","tags":[]}"#),
            unprocessable(),
        ),
    ]
}

fn named(name: &str) -> String {
    format!(r#"{{"name":"{name}","email":"a@example.com","age":30,"tags":[]}}"#)
}

fn mailed(email: &str) -> String {
    format!(r#"{{"name":"A","email":"{email}","age":30,"tags":[]}}"#)
}

fn aged(age: &str) -> String {
    format!(r#"{{"name":"A","email":"a@example.com","age":{age},"tags":[]}}"#)
}

fn with_unknown_keys(values: &Values) -> String {
    let body = values.echo();
    let inside = body.trim_start_matches('{').trim_end_matches('}');
    format!(r#"{{"role":"admin",{inside},"nested":{{"deep":[1,{{"a":null}}]}}}}"#)
}

fn reordered(values: &Values) -> String {
    let Values { name, email, age, .. } = values;
    format!("{{ \"tags\" : [ \"seen {age}\" ],\n\t\"age\": {age}, \"email\":\"{email}\",\r\n \"name\": \"{name}\" }}")
}
