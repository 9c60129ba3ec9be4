//! Replies as bytes.

use std::cell::RefCell;

use axum::http::StatusCode;
use nix::time::{ClockId, clock_gettime};

use crate::server::reply::Reply;

/// What of a reply depends on its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// HEAD: everything but the body.
    pub(super) without_body: bool,
    /// This is the connection's last reply.
    pub(super) closes: bool,
    /// The client speaks HTTP/1.0 and must be told that the connection is kept.
    pub(super) says_keep_alive: bool,
}

/// Length of `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
const DATE_LENGTH: usize = 29;

/// More than any head has.
const HEAD_BYTES: usize = 256;

/// Appends `reply`.
pub(super) fn write(out: &mut Vec<u8>, reply: &Reply, manner: Manner) {
    out.reserve(HEAD_BYTES + reply.body.len());
    match reply.status {
        StatusCode::OK => out.extend_from_slice(b"HTTP/1.1 200 OK"),
        StatusCode::CREATED => out.extend_from_slice(b"HTTP/1.1 201 Created"),
        status => {
            for part in ["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason().unwrap_or_default()] {
                out.extend_from_slice(part.as_bytes());
            }
        }
    }
    out.extend_from_slice(b"\r\ncontent-type: ");
    out.extend_from_slice(reply.media_type.as_bytes());
    out.extend_from_slice(b"\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(reply.body.len()).as_bytes());
    out.extend_from_slice(b"\r\ndate: ");
    DATE.with_borrow_mut(|date| out.extend_from_slice(date.now()));
    if let Some(extra) = reply.extra {
        for part in ["\r\n", extra.name, ": ", extra.value] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    if manner.closes {
        out.extend_from_slice(b"\r\nconnection: close");
    } else if manner.says_keep_alive {
        out.extend_from_slice(b"\r\nconnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
    if !manner.without_body {
        out.extend_from_slice(&reply.body);
    }
}

thread_local! {
    static DATE: RefCell<Date> = const { RefCell::new(Date { second: i64::MIN, text: [0; DATE_LENGTH] }) };
}

/// The date header of the current second, rendered once a second.
struct Date {
    second: i64,
    text: [u8; DATE_LENGTH],
}

impl Date {
    fn now(&mut self) -> &[u8] {
        // The kernel's tick, a few milliseconds old, is exact enough for whole seconds.
        let second = clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_or(0, |now| now.tv_sec());
        if second != self.second {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(second).unwrap_or(0));
            self.text.copy_from_slice(httpdate::fmt_http_date(at).as_bytes());
            self.second = second;
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::error::ApiError;

    const KEPT: Manner = Manner { without_body: false, closes: false, says_keep_alive: false };

    /// The bytes, with the date's value blanked.
    fn written(reply: &Reply, manner: Manner) -> String {
        let mut out = Vec::new();
        write(&mut out, reply, manner);
        let text = String::from_utf8(out).expect("UTF-8");
        let (before, rest) = text.split_once("date: ").expect("a date");
        assert!(rest[..DATE_LENGTH].ends_with(" GMT"), "{rest}");
        format!("{before}date: …{}", &rest[DATE_LENGTH..])
    }

    #[test]
    fn replies_are_written_as_http_says() {
        let reply = Reply::json(StatusCode::OK, &[1, 2]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\ndate: …";
        assert_eq!(written(&reply, KEPT), format!("{head}\r\n\r\n[1,2]"));
        assert_eq!(written(&reply, Manner { without_body: true, ..KEPT }), format!("{head}\r\n\r\n"));
        let closing = Manner { closes: true, ..KEPT };
        assert_eq!(written(&reply, closing), format!("{head}\r\nconnection: close\r\n\r\n[1,2]"));
        let kept = Manner { says_keep_alive: true, ..KEPT };
        assert_eq!(written(&reply, kept), format!("{head}\r\nconnection: keep-alive\r\n\r\n[1,2]"));
        let refused = written(&ApiError::MethodNotAllowed("POST").into(), KEPT);
        assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/problem+json\r\n"));
        assert!(refused.contains("…\r\nallow: POST\r\n\r\n{"), "{refused}");
    }
}
