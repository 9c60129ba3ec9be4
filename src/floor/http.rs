//! The bare responder: an epoll loop that answers every request with the same bytes.
//!
//! It finds the end of a request and nothing else: no route, no header, no limit. What it costs is what the kernel asks
//! for a request on this host; a server can only cost more.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// The listener's token; connections count from 0.
const LISTENER: Token = Token(usize::MAX);
const EVENTS_AT_ONCE: usize = 1_024;
/// Holds any request of the driver: one that does not fit in one read is not the floor's business.
const REQUEST_BYTES: usize = 16 * 1_024;
/// How often the loop looks whether it should stop.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Answers on one thread.
#[derive(Debug)]
pub struct Responder {
    poll: Poll,
    listener: TcpListener,
    reply: Vec<u8>,
    /// By token; a place that has come free is used again.
    connections: Vec<Option<TcpStream>>,
    free: Vec<usize>,
}

impl Responder {
    /// Binds `address`, port 0 for any, and answers `status` with `body`.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub fn bind(address: SocketAddr, status: u16, body: &[u8]) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let head = format!(
            "HTTP/1.1 {status} Floor\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             date: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n",
            body.len()
        );
        let reply = [head.as_bytes(), body].concat();
        Ok(Self { poll, listener, reply, connections: Vec::new(), free: Vec::new() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stops` says so.
    ///
    /// # Errors
    /// Where the kernel refuses to poll or to register a connection.
    pub fn run(&mut self, stops: impl Fn() -> bool) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        let mut buffer = vec![0; REQUEST_BYTES];
        while !stops() {
            match self.poll.poll(&mut events, Some(STOP_POLL)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                } else if !self.answer(event.token().0, &mut buffer) {
                    self.connections[event.token().0] = None;
                    self.free.push(event.token().0);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((mut stream, _)) = self.listener.accept() {
            stream.set_nodelay(true)?;
            let place = self.free.pop().unwrap_or(self.connections.len());
            self.poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
            if place == self.connections.len() {
                self.connections.push(None);
            }
            self.connections[place] = Some(stream);
        }
        Ok(())
    }

    /// One read and one write. `false` when the connection has ended, or sent what is no whole request.
    fn answer(&mut self, place: usize, buffer: &mut [u8]) -> bool {
        // The kernel forgets a closed connection; an event of the same batch for its successor is one of readiness only.
        let Some(stream) = &mut self.connections[place] else { return true };
        match stream.read(buffer) {
            Ok(0) => false,
            Ok(count) if is_whole(&buffer[..count]) => stream.write(&self.reply).is_ok_and(|n| n == self.reply.len()),
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

/// Whether one request ends here: at a blank line, or at the brace of a JSON body.
fn is_whole(request: &[u8]) -> bool {
    request.ends_with(b"\r\n\r\n") || request.ends_with(b"}")
}
