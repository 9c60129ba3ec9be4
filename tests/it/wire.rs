//! HTTP as bytes on a socket, so that nothing a library would tidy up goes unseen.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for any single read in a test.
const DEADLINE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A reply as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Status line and header lines, without the blank one.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        Self { stream, read: Vec::new() }
    }

    /// The same connection, to be written to while another thread reads from it.
    pub(crate) fn another_handle(&self) -> Self {
        Self { stream: self.stream.try_clone().expect("a handle"), read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Sends what it can; a server that has answered and closed is fine.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A request without body on this connection, and its reply.
    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.send(format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n"));
        self.reply()
    }

    /// Bytes on this connection, and the next reply; a server that answers before it has read them all is fine.
    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Reply {
        let _ = self.try_send(bytes.as_ref());
        self.reply()
    }

    /// A JSON body on this connection, and its reply.
    pub(crate) fn post(&mut self, target: &str, body: &str) -> Reply {
        self.try_post(target, body).expect("a whole reply")
    }

    /// A JSON body on this connection, and its reply if the server lives to send one.
    pub(crate) fn try_post(&mut self, target: &str, body: &str) -> std::io::Result<Reply> {
        let length = body.len();
        self.try_send(
            format!(
                "POST {target} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )?;
        self.try_reply()
    }

    /// Says that nothing more will be sent; replies can still be read.
    pub(crate) fn end(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a connection");
    }

    /// The next reply, framed by its content-length.
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("a whole reply")
    }

    /// The next reply, whose content-length is that of a body which does not come.
    pub(crate) fn reply_to_head(&mut self) -> Reply {
        self.try_reply_to_head().expect("a whole head")
    }

    fn try_reply(&mut self) -> std::io::Result<Reply> {
        let mut reply = self.try_reply_to_head()?;
        if reply.status >= 200 {
            let length: usize = reply.header("content-length").map_or(0, |value| value.parse().expect("a length"));
            while self.read.len() < length {
                self.fill_more()?;
            }
            reply.body = String::from_utf8(self.read.drain(..length).collect()).expect("UTF-8");
        }
        Ok(reply)
    }

    fn try_reply_to_head(&mut self) -> std::io::Result<Reply> {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill_more()?;
        };
        let head = String::from_utf8(self.read[..head_end - 4].to_vec()).expect("an ASCII head");
        self.read.drain(..head_end);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Ok(Reply { status, head, body: String::new() })
    }

    fn fill_more(&mut self) -> std::io::Result<()> {
        if self.fill() > 0 {
            return Ok(());
        }
        let so_far = String::from_utf8_lossy(&self.read).into_owned();
        Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, format!("closed after {so_far:?}")))
    }

    /// True when nothing has come so far.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.stream.set_nonblocking(true).expect("a mode");
        let read = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a mode");
        self.read.is_empty() && read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// True when the server closes the connection without sending anything more.
    pub(crate) fn closed(&mut self) -> bool {
        self.read.is_empty() && self.fill() == 0
    }

    fn fill(&mut self) -> usize {
        let mut piece = [0; 16 * 1024];
        let count = match self.stream.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("no answer in {DEADLINE:?}: {error}"),
        };
        self.read.extend_from_slice(&piece[..count]);
        count
    }
}
