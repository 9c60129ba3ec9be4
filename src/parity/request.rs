//! Requests as they go onto the wire. Nothing is added but `host` and the framing of a body.

use std::fmt::Write as _;

use super::show;

/// Bytes of a header value shown in a failure.
const SHOWN_VALUE_BYTES: usize = 90;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Option<Vec<u8>>,
    chunk_bytes: Option<usize>,
}

/// A request without a body.
pub(super) fn bodiless(method: &'static str, target: impl Into<String>) -> Request {
    Request { method, target: target.into(), headers: Vec::new(), body: None, chunk_bytes: None }
}

/// Stands for bytes that were sent as they are: shown in a failure, never encoded.
pub(super) fn raw(line: &str) -> Request {
    bodiless("", line)
}

/// `GET`.
pub(super) fn get(target: impl Into<String>) -> Request {
    bodiless("GET", target)
}

/// `POST` of a body without a content type.
pub(super) fn post_untyped(target: &str, body: impl Into<Vec<u8>>) -> Request {
    Request { body: Some(body.into()), ..bodiless("POST", target) }
}

/// `POST` of a body of this content type.
pub(super) fn post_as(content_type: &str, target: &str, body: impl Into<Vec<u8>>) -> Request {
    post_untyped(target, body).header("content-type", content_type)
}

/// `POST` of `application/json`.
pub(super) fn post(target: &str, body: impl Into<Vec<u8>>) -> Request {
    post_as("application/json", target, body)
}

impl Request {
    /// With one more header.
    #[must_use]
    pub(super) fn header(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With the body in chunks of at most `bytes` instead of a length.
    #[must_use]
    pub(super) fn in_chunks(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// No body comes back for it.
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Asks for an order to be stored.
    pub(super) fn is_order(&self) -> bool {
        self.method == "POST" && self.target == "/orders"
    }

    /// Head and body apart, for checks that send them at different times.
    pub(super) fn encode_parts(&self, host: &str) -> (Vec<u8>, Vec<u8>) {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        let body = match (&self.body, self.chunk_bytes) {
            (None, _) => Vec::new(),
            (Some(body), None) => {
                head.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
                body.clone()
            }
            (Some(body), Some(size)) => {
                head.extend_from_slice(b"transfer-encoding: chunked\r\n");
                chunked(body, size)
            }
        };
        head.extend_from_slice(b"\r\n");
        (head, body)
    }

    /// The whole request.
    pub(super) fn encode(&self, host: &str) -> Vec<u8> {
        let (mut head, body) = self.encode_parts(host);
        head.extend_from_slice(&body);
        head
    }

    /// One line for a failure: what was sent, without `host` and framing.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{} {}", self.method, show::line(self.target.as_bytes())).trim_start().to_owned();
        for (name, value) in &self.headers {
            if (*name, value.as_slice()) != ("content-type", b"application/json") {
                let clipped = &value[..value.len().min(SHOWN_VALUE_BYTES)];
                let more = if value.len() > clipped.len() { "…" } else { "" };
                let _ = write!(text, " {name}: {}{more}", show::line(clipped));
            }
        }
        match &self.body {
            Some(body) if body.is_empty() => text.push_str(" (empty body)"),
            Some(body) => {
                let _ = write!(text, " {}", show::line(body));
            }
            None => {}
        }
        text
    }
}

/// A body in chunks of at most `size` bytes, with the last chunk.
pub(super) fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut encoded = Vec::new();
    for piece in body.chunks(size) {
        encoded.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        encoded.extend_from_slice(piece);
        encoded.extend_from_slice(b"\r\n");
    }
    encoded.extend_from_slice(b"0\r\n\r\n");
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_encoded_as_it_is_written() {
        let request = post("/echo", "{}").header("x-a", "1");
        assert_eq!(
            request.encode("h:1"),
            b"POST /echo HTTP/1.1\r\nhost: h:1\r\ncontent-type: application/json\r\nx-a: 1\r\ncontent-length: 2\r\n\r\n{}"
        );
        assert_eq!(request.shown(), "POST /echo x-a: 1 {}");
        assert_eq!(get("/a?b").encode("h"), b"GET /a?b HTTP/1.1\r\nhost: h\r\n\r\n");
        assert_eq!(chunked(b"abc", 2), b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    }
}
