//! Signs that an error reply shows what is behind the server: SQL, a path of its host, or a stack. Pure.

/// What gives it away, and how it is called in a failure. Compared in lower case, with JSON's escapes undone.
const SIGNS: &[(&str, &str)] = &[
    ("insert into", "SQL"),
    ("failed query", "SQL"),
    ("from \"users\"", "SQL"),
    ("from users", "SQL"),
    ("\"orders\" (", "SQL"),
    ("orders_user_id", "a constraint's name"),
    ("violates", "a constraint's message"),
    ("sqlstate", "an error of Postgres"),
    ("postgreserror", "an error of Postgres"),
    ("out of range for type", "an error of Postgres"),
    ("invalid input syntax for", "an error of Postgres"),
    ("invalid byte sequence for", "an error of Postgres"),
    ("node_modules", "a path"),
    ("/home/", "a path"),
    ("/root/", "a path"),
    ("/usr/", "a path"),
    ("/tmp/", "a path"),
    ("/src/", "a path"),
    ("file://", "a path"),
    (".ts:", "a source line"),
    (".js:", "a source line"),
    (".mjs:", "a source line"),
    (".cjs:", "a source line"),
    (".rs:", "a source line"),
    (".py:", "a source line"),
    (".go:", "a source line"),
    ("\n    at ", "a stack"),
    (" at async ", "a stack"),
    (" at object.", "a stack"),
    ("(node:", "a stack"),
    ("panicked at", "a stack"),
    ("stack backtrace", "a stack"),
    ("traceback (most recent", "a stack"),
    ("\"stack\":", "a stack"),
];

/// Names the first sign found in an error body.
pub(super) fn find(body: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(body).to_lowercase();
    let text = text.replace("\\n", "\n").replace("\\\"", "\"").replace("\\/", "/");
    if text.find("select ").is_some_and(|at| text[at..].contains(" from ")) {
        return Some("SQL");
    }
    SIGNS.iter().find(|(sign, _)| text.contains(sign)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn what_frameworks_show_by_default_is_found() {
        for (body, name) in [
            (r#"{"message":"Failed query: insert into \"orders\" (\"id\") values (default)"}"#, "SQL"),
            (r#"{"error":"Select \"id\" from \"users\" where 1"}"#, "SQL"),
            (
                "<pre>SyntaxError: x<br> &nbsp; &nbsp;at parse (/app/node_modules/body-parser/lib/a.js:92:19)</pre>",
                "a path",
            ),
            (r#"{"stack":"Error: x\n    at handler (server:1:2)"}"#, "a stack"),
            (r#"{"error":"value \"2147483648\" is out of range for type integer"}"#, "an error of Postgres"),
            ("thread 'main' panicked at src/main.rs:1:1", "a source line"),
        ] {
            assert_eq!(find(body.as_bytes()), Some(name), "{body}");
        }
    }

    #[test]
    fn what_a_careful_server_says_is_not() {
        for body in [
            r#"{"error":"unauthorized"}"#,
            r#"{"error":"Expected property name or '}' in JSON at position 1 (line 1 column 2)"}"#,
            r#"{"type":"about:blank","title":"Unprocessable Content","status":422,"errors":[{"field":"/age"}]}"#,
            r#"{"error":"select one of USD, EUR, GBP"}"#,
            r#"{"type":"https://example.com/problems/validation","instance":"/users/abc"}"#,
        ] {
            assert_eq!(find(body.as_bytes()), None, "{body}");
        }
    }
}
