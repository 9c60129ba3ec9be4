//! A request's head: parsed once, kept as places in the bytes it came in.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::server::error::ApiError;
use crate::server::routes::{Method, Target, is_json};

/// Header lines of one request; hyper's limit, and more than any browser or proxy sends.
const MOST_HEADERS: usize = 100;

/// What a connection needs to know of a request before it reads the body.
#[expect(clippy::struct_excessive_bools, reason = "each is a header of its own")]
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of the head, the blank line included.
    pub(super) length: usize,
    pub(super) method: Method,
    pub(super) framing: Framing,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: bool,
    /// Whether the client wants the connection kept.
    pub(super) keeps_alive: bool,
    /// HTTP/1.0: the client must be told when the connection is kept.
    pub(super) is_http_10: bool,
    /// Whether the body says it is plain JSON.
    pub(super) is_json: bool,
    path: Place,
    query: Option<Place>,
    authorization: Field,
}

/// A part of the head.
type Place = Range<usize>;

/// A header that must not be given twice.
#[derive(Debug, PartialEq, Eq)]
enum Field {
    Absent,
    Once(Place),
    Repeated,
}

/// Where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// A head that cannot be served. The connection ends: what follows it cannot be told apart from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// 400, with what is wrong.
    Malformed(&'static str),
    /// 417.
    Expectation,
    /// 431.
    TooLarge,
    /// 501.
    Coding,
    /// 505.
    Version,
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(detail) => Self::BadRequest(detail.to_owned()),
            Fault::Expectation => Self::ExpectationFailed,
            Fault::TooLarge => Self::HeadTooLarge,
            Fault::Coding => Self::UnknownCoding,
            Fault::Version => Self::UnknownVersion,
        }
    }
}

impl Head {
    /// What is asked for; `bytes` are those the head was parsed from.
    pub(super) fn target<'b>(&self, bytes: &'b [u8]) -> Target<'b> {
        Target {
            method: self.method,
            path: &bytes[self.path.clone()],
            query: self.query.as_ref().map(|query| &bytes[query.clone()]),
        }
    }

    /// The value of the one `authorization`; `None` where there is none, more than one, or one that is not ASCII.
    pub(super) fn authorization<'b>(&self, bytes: &'b [u8]) -> Option<&'b str> {
        let Field::Once(place) = &self.authorization else { return None };
        std::str::from_utf8(&bytes[place.clone()]).ok().filter(|value| value.is_ascii())
    }
}

/// Reads a head from the start of `bytes`; `None` while it is not complete.
///
/// # Errors
/// What the client must be told before the connection ends.
pub(super) fn parse(bytes: &[u8], most_bytes: usize) -> Result<Option<Head>, Fault> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let window = &bytes[..bytes.len().min(most_bytes)];
    let length = match request.parse_with_uninit_headers(window, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= most_bytes => return Err(Fault::TooLarge),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooLarge),
        Err(httparse::Error::Version) => match version(window) {
            None if bytes.len() >= most_bytes => return Err(Fault::TooLarge),
            None => return Ok(None),
            Some(version) => return Err(version_fault(version)),
        },
        Err(_) => return Err(Fault::Malformed("the request head is not HTTP/1.1")),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(Fault::Malformed("the request line is incomplete"));
    };
    let is_http_10 = minor == 0;
    let fields = Fields::read(bytes, request.headers, is_http_10)?;
    let (path, query) = split(target)?;
    Ok(Some(Head {
        length,
        method: Method::from_name(method),
        framing: fields.framing(is_http_10)?,
        expects_continue: fields.expects_continue && !is_http_10,
        keeps_alive: fields.keeps_alive(is_http_10),
        is_http_10,
        is_json: is_json(fields.content_type, fields.content_encoding),
        path: place(bytes, path.as_bytes()),
        query: query.map(|query| place(bytes, query.as_bytes())),
        authorization: fields.authorization,
    }))
}

