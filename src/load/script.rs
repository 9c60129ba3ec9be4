//! The requests as bytes, rendered once: one buffer that all connections of all threads read.

use anyhow::{bail, ensure};

use super::Request;
use super::http1::{START_BYTES, is_token_byte, is_value_byte};
use crate::contract::Expected;

/// All requests of a run, in order.
#[derive(Debug)]
pub(super) struct Script {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    expected: Vec<Option<Expected>>,
}

/// One request in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The method is HEAD: its reply has no body.
    pub(super) is_head: bool,
    /// The reply's body is known.
    pub(super) has_expected: bool,
    /// Length of what every reply's body must begin with; 0 where nothing is known of it.
    pub(super) known_start: u8,
}

impl Script {
    /// # Errors
    /// Where a request cannot be sent as it is given.
    pub(super) fn render(requests: Vec<Request>, host: &str) -> anyhow::Result<Self> {
        ensure!(!requests.is_empty(), "there is no request to send: give at least one");
        let mut script = Self { bytes: Vec::new(), slots: Vec::new(), expected: Vec::new() };
        for request in requests {
            let start = script.bytes.len();
            render_request(&request, host, &mut script.bytes)?;
            let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(script.bytes.len())) else {
                bail!("the requests are longer than 4 GiB together: send fewer or shorter ones");
            };
            let (is_head, has_expected) = (request.method == "HEAD", request.expected.is_some());
            let known_start = request.expected.as_ref().and_then(Expected::start).map_or(0, <[u8]>::len);
            let known_start = u8::try_from(known_start.min(START_BYTES)).expect("a few bytes");
            script.slots.push(Slot { start, end, is_head, has_expected, known_start });
            script.expected.push(request.expected);
        }
        Ok(script)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, index: usize) -> Slot {
        self.slots[index]
    }

    pub(super) fn bytes(&self, start: u32, end: u32) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    pub(super) fn expected(&self, index: usize) -> Option<&Expected> {
        self.expected[index].as_ref()
    }
}

fn render_request(request: &Request, host: &str, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let Request { method, target, headers, body, .. } = request;
    ensure!(
        !method.is_empty() && method.bytes().all(is_token_byte) && method != "CONNECT",
        "the method {method:?} cannot be sent: use a method such as GET or POST"
    );
    ensure!(
        !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic()),
        "the target {target:?} cannot be sent: percent-encode blanks and everything beyond ASCII"
    );
    out.extend_from_slice(format!("{method} {target} HTTP/1.1\r\n").as_bytes());
    let named = |wanted: &'static str| headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    ensure!(named("host").count() <= 1, "the host header is given twice: give it once");
    if named("host").next().is_none() {
        field("host", host, out)?;
    }
    for (name, value) in headers {
        field(name, value, out)?;
    }
    ensure!(
        named("transfer-encoding").next().is_none(),
        "the header transfer-encoding cannot be given: the driver frames bodies by their length"
    );
    if let Some((_, length)) = named("content-length").next() {
        ensure!(
            named("content-length").count() == 1 && length.parse() == Ok(body.len()),
            "content-length {length} does not fit a body of {} bytes: leave the header out",
            body.len()
        );
    } else if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        field("content-length", &body.len().to_string(), out)?;
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    Ok(())
}

fn field(name: &str, value: &str, out: &mut Vec<u8>) -> anyhow::Result<()> {
    ensure!(
        !name.is_empty() && name.bytes().all(is_token_byte) && value.bytes().all(is_value_byte),
        "the header {name:?} with value {value:?} cannot be sent: use a plain name and a value without line breaks"
    );
    out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Request {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Request { method: method.into(), target: target.into(), headers, body: body.into(), expected: None }
    }

    fn rendered(request: &Request) -> anyhow::Result<String> {
        let mut out = Vec::new();
        render_request(request, "127.0.0.1:80", &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn requests_are_rendered_with_one_host_and_a_length_where_one_is_due() {
        let get = request("GET", "/%2E.?a=b", &[("X-A", "1")], "");
        assert_eq!(rendered(&get).unwrap(), "GET /%2E.?a=b HTTP/1.1\r\nhost: 127.0.0.1:80\r\nX-A: 1\r\n\r\n");
        let post = request("POST", "/", &[("Host", "other")], "");
        assert_eq!(rendered(&post).unwrap(), "POST / HTTP/1.1\r\nHost: other\r\ncontent-length: 0\r\n\r\n");
        let delete = request("DELETE", "/", &[("content-length", "2")], "ab");
        assert!(rendered(&delete).unwrap().ends_with("\r\ncontent-length: 2\r\n\r\nab"));
    }

    #[test]
    fn what_would_break_the_framing_is_refused() {
        for (bad, says) in [
            (request("GE T", "/", &[], ""), "method"),
            (request("CONNECT", "/", &[], ""), "method"),
            (request("GET", "/a b", &[], ""), "target"),
            (request("GET", "", &[], ""), "target"),
            (request("GET", "/ü", &[], ""), "target"),
            (request("GET", "/", &[("a:b", "c")], ""), "header"),
            (request("GET", "/", &[("a", "c\r\nd: e")], ""), "header"),
            (request("GET", "/", &[("host", "a"), ("Host", "b")], ""), "twice"),
            (request("POST", "/", &[("content-length", "3")], "ab"), "does not fit"),
            (request("POST", "/", &[("transfer-encoding", "chunked")], "ab"), "transfer-encoding"),
        ] {
            let error = rendered(&bad).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
