//! What is answered, before any HTTP library has seen it.

use axum::http::StatusCode;
use serde::Serialize;

/// Holds every body but a page of users without growing.
const USUAL_BYTES: usize = 160;

/// Status, body and the few headers that differ between replies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) media_type: &'static str,
    pub(super) body: Vec<u8>,
    pub(super) extra: Option<Extra>,
    /// The rest of the request was not read: the connection cannot carry another one.
    pub(super) closes: bool,
}

/// The header that some errors carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
}

impl Reply {
    /// `value` as JSON.
    pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        let mut body = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut body, value).expect("replies are structs of strings and numbers");
        Self::of(status, body)
    }

    /// JSON that is written already.
    pub(super) fn of(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, media_type: "application/json", body, extra: None, closes: false }
    }
}

/// Appends a JSON string; most hold nothing that must be escaped and are copied as they are.
pub(super) fn append_text(body: &mut Vec<u8>, text: &str) {
    let is_special = |byte: &u8| *byte < 0x20 || matches!(*byte, b'"' | b'\\');
    // Counted, not searched: a loop without an exit looks at sixteen bytes at once.
    if text.as_bytes().iter().filter(|byte| is_special(byte)).count() == 0 {
        body.push(b'"');
        body.extend_from_slice(text.as_bytes());
        body.push(b'"');
    } else {
        serde_json::to_writer(body, text).expect("a string serialises");
    }
}
