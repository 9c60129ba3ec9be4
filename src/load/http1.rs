//! Replies of HTTP/1.1, framed strictly: bytes in, whole replies or a named fault out. No clock and no socket here.
//!
//! One request is outstanding at a time, so whatever follows a reply, or comes before its request is on the wire, is a
//! fault of the server and not a second reply. Framing is by method and status (RFC 9112, section 6.3): what would
//! be ambiguous there is refused instead of guessed.

mod chunked;
mod head;

use chunked::Chunked;
pub(super) use head::HeadCache;
use head::{Head, LineScan};
pub(super) use head::{is_token_byte, is_value_byte};

/// Longest head, and longest trailer section, that is kept while its end is not seen. Servers refuse to send more.
const HEAD_LIMIT_BYTES: usize = 64 * 1024;
/// 1xx replies taken before the real one. More than a few is a server that never comes to its point.
const INTERIM_LIMIT: u8 = 8;
/// Longest body that is kept for a comparison; the contract's longest reply has about 2.5 KiB.
const CAPTURE_LIMIT_BYTES: usize = 1024 * 1024;

/// First bytes of a body that can be wanted without the rest: the id of a row stands there.
pub(super) const START_BYTES: usize = 24;

/// What is wrong with the bytes of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// Bytes came before the request was on the wire.
    #[error("the server sent bytes before it had the request")]
    EarlyReply,
    /// Bytes came after the end of the reply.
    #[error("{bytes} surplus bytes after the end of the reply")]
    Surplus {
        /// How many were seen with the reply.
        bytes: usize,
    },
    /// The connection ended without one byte of reply.
    #[error("the connection was closed before any byte of the reply")]
    ClosedBeforeReply,
    /// The connection ended inside the head.
    #[error("the connection was closed inside the reply's head")]
    ClosedInHead,
    /// The connection ended inside the body.
    #[error("the connection was closed inside the reply's body")]
    ClosedInBody,
    /// Not `HTTP/1.x NNN reason`.
    #[error("malformed status line")]
    StatusLine,
    /// A version that is neither 1.0 nor 1.1.
    #[error("a version other than HTTP/1.0 and HTTP/1.1")]
    Version,
    /// A line feed without its carriage return.
    #[error("a line of the head ends without a carriage return")]
    BareLineFeed,
    /// Not `name: value`, or a byte that may not stand there.
    #[error("malformed header field")]
    Field,
    /// A head or trailer section beyond the limit.
    #[error("a head of more than {HEAD_LIMIT_BYTES} bytes")]
    HeadTooLong,
    /// Content-length that is no number.
    #[error("malformed content-length")]
    Length,
    /// Two lengths, or a length and a transfer-encoding.
    #[error("conflicting lengths")]
    ConflictingLengths,
    /// Something else than `transfer-encoding: chunked`.
    #[error("a transfer-encoding that was not asked for")]
    TransferEncoding,
    /// A chunk that breaks the grammar.
    #[error("malformed chunk")]
    Chunk,
    /// 101 without an upgrade asked for.
    #[error("101 switching protocols, which nobody asked for")]
    SwitchingProtocols,
    /// Too many 1xx replies.
    #[error("more than {INTERIM_LIMIT} interim replies")]
    TooManyInterim,
}

/// How the end of a body was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// HEAD, 204, 304: no body whatever the head says.
    NoBody,
    /// `content-length`.
    Length,
    /// `transfer-encoding: chunked`.
    Chunked,
    /// Until the connection closed: a cut body cannot be told from a whole one.
    EndOfStream,
}

/// A whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    /// 200..=599.
    pub(super) status: u16,
    /// How its end was known.
    pub(super) framing: Framing,
    /// The server will close the connection.
    pub(super) close: bool,
}

#[derive(Debug)]
enum State {
    /// No request on the wire.
    Idle,
    /// In the head of the reply, or of an interim reply before it.
    Head,
    Length {
        left: u64,
    },
    Chunked(Chunked),
    EndOfStream,
}

/// The replies of one connection.
#[derive(Debug)]
pub(super) struct Framer {
    state: State,
    /// The part of a head or trailer section that is not whole yet.
    carry: Vec<u8>,
    scan: LineScan,
    interim: u8,
    /// Any byte seen since the request.
    begun: bool,
    is_head: bool,
    reply: Reply,
    wants: Wants,
    /// The body is kept.
    capture: bool,
    body: Vec<u8>,
    /// Its first bytes, where only these are wanted.
    start: [u8; START_BYTES],
    start_length: usize,
}

/// What is wanted of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// All of it, for [`Framer::body`].
    pub(super) whole: bool,
    /// Its first bytes, for [`Framer::start`].
    pub(super) start: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self {
            state: State::Idle,
            carry: Vec::new(),
            scan: LineScan::default(),
            interim: 0,
            begun: false,
            is_head: false,
            reply: Reply { status: 0, framing: Framing::NoBody, close: false },
            wants: Wants::default(),
            capture: false,
            body: Vec::new(),
            start: [0; START_BYTES],
            start_length: 0,
        }
    }
}

impl Framer {
    /// A request is wholly on the wire: its reply may come.
    pub(super) fn expect(&mut self, is_head: bool, wants: Wants) {
        self.state = State::Head;
        self.is_head = is_head;
        self.wants = wants;
        self.capture = wants.whole;
        self.begun = false;
        self.interim = 0;
        self.start_length = 0;
        if wants.whole {
            self.body.clear();
        }
    }

    /// What was wanted of the last body.
    pub(super) fn wants(&self) -> Wants {
        self.wants
    }

    /// First bytes of the last body, at least [`START_BYTES`] where it has as many.
    pub(super) fn start(&self) -> &[u8] {
        if self.capture { &self.body } else { &self.start[..self.start_length] }
    }

