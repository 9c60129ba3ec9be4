//! What a server sent, read without mercy: replies of HTTP/1.1 in our own shape, and nothing else.

use serde_json::Value;

/// Every status some route or front may answer; 408 is not among them, since no stream here takes that long.
const STATUSES: [u16; 15] = [200, 201, 400, 401, 404, 405, 413, 414, 415, 417, 422, 431, 501, 503, 505];
/// What no reply may say; no request here says it either.
const TELLTALES: [&str; 8] =
    ["select", "insert into", "panicked", "/root", "src/", "stack backtrace", "postgres:", "/home"];
const HEADERS: [&str; 6] = ["content-type", "content-length", "date", "allow", "retry-after", "connection"];
/// Length of `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_LENGTH: usize = 29;

/// Which front is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Our own: every reply is of our own making.
    Own,
    /// hyper answers what it cannot parse without a body, and old clients in their own version.
    Hyper,
}

/// A final reply, without what differs from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Empty for HEAD; an order has no id and no time.
    pub(super) body: String,
    pub(super) closes: bool,
}

/// All final replies, `100 Continue` read over.
///
/// # Errors
/// What is wrong with them.
pub(super) fn read(mut bytes: &[u8], shape: Shape) -> Result<Vec<Reply>, String> {
    let mut replies: Vec<Reply> = Vec::new();
    while !bytes.is_empty() {
        if replies.last().is_some_and(|reply| reply.closes) {
            return Err(format!("bytes after the last reply: {}", bytes.escape_ascii()));
        }
        if let Some(rest) = bytes.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n") {
            bytes = rest;
            continue;
        }
        let (reply, rest) = one(bytes, shape).map_err(|fault| format!("{fault}: {}", bytes.escape_ascii()))?;
        replies.push(reply);
        bytes = rest;
    }
    Ok(replies)
}

/// How many final replies have begun to arrive: only heads have dates.
pub(super) fn count(bytes: &[u8]) -> usize {
    bytes.windows(8).filter(|window| *window == b"\r\ndate: ").count()
}

fn one(bytes: &[u8], shape: Shape) -> Result<(Reply, &[u8]), String> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or("a head without an end")?;
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "a head that is not UTF-8")?;
    let rest = &bytes[end + 4..];
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status(line, shape)?;
    let fields = self::fields(fields)?;
    let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    if field("date").is_none_or(|date| date.len() != DATE_LENGTH || !date.ends_with(" GMT")) {
        return Err("no date".to_owned());
    }
    let length: usize = field("content-length").and_then(|text| text.parse().ok()).ok_or("no content-length")?;
    let closes = match field("connection") {
        None | Some("keep-alive") => false,
        Some("close") => true,
        Some(_) => return Err("an odd connection header".to_owned()),
    };
    if status == 405 && field("allow").is_none() {
        return Err("405 without allow".to_owned());
    }
    if length == 0 && shape == Shape::Hyper && closes && matches!(status, 400 | 414 | 431) {
        return Ok((Reply { status, body: String::new(), closes }, rest));
    }
    // Our bodies are objects. One that does not follow, though a length was said, belongs to HEAD.
    if !rest.starts_with(b"{") {
        if !(rest.is_empty() || rest.starts_with(b"HTTP/1.")) {
            return Err("neither a body nor a reply follows".to_owned());
        }
        return Ok((Reply { status, body: String::new(), closes }, rest));
    }
    let body = rest.get(..length).ok_or("a body that ends early")?;
    let body = std::str::from_utf8(body).map_err(|_| "a body that is not UTF-8")?;
    let body = self::body(status, body, field("content-type"), field("retry-after"))?;
    Ok((Reply { status, body, closes }, &rest[length..]))
}

