//! A proxy before the real server that changes one thing at a time. It works on whole requests and replies.

#![expect(clippy::unwrap_used, reason = "a test ends where one of its parts cannot go on")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait on either side. A gate that has gone closes its connections at once.
const PATIENCE: Duration = Duration::from_secs(20);
const MAX_HEADERS: usize = 64;

/// A request or a reply; the body without its framing.
#[derive(Debug, Clone, Default)]
pub(super) struct Message {
    /// `GET /health HTTP/1.1` or `HTTP/1.1 200 OK`.
    pub(super) start: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Message {
    pub(super) fn reply(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { start: format!("HTTP/1.1 {status} X"), headers, body: body.into() }
    }

    pub(super) fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    pub(super) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    pub(super) fn is(&self, method: &str, target: &str) -> bool {
        self.method() == method && self.target() == target
    }

    pub(super) fn set_target(&mut self, target: &str) {
        self.start = format!("{} {target} HTTP/1.1", self.method());
    }

    pub(super) fn status(&self) -> u16 {
        self.start[9..12].parse().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn set_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(found, _)| found != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn encode(&self, answers_head: bool) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.start);
        for (name, value) in &self.headers {
            if !(["content-length", "transfer-encoding", "expect"].contains(&name.as_str())) {
                bytes.extend([name, ": ", value, "\r\n"]);
            }
        }
        bytes.extend(["content-length: ", &self.body.len().to_string(), "\r\n\r\n"]);
        if !answers_head {
            bytes.push_str(&self.body);
        }
        bytes.into_bytes()
    }
}

/// Asks the real server. A mutant may ask with another request, twice, or not at all.
pub(super) type Upstream<'a> = dyn FnMut(&Message) -> Message + 'a;

/// Answers a request; `state` is shared by all connections of one proxy.
pub(super) type Handler = fn(Message, &mut Upstream<'_>, &State) -> Message;

/// What a mutant remembers.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) replies: Mutex<Vec<(String, Message)>>,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(super) fn start(server: SocketAddr, handler: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let acceptor = std::thread::spawn(move || {
            let state = Arc::new(State::default());
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let (stream, state) = (stream.unwrap(), Arc::clone(&state));
                connections.push(std::thread::spawn(move || serve(stream, server, handler, &state)));
            }
            for connection in connections {
                connection.join().unwrap();
            }
        });
        Self { address, stop, acceptor: Some(acceptor) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the acceptor; connections end with the gate's.
        let _ = TcpStream::connect(self.address);
        let ended = self.acceptor.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the proxy panicked");
    }
}

/// One connection of the gate, with one of its own to the server.
fn serve(client: TcpStream, server: SocketAddr, handler: Handler, state: &State) {
    let mut client = Peer::new(client);
    let mut upstream: Option<Peer> = None;
    while let Some(request) = client.read_request() {
        let is_head = request.method() == "HEAD";
        let mut ask = |request: &Message| {
            let mut peer = upstream.take().unwrap_or_else(|| Peer::new(TcpStream::connect(server).unwrap()));
            peer.stream.write_all(&request.encode(false)).unwrap();
            let reply = peer.read_reply(is_head);
            if reply.header("connection") != Some("close") {
                upstream = Some(peer);
            }
            reply
        };
        let reply = handler(request, &mut ask, state);
        let closes = reply.header("connection") == Some("close");
        if client.stream.write_all(&reply.encode(is_head)).is_err() || closes {
            return;
        }
    }
}

struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, unread: Vec::new() }
    }

    /// `None` once the client has closed. What is not HTTP is answered here: only core checks matter to a mutant.
    fn read_request(&mut self) -> Option<Message> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut request = httparse::Request::new(&mut fields);
            match request.parse(&self.unread) {
                Ok(httparse::Status::Complete(length)) => {
                    let start = format!("{} {} HTTP/1.1", request.method.unwrap(), request.path.unwrap());
                    let headers = collect(request.headers);
                    let message = Message { start, headers, body: String::new() };
                    self.unread.drain(..length);
                    if message.header("content-length").is_none() && message.header("transfer-encoding").is_none() {
                        return Some(message);
                    }
                    return self.read_body(message);
                }
                Ok(httparse::Status::Partial) if self.fill() => {}
                _ => return None,
            }
        }
    }

    fn read_reply(&mut self, to_head: bool) -> Message {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut fields);
            if let httparse::Status::Complete(length) = response.parse(&self.unread).unwrap() {
                let start = format!("HTTP/1.1 {} X", response.code.unwrap());
                let message = Message { start, headers: collect(response.headers), body: String::new() };
                self.unread.drain(..length);
                if to_head {
                    return message;
                }
                return self.read_body(message).expect("a whole reply of the server");
            }
            assert!(self.fill(), "the server closed within a reply");
        }
    }

    fn read_body(&mut self, mut message: Message) -> Option<Message> {
        let mut body = Vec::new();
        if let Some(length) = message.header("content-length") {
            let length: usize = length.parse().ok()?;
            self.take(length, &mut body)?;
        } else {
            loop {
                let (used, size) = loop {
                    match httparse::parse_chunk_size(&self.unread).ok()? {
                        httparse::Status::Complete(found) => break found,
                        httparse::Status::Partial => self.fill().then_some(())?,
                    }
                };
                self.unread.drain(..used);
                self.take(usize::try_from(size).ok()?, &mut body)?;
                self.take(2, &mut Vec::new())?;
                if size == 0 {
                    break;
                }
            }
        }
        message.body = String::from_utf8(body).ok()?;
        Some(message)
    }

    fn take(&mut self, length: usize, into: &mut Vec<u8>) -> Option<()> {
        while self.unread.len() < length {
            self.fill().then_some(())?;
        }
        into.extend(self.unread.drain(..length));
        Some(())
    }

    fn fill(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let read = self.stream.read(&mut piece).unwrap_or(0);
        self.unread.extend_from_slice(&piece[..read]);
        read > 0
    }
}

fn collect(fields: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|field| (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).into_owned()))
        .collect()
}