/// Whether the bytes begin as a HEAD request does, which no reply may answer with a body; known even if it is no good.
pub(super) fn asks_head(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"HEAD ")
}

/// What stands in the place of the version, once its line has ended: half of `HTTP/2.0` is not yet one or the other fault.
fn version(bytes: &[u8]) -> Option<&[u8]> {
    let mut lines = bytes.split_inclusive(|&b| b == b'\n');
    let line = lines.find(|line| !line.trim_ascii().is_empty())?.strip_suffix(b"\n")?;
    line.strip_suffix(b"\r").unwrap_or(line).splitn(3, |&b| b == b' ').nth(2)
}

/// `HTTP/2.0` is a version we do not speak; `HTTP/x` is no version at all.
fn version_fault(version: &[u8]) -> Fault {
    match version {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Fault::Version
        }
        _ => Fault::Malformed("the request head is not HTTP/1.1"),
    }
}

/// Path and query of a target; of `http://host/path`, which proxies send, the host is read over (RFC 9112, section 3.2.2).
fn split(target: &str) -> Result<(&str, Option<&str>), Fault> {
    if target.as_bytes().contains(&b'#') {
        return Err(Fault::Malformed("the target of a request has no fragment"));
    }
    let origin = if target.starts_with('/') { target } else { origin_form(target) };
    Ok(match origin.bytes().position(|byte| byte == b'?') {
        Some(at) => (&origin[..at], Some(&origin[at + 1..])),
        None => (origin, None),
    })
}

fn origin_form(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => &rest[rest.find(['/', '?']).unwrap_or(rest.len())..],
        _ => target,
    }
}

/// The header fields that decide how a request is read.
#[expect(clippy::struct_excessive_bools, reason = "each is a header of its own")]
struct Fields<'b> {
    length: Option<u64>,
    is_chunked: bool,
    expects_continue: bool,
    asks_close: bool,
    asks_keep_alive: bool,
    content_type: Option<&'b [u8]>,
    content_encoding: Option<&'b [u8]>,
    authorization: Field,
}