fn status(line: &str, shape: Shape) -> Result<u16, String> {
    let rest = line.strip_prefix("HTTP/1.1 ").or_else(|| {
        // hyper answers HTTP/1.0 in its own version.
        line.strip_prefix("HTTP/1.0 ").filter(|_| shape == Shape::Hyper)
    });
    let (code, reason) = rest.and_then(|rest| rest.split_once(' ')).ok_or("no status line")?;
    let status = code.parse().map_err(|_| "no status")?;
    if code.len() != 3 || !STATUSES.contains(&status) {
        return Err(format!("a status nobody may answer: {code}"));
    }
    if reason.is_empty() || !reason.bytes().all(|byte| byte.is_ascii_alphabetic() || b" -'".contains(&byte)) {
        return Err("an odd reason".to_owned());
    }
    Ok(status)
}

fn fields(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for line in text.split("\r\n").filter(|_| !text.is_empty()) {
        let (name, value) = line.split_once(": ").ok_or("a header line without a colon")?;
        if !HEADERS.contains(&name) || fields.iter().any(|(other, _)| *other == name) {
            return Err(format!("a header that is unknown or given twice: {name}"));
        }
        if value.is_empty() || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(format!("an odd value of {name}"));
        }
        fields.push((name, value));
    }
    Ok(fields)
}

/// Checks a body and takes the id and the time of an order out of it.
fn body(status: u16, text: &str, media_type: Option<&str>, retry_after: Option<&str>) -> Result<String, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| format!("a body that is not JSON: {error}"))?;
    let lower = text.to_lowercase();
    if let Some(word) = TELLTALES.iter().find(|word| lower.contains(**word)) {
        return Err(format!("a body that tells: {word}"));
    }
    let is_plain = matches!(status, 200 | 201 | 401 | 404);
    if media_type != Some(if is_plain { "application/json" } else { "application/problem+json" }) {
        return Err(format!("{status} as {media_type:?}"));
    }
    let fixed = match status {
        401 => Some(r#"{"error":"unauthorized"}"#),
        404 => Some(r#"{"error":"not found"}"#),
        _ => None,
    };
    if fixed.is_some_and(|fixed| fixed != text) {
        return Err("not the body of the contract".to_owned());
    }
    if !is_plain && (value["status"] != status || !value["title"].is_string() || !value["detail"].is_string()) {
        return Err("a problem that is none".to_owned());
    }
    if status == 422 && value["errors"].as_array().is_none_or(Vec::is_empty) {
        return Err("422 that names no field".to_owned());
    }
    if status == 503 && (retry_after.is_none() || !value["detail"].as_str().is_some_and(|d| d.contains("database"))) {
        return Err("503 that does not say so".to_owned());
    }
    if status == 201 {
        let order = value.as_object_mut().ok_or("an order that is no object")?;
        if order.remove("id").is_none() || order.remove("createdAt").is_none() {
            return Err("an order without id or time".to_owned());
        }
        return Ok(value.to_string());
    }
    Ok(text.to_owned())
}

#[test]
fn replies_in_our_shape_are_read_and_others_refused() {
    const DATE: &str = "date: Sun, 06 Nov 1994 08:49:37 GMT";
    let health = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n{DATE}\r\n\r\n");
    let good = format!("{health}{{\"status\":\"ok\"}}");
    let own = |text: String| read(text.as_bytes(), Shape::Own);
    assert_eq!(own(format!("HTTP/1.1 100 Continue\r\n\r\n{good}{health}{good}")).map(|replies| replies.len()), Ok(3));
    assert_eq!(count(format!("{good}{good}").as_bytes()), 2);
    for wrong in [
        format!("{good}x"),
        good.replace("15", "14"),
        good.replace("15", "16"),
        good.replace("ok", "/root/x"),
        good.replace("200 OK", "500 Internal Server Error"),
        good.replace("200 OK", "400 Bad Request"),
        good.replace("\r\ndate", "\r\nserver: x\r\ndate"),
        good.replace("HTTP/1.1", "HTTP/1.0"),
        format!("{}{good}", good.replace("\r\ndate", "\r\nconnection: close\r\ndate")),
        good[..health.len() - 2].to_owned(),
        good[..good.len() - 1].to_owned(),
    ] {
        assert!(own(wrong.clone()).is_err(), "{wrong}");
    }
    let unparsed = format!("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n{DATE}\r\n\r\n");
    assert!(read(unparsed.as_bytes(), Shape::Hyper).is_ok() && own(format!("{unparsed}x")).is_err());
}
