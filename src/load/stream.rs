//! The socket of a connection: TCP, a Unix socket, or TLS over one of them. Nothing here waits.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;

use super::endpoint::{Endpoint, Place};

/// What a connection reads from and writes to.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream>),
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(super) struct TlsStream {
    socket: Socket,
    session: ClientConnection,
}

impl Stream {
    /// Starts to connect.
    pub(super) fn connect(endpoint: &Endpoint, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut socket = match &endpoint.place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Place::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
        };
        socket.source().register(registry, token, Interest::READABLE | Interest::WRITABLE)?;
        let Some(tls) = &endpoint.tls else { return Ok(Self::Plain(socket)) };
        let session = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone()).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(TlsStream { socket, session })))
    }

    /// Goes on connecting: `true` once requests can be sent.
    pub(super) fn finish_connect(&mut self) -> io::Result<bool> {
        let socket = match self {
            Self::Plain(socket) => &*socket,
            Self::Tls(tls) => &tls.socket,
        };
        match socket.connected() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(error),
        }
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(tls) => tls.shake_hands(),
        }
    }

    /// What to say where it took too long.
    pub(super) fn took_too_long(&self) -> io::Error {
        match self {
            Self::Tls(tls) if tls.socket.connected().is_ok() => {
                io::Error::new(ErrorKind::TimedOut, "no answer in time")
            }
            _ => io::Error::from_raw_os_error(nix::libc::ETIMEDOUT),
        }
    }

    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    /// Whether bytes were taken that the kernel has not got yet.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.session.wants_write())
    }

    /// Gives them to the kernel as far as there is room.
    pub(super) fn send_rest(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.send_rest(),
        }
    }
}

impl Socket {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    fn connected(&self) -> io::Result<()> {
        let error = match self {
            Self::Tcp(stream) => stream.take_error()?,
            Self::Unix(stream) => stream.take_error()?,
        };
        match (error, self) {
            (Some(error), _) => Err(error),
            (None, Self::Tcp(stream)) => stream.peer_addr().map(|_| ()),
            (None, Self::Unix(stream)) => stream.peer_addr().map(|_| ()),
        }
    }

    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }
}

impl io::Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::read(self, buffer)
    }
}

impl io::Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    fn shake_hands(&mut self) -> io::Result<bool> {
        while self.session.is_handshaking() {
            self.send_rest()?;
            match self.receive() {
                // A handshake that is cut is not an end of anything.
                Ok(0) => return Err(io::Error::new(ErrorKind::InvalidData, "the server closed in the TLS handshake")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.send_rest()?;
        Ok(true)
    }

    /// As of a plain socket: fewer bytes than asked for mean that there are no more.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.session.reader().read(&mut buffer[filled..]) {
                // Closed with or without a word: what that means is decided by the framing of the reply.
                Ok(0) => break,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.receive() {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock && filled > 0 => break,
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_rest()?;
        if self.session.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        self.send_rest()?;
        Ok(taken)
    }

    fn send_rest(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads and decrypts what the kernel has: 0 at the end of the stream.
    fn receive(&mut self) -> io::Result<usize> {
        loop {
            match self.session.read_tls(&mut self.socket) {
                Ok(length) => {
                    let processed = self.session.process_new_packets();
                    // An alert that says what was wrong, or an answer to a change of keys.
                    self.send_rest()?;
                    processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                    return Ok(length);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