impl<'b> Fields<'b> {
    fn read(bytes: &[u8], headers: &[httparse::Header<'b>], is_http_10: bool) -> Result<Self, Fault> {
        let mut hosts = 0_usize;
        let mut fields = Self {
            length: None,
            is_chunked: false,
            expects_continue: false,
            asks_close: false,
            asks_keep_alive: false,
            content_type: None,
            content_encoding: None,
            authorization: Field::Absent,
        };
        for header in headers {
            let value = header.value;
            let named = |name: &str| header.name.eq_ignore_ascii_case(name);
            // Most headers are none of these: their length says so before any letter is compared.
            match header.name.len() {
                4 if named("host") => hosts += 1,
                6 if named("expect") => {
                    if !value.eq_ignore_ascii_case(b"100-continue") {
                        return Err(Fault::Expectation);
                    }
                    fields.expects_continue = true;
                }
                10 if named("connection") => {
                    for token in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                        fields.asks_close |= token.eq_ignore_ascii_case(b"close");
                        fields.asks_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                12 if named("content-type") => fields.content_type = fields.content_type.or(Some(value)),
                13 if named("authorization") => {
                    fields.authorization = match fields.authorization {
                        Field::Absent => Field::Once(place(bytes, value)),
                        Field::Once(_) | Field::Repeated => Field::Repeated,
                    };
                }
                14 if named("content-length") => {
                    let length = length(value)?;
                    if fields.length.is_some_and(|other| other != length) {
                        return Err(Fault::Malformed("two content-length that differ"));
                    }
                    fields.length = Some(length);
                }
                16 if named("content-encoding") => fields.content_encoding = fields.content_encoding.or(Some(value)),
                17 if named("transfer-encoding") => {
                    if fields.is_chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err(Fault::Coding);
                    }
                    fields.is_chunked = true;
                }
                _ => {}
            }
        }
        if hosts != 1 && !is_http_10 {
            return Err(Fault::Malformed("exactly one host header is required"));
        }
        Ok(fields)
    }

    /// Where the body ends; chunks win over a length, as RFC 9112, section 6.3 asks.
    fn framing(&self, is_http_10: bool) -> Result<Framing, Fault> {
        match (self.is_chunked, is_http_10) {
            (true, true) => Err(Fault::Malformed("HTTP/1.0 knows no chunks")),
            (true, false) => Ok(Framing::Chunked),
            (false, _) => Ok(Framing::Length(self.length.unwrap_or(0))),
        }
    }

    /// A request framed in two ways is an attempt to hide another one in it: its connection carries no further request.
    fn keeps_alive(&self, is_http_10: bool) -> bool {
        let framed_twice = self.is_chunked && self.length.is_some();
        !self.asks_close && !framed_twice && (!is_http_10 || self.asks_keep_alive)
    }
}

/// Decimal digits only: no sign, no list.
fn length(value: &[u8]) -> Result<u64, Fault> {
    let digits = value.trim_ascii();
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or(Fault::Malformed("the content-length is not a number"))
}

/// Where `part`, a part of `bytes`, lies in it.
fn place(bytes: &[u8], part: &[u8]) -> Place {
    let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1_000;

    fn head(text: &str) -> Head {
        parse(text.as_bytes(), MOST).expect("no fault").expect("complete")
    }

    fn fault(text: &str) -> Fault {
        parse(text.as_bytes(), MOST).expect_err("a fault")
    }

    fn with(headers: &str) -> String {
        format!("POST /echo HTTP/1.1\r\nhost: t\r\n{headers}\r\n")
    }

    #[test]
    fn a_head_is_complete_at_its_blank_line() {
        let whole = "GET /users?page=2 HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer x\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole.as_bytes()[..end], MOST), Ok(None), "{end} bytes");
        }
        let head = head(&format!("{whole}GET /"));
        assert_eq!(head.length, whole.len());
        assert_eq!(head.authorization(whole.as_bytes()), Some("Bearer x"));
        let target = head.target(whole.as_bytes());
        assert_eq!((target.method, target.path, target.query), (Method::Get, &b"/users"[..], Some(&b"page=2"[..])));
        assert!(head.keeps_alive && head.framing == Framing::Length(0) && !head.is_http_10);
    }

