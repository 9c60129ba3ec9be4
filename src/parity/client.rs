//! One connection to the server under test: raw bytes out, framed replies in, every wait with a deadline.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::framing::{self, Progress, Reply};
use super::show;

/// One read. Larger than every reply but the large echo.
const READ_BYTES: usize = 16 * 1024;
/// Kept of each direction of an exchange.
const KEPT_BYTES: usize = 4 * 1024;
/// The shortest timeout a socket takes: zero would mean for ever.
const SHORTEST: Duration = Duration::from_millis(1);

/// A connection, with the bytes read from it and not yet used.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    ended: bool,
    transcript: Transcript,
}

/// The last exchange of a connection, as the bytes were: what a failure shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Transcript {
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Transcript {
    /// Request and reply, each as lines for a reader.
    pub(super) fn shown(&self) -> (String, String) {
        (show::lines(&self.sent), show::lines(&self.received))
    }

    /// What is sent after something came back begins another exchange.
    fn send(&mut self, bytes: &[u8]) {
        if !self.received.is_empty() {
            *self = Self::default();
        }
        keep(&mut self.sent, bytes);
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT_BYTES.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Says in one line what refused or took too long.
    pub(super) fn open(address: SocketAddr, timeout: Duration) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&address, timeout)
            .map_err(|error| format!("no connection to {address}: {}", plain(&error, timeout)))?;
        // The gate sends small pieces on purpose and must not have them collected.
        stream.set_nodelay(true).map_err(|error| format!("no connection to {address}: {error}"))?;
        Ok(Self { stream, unread: Vec::new(), ended: false, transcript: Transcript::default() })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The server reset the connection or stopped reading.
    pub(super) fn send(&mut self, bytes: &[u8], timeout: Duration) -> Result<(), String> {
        self.transcript.send(bytes);
        let sent = self.stream.set_write_timeout(Some(timeout.max(SHORTEST)));
        sent.and_then(|()| self.stream.write_all(bytes))
            .map_err(|error| format!("the request could not be sent: {}", plain(&error, timeout)))
    }

    /// Reads one reply, in at most `timeout` altogether: a server that trickles gains nothing.
    ///
    /// # Errors
    /// Timeout, end or reset of the connection, or bytes that are not HTTP.
    pub(super) fn reply(&mut self, to_head: bool, timeout: Duration) -> Result<Reply, String> {
        let deadline = Instant::now() + timeout;
        loop {
            match framing::read(&self.unread, to_head, self.ended) {
                Ok(Progress::Whole(reply, used)) => {
                    self.unread.drain(..used);
                    return Ok(reply);
                }
                Ok(Progress::Partial(of)) if self.ended => return Err(self.ended_within(of)),
                Ok(Progress::Partial(of)) => self.fill(deadline).map_err(|error| match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => self.late(of, timeout),
                    _ => format!("the connection broke within {of}: {error}"),
                })?,
                Err(nonsense) => return Err(format!("the server sent {nonsense}")),
            }
        }
    }

    /// Reads an interim reply alone (`100 Continue`), if the next one is interim; `None` for a final one, which stays.
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    pub(super) fn interim(&mut self, timeout: Duration) -> Result<Option<u16>, String> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                let status = std::str::from_utf8(self.unread.get(9..12).unwrap_or_default()).unwrap_or_default();
                let Ok(status) = status.parse::<u16>() else { return Err("the server sent no status".to_owned()) };
                if status >= 200 {
                    return Ok(None);
                }
                self.unread.drain(..end + 4);
                return Ok(Some(status));
            }
            if self.ended {
                return Err(self.ended_within("the head"));
            }
            self.fill(deadline).map_err(|error| plain(&error, timeout))?;
        }
    }

    /// Whether the server closes within `timeout` without sending anything more.
    pub(super) fn closes_within(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.ended {
            match self.fill(deadline) {
                Ok(()) => {}
                // A reset closes as surely as an end does.
                Err(error) => return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
            if !self.unread.is_empty() {
                return false;
            }
        }
        true
    }

    /// The last exchange.
    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Bytes that came beyond the replies that were asked for.
    pub(super) fn excess(&self) -> usize {
        self.unread.len()
    }

    /// Whether the connection can take another request: the server has neither closed it nor sent what nobody asked for.
    pub(super) fn is_idle(&self) -> bool {
        let mut one = [0];
        let open = self.stream.set_nonblocking(true).is_ok()
            && matches!(self.stream.peek(&mut one), Err(error) if error.kind() == ErrorKind::WouldBlock);
        let blocking = self.stream.set_nonblocking(false).is_ok();
        open && blocking && !self.ended && self.unread.is_empty()
    }

    fn fill(&mut self, deadline: Instant) -> std::io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.max(SHORTEST)))?;
        let mut piece = [0; READ_BYTES];
        let read = self.stream.read(&mut piece)?;
        self.unread.extend_from_slice(&piece[..read]);
        keep(&mut self.transcript.received, &piece[..read]);
        self.ended = read == 0;
        Ok(())
    }

    fn late(&self, of: &str, timeout: Duration) -> String {
        let read = self.unread.len();
        format!("no whole reply within {} ms: {read} bytes came, {of} is not complete", timeout.as_millis())
    }

    fn ended_within(&self, of: &str) -> String {
        if self.unread.is_empty() {
            return "the server closed the connection without a reply".to_owned();
        }
        format!("the server closed the connection after {} bytes, within {of}", self.unread.len())
    }
}

fn plain(error: &std::io::Error, timeout: Duration) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("nothing within {} ms", timeout.as_millis()),
        _ => error.to_string().to_lowercase(),
    }
}