    /// Whether any byte of the expected reply has come.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Body of the last reply, where all of it was wanted: at most one byte beyond the limit is kept, so that a body
    /// that is too long differs from every expected one.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes bytes as they came; `Some` when they end the reply exactly.
    ///
    /// # Errors
    /// A fault leaves the connection unusable.
    #[inline]
    pub(super) fn feed(&mut self, input: &[u8], heads: &mut HeadCache) -> Result<Option<Reply>, Fault> {
        let mut rest = input;
        if matches!(self.state, State::Head) && !rest.is_empty() {
            self.begun = true;
        }
        while !rest.is_empty() {
            let whole = match &mut self.state {
                State::Idle => return Err(Fault::EarlyReply),
                State::Head => self.head(&mut rest, heads)?,
                State::Length { left } => {
                    // Saturating: on 32 bits a body may be longer than memory.
                    let taken = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= taken as u64;
                    let whole = *left == 0;
                    self.keep(&rest[..taken]);
                    rest = &rest[taken..];
                    whole
                }
                State::Chunked(chunked) => {
                    let keep = self.capture.then_some(&mut self.body);
                    chunked.feed(&mut rest, &mut self.carry, &mut self.scan, keep)?
                }
                State::EndOfStream => {
                    self.keep(rest);
                    rest = &[];
                    false
                }
            };
            if whole {
                self.state = State::Idle;
                self.begun = false;
                return if rest.is_empty() { Ok(Some(self.reply)) } else { Err(Fault::Surplus { bytes: rest.len() }) };
            }
        }
        Ok(None)
    }

    /// The connection ended: completes a reply framed by that, is `None` where no reply was owed.
    ///
    /// # Errors
    /// Where a reply was owed or begun.
    pub(super) fn end(&mut self) -> Result<Option<Reply>, Fault> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(None),
            State::Head if !self.begun => Err(Fault::ClosedBeforeReply),
            State::Head => Err(Fault::ClosedInHead),
            State::Length { .. } | State::Chunked(_) => Err(Fault::ClosedInBody),
            State::EndOfStream => Ok(Some(self.reply)),
        }
    }

    /// Takes one head off `rest`; true where it is a reply without a body.
    fn head(&mut self, rest: &mut &[u8], heads: &mut HeadCache) -> Result<bool, Fault> {
        if self.carry.is_empty() {
            if let Some((head, length)) = heads.recall(rest) {
                *rest = &rest[length..];
                return self.begin_body(head);
            }
            let mut scan = LineScan::default();
            if let Some(end) = scan.end_of_section(rest)? {
                if end > HEAD_LIMIT_BYTES {
                    return Err(Fault::HeadTooLong);
                }
                let head = heads.learn(&rest[..end])?;
                *rest = &rest[end..];
                return self.begin_body(head);
            }
        }
        let Some(end) = gather(&mut self.carry, &mut self.scan, rest)? else { return Ok(false) };
        debug_assert_eq!(end, self.carry.len());
        let head = heads.learn(&self.carry)?;
        self.carry.clear();
        self.begin_body(head)
    }

    fn begin_body(&mut self, head: Head) -> Result<bool, Fault> {
        if head.status == 101 {
            return Err(Fault::SwitchingProtocols);
        }
        if head.status < 200 {
            self.interim += 1;
            return if self.interim > INTERIM_LIMIT { Err(Fault::TooManyInterim) } else { Ok(false) };
        }
        let (framing, state) = if self.is_head || head.status == 204 || head.status == 304 {
            (Framing::NoBody, State::Idle)
        } else if head.chunked {
            (Framing::Chunked, State::Chunked(Chunked::default()))
        } else if let Some(left) = head.length {
            (Framing::Length, State::Length { left })
        } else {
            (Framing::EndOfStream, State::EndOfStream)
        };
        if self.wants.start && !self.capture && framing != Framing::Length {
            // Where a body comes in parts nobody knows beforehand, all of it is kept.
            self.capture = true;
            self.body.clear();
        }
        let whole = matches!(state, State::Idle | State::Length { left: 0 });
        self.state = state;
        self.reply = Reply { status: head.status, framing, close: head.close || framing == Framing::EndOfStream };
        Ok(whole)
    }

    #[inline]
    fn keep(&mut self, bytes: &[u8]) {
        if self.capture {
            keep(&mut self.body, bytes);
        } else if self.wants.start && self.start_length < START_BYTES {
            let taken = bytes.len().min(START_BYTES - self.start_length);
            self.start[self.start_length..self.start_length + taken].copy_from_slice(&bytes[..taken]);
            self.start_length += taken;
        }
    }
}

/// Keeps a body up to one byte beyond the limit.
fn keep(body: &mut Vec<u8>, bytes: &[u8]) {
    let room = (CAPTURE_LIMIT_BYTES + 1).saturating_sub(body.len());
    body.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// Moves bytes from `rest` to `carry` until `carry` ends with an empty line; `Some(length)` when it does.
fn gather(carry: &mut Vec<u8>, scan: &mut LineScan, rest: &mut &[u8]) -> Result<Option<usize>, Fault> {
    let before = carry.len();
    let room = (HEAD_LIMIT_BYTES + 1).saturating_sub(before);
    let taken = rest.len().min(room);
    carry.extend_from_slice(&rest[..taken]);
    match scan.end_of_section(carry)? {
        Some(end) => {
            carry.truncate(end);
            *rest = &rest[end - before..];
            *scan = LineScan::default();
            Ok(Some(end))
        }
        None if carry.len() > HEAD_LIMIT_BYTES => Err(Fault::HeadTooLong),
        None => {
            *rest = &rest[taken..];
            Ok(None)
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