    #[test]
    fn targets_in_all_their_forms() {
        let target = |target: &str| {
            let text = format!("GET {target} HTTP/1.1\r\nhost: t\r\n\r\n");
            let head = head(&text);
            let target = head.target(text.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
            (text(target.path), target.query.map(text))
        };
        let query = |path: &str, query: &str| (path.to_owned(), Some(query.to_owned()));
        assert_eq!(target("/a?b=c?d"), query("/a", "b=c?d"));
        assert_eq!(target("/a?"), query("/a", ""));
        assert_eq!(target("http://host:1/a?b"), query("/a", "b"));
        assert_eq!(target("http://host"), (String::new(), None));
        assert_eq!(target("/a?next=http://b/c"), query("/a", "next=http://b/c"));
        assert_eq!(target("*"), ("*".to_owned(), None));
        for wrong in ["/a#b", "http://host#b", "http://a#b/c"] {
            let text = format!("GET {wrong} HTTP/1.1\r\nhost: t\r\n\r\n");
            assert!(matches!(fault(&text), Fault::Malformed(_)), "{wrong}");
        }
    }

    #[test]
    fn framing_is_one_length_or_chunks() {
        assert_eq!(head(&with("content-length: 7\r\n")).framing, Framing::Length(7));
        assert_eq!(head(&with("content-length: 7\r\nContent-Length: 7\r\n")).framing, Framing::Length(7));
        assert_eq!(head(&with("transfer-encoding: Chunked\r\n")).framing, Framing::Chunked);
        let twice = head(&with("content-length: 7\r\ntransfer-encoding: chunked\r\n"));
        assert_eq!((twice.framing, twice.keeps_alive), (Framing::Chunked, false));
        for value in ["", "-1", "+7", "7, 7", "7 7", "0x7", "18446744073709551616", "7\u{b2}"] {
            assert!(matches!(fault(&with(&format!("content-length: {value}\r\n"))), Fault::Malformed(_)), "{value}");
        }
        assert!(matches!(fault(&with("content-length: 7\r\ncontent-length: 8\r\n")), Fault::Malformed(_)));
        for value in ["gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", ""] {
            assert_eq!(fault(&with(&format!("transfer-encoding: {value}\r\n"))), Fault::Coding, "{value}");
        }
        assert_eq!(fault(&with("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n")), Fault::Coding);
        let old = "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(matches!(fault(old), Fault::Malformed(_)));
    }

    #[test]
    fn connections_are_kept_as_each_version_says() {
        let keeps = |version: &str, headers: &str| {
            head(&format!("GET / HTTP/{version}\r\nhost: t\r\n{headers}\r\n")).keeps_alive
        };
        assert!(keeps("1.1", ""));
        assert!(keeps("1.1", "connection: x, upgrade\r\n"));
        assert!(!keeps("1.1", "connection: x, CLOSE\r\n"));
        assert!(!keeps("1.1", "connection: keep-alive\r\nconnection: close\r\n"));
        assert!(!keeps("1.0", ""));
        assert!(keeps("1.0", "Connection: Keep-Alive\r\n"));
    }

    #[test]
    fn what_http_forbids_is_named() {
        assert!(matches!(fault("GET / HTTP/1.1\r\n\r\n"), Fault::Malformed(_)));
        assert!(matches!(fault("GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n"), Fault::Malformed(_)));
        assert!(matches!(fault("GET / HTTP/1.1\r\nhost : a\r\n\r\n"), Fault::Malformed(_)));
        assert!(matches!(fault("GET  / HTTP/1.1\r\nhost: a\r\n\r\n"), Fault::Malformed(_)));
        assert!(matches!(fault("GET / HTTP/x\r\nhost: a\r\n\r\n"), Fault::Malformed(_)));
        assert_eq!(fault("GET / HTTP/2.0\r\nhost: a\r\n\r\n"), Fault::Version);
        assert_eq!(fault("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Fault::Version);
        assert_eq!(fault("\r\nGET / HTTP/1.2\n\n"), Fault::Version);
        // Not known before the line has ended, and nothing but the version is one.
        for end in 1..15 {
            assert_eq!(parse(&b"GET / HTTP/2.0\r\n"[..end], MOST), Ok(None), "{end} bytes");
        }
        assert!(matches!(fault("GET GET / HTTP/1.1\r\n\r\n"), Fault::Malformed(_)));
        assert!(matches!(fault("GET /  HTTP/1.1\r\n\r\n"), Fault::Malformed(_)));
        assert_eq!(fault(&with("expect: 200-ok\r\n")), Fault::Expectation);
        assert_eq!(fault(&with(&"x: 1\r\n".repeat(MOST_HEADERS))), Fault::TooLarge);
        assert!(parse(with(&"x: 1\r\n".repeat(MOST_HEADERS - 1)).as_bytes(), MOST).is_ok());
        let long = with(&format!("x: {}\r\n", "y".repeat(MOST)));
        assert_eq!(fault(&long), Fault::TooLarge);
        assert_eq!(parse(&long.as_bytes()[..MOST - 1], MOST), Ok(None));
    }

    #[test]
    fn authorization_counts_only_alone_and_in_ascii() {
        let authorization = |headers: &str| {
            let text = with(headers);
            head(&text).authorization(text.as_bytes()).map(str::to_owned)
        };
        assert_eq!(authorization("authorization:  Bearer x \r\n"), Some("Bearer x".to_owned()));
        assert_eq!(authorization(""), None);
        assert_eq!(authorization("authorization: a\r\nauthorization: a\r\n"), None);
        assert_eq!(authorization("authorization: Bearer \u{e9}\r\n"), None);
    }
}
