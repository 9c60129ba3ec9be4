//! A server on a raw socket whose every byte a test decides. It ends, and joins its threads, when dropped.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What a server has seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) closed: AtomicU64,
    /// Set to have the server refuse further connections.
    pub(crate) stop: AtomicBool,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// `handler` has each connection to itself, on its own thread, and closes it by returning.
    pub(crate) fn start(handler: impl Fn(TcpStream, &Seen) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (noted, handler) = (Arc::clone(&seen), Arc::new(handler));
        let acceptor = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if noted.stop.load(Ordering::SeqCst) {
                    break;
                }
                let (stream, seen, handler) = (stream.unwrap(), Arc::clone(&noted), Arc::clone(&handler));
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(crate::load::PATIENCE)).unwrap();
                seen.connections.fetch_add(1, Ordering::SeqCst);
                threads.push(std::thread::spawn(move || {
                    handler(stream, &seen);
                    seen.closed.fetch_add(1, Ordering::SeqCst);
                }));
            }
            drop(listener);
            for thread in threads {
                thread.join().unwrap();
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn closed(&self) -> u64 {
        self.seen.closed.load(Ordering::SeqCst)
    }
}

impl Seen {
    /// Waits until the server ends: for connections that are to be held open.
    pub(crate) fn wait_for_stop(&self) {
        let deadline = Instant::now() + crate::load::PATIENCE;
        while !self.stop.load(Ordering::SeqCst) && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Closes the listener: a last connection wakes the acceptor.
    pub(crate) fn stop_listening(&self, address: SocketAddr) {
        if !self.stop.swap(true, Ordering::SeqCst) {
            let _ = TcpStream::connect(address);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.stop_listening(self.address);
        let ended = self.acceptor.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// What to answer, in which pieces, and whether the connection ends with it.
pub(crate) struct Reply {
    bytes: Vec<u8>,
    piece: usize,
    is_last: bool,
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::pieces(text, usize::MAX)
    }
}

impl Reply {
    pub(crate) fn pieces(text: &str, piece: usize) -> Self {
        Self { bytes: text.as_bytes().to_vec(), piece, is_last: false }
    }

    pub(crate) fn last(text: &str) -> Self {
        Self { is_last: true, ..Self::from(text) }
    }

    /// The body of a request back.
    pub(crate) fn echo(request: &str) -> Self {
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_str().into()
    }
}

/// Answers every request of a connection (with its number there and its bytes) until the driver or `reply` ends it.
pub(crate) fn exchange(
    stream: &mut (impl Read + Write),
    seen: &Seen,
    mut reply: impl FnMut(u64, &str) -> Option<Reply>,
) {
    let mut number = 0;
    while let Some(request) = read_request(stream) {
        seen.requests.fetch_add(1, Ordering::SeqCst);
        let Some(Reply { bytes, piece, is_last }) = reply(number, &request) else { return };
        number += 1;
        if bytes.chunks(piece.min(bytes.len().max(1))).any(|piece| stream.write_all(piece).is_err()) || is_last {
            return;
        }
    }
}

/// One request with its body; `None` at the end of the connection.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text.into_owned());
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}
