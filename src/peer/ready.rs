//! When is a server ready: `GET /health` answers 200, and it is the server that answers.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process};

use crate::host::ProcessId;
use crate::interrupt::{Interrupt, Interrupted, POLL};

/// A server that takes longer for one answer is asked again, on a new connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes in which the status line must end.
const HEAD_BYTES: usize = 1024;

/// What a probe saw.
#[derive(Debug)]
pub(super) enum Seen {
    /// A status line.
    Status(u16),
    /// Nobody listens.
    Refused,
    /// Connected, and no answer in time.
    Silence,
    /// Connected, and something that is no status line.
    NoHttp,
    /// Any other failure.
    Error(io::Error),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "GET /health answered {status}"),
            Self::Refused => f.write_str("nothing listens there"),
            Self::Silence => f.write_str("GET /health was not answered"),
            Self::NoHttp => f.write_str("GET /health was answered with something that is not HTTP"),
            Self::Error(error) => write!(f, "GET /health failed: {error}"),
        }
    }
}

/// Asks once, on a fresh connection.
pub(super) fn probe(address: SocketAddr, deadline: Instant, interrupt: &Interrupt) -> Result<Seen, Interrupted> {
    let deadline = deadline.min(Instant::now() + PROBE_TIMEOUT);
    match ask(address) {
        Ok(stream) => read_status(stream, deadline, interrupt),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Seen::Refused),
        Err(error) => Ok(Seen::Error(error)),
    }
}

fn ask(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
    stream.set_read_timeout(Some(POLL))?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    stream.write_all(format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes())?;
    Ok(stream)
}

fn read_status(mut stream: TcpStream, deadline: Instant, interrupt: &Interrupt) -> Result<Seen, Interrupted> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let mut buffer = [0; HEAD_BYTES];
    loop {
        interrupt.check()?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(status_in(&head).map_or(Seen::NoHttp, Seen::Status)),
            Ok(count) => head.extend_from_slice(&buffer[..count]),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Ok(Seen::Error(error)),
        }
        if head.contains(&b'\n') || head.len() >= HEAD_BYTES {
            return Ok(status_in(&head).map_or(Seen::NoHttp, Seen::Status));
        }
        if Instant::now() >= deadline {
            return Ok(Seen::Silence);
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// `HTTP/1.1 200 OK`.
fn status_in(head: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(head.get(..12)?).ok()?;
    text.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// Who listens on a port of this host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// These processes alone.
    Ours,
    /// Also, or only, somebody else.
    Other,
    /// Nobody.
    Nobody,
}

/// Whether the listening sockets that connections to `address` can reach belong to `processes`.
pub(super) fn owner(address: SocketAddr, processes: &[ProcessId]) -> Owner {
    let inodes = sockets_of(processes);
    let mut owner = Owner::Nobody;
    for entry in listening().into_iter().filter(|entry| reaches(entry.local_address, address)) {
        if !inodes.contains(&entry.inode) {
            return Owner::Other;
        }
        owner = Owner::Ours;
    }
    owner
}

/// Where these processes listen.
pub(super) fn addresses_of(processes: &[ProcessId]) -> Vec<SocketAddr> {
    let inodes = sockets_of(processes);
    let ours = listening().into_iter().filter(|entry| inodes.contains(&entry.inode));
    ours.map(|entry| entry.local_address).collect()
}

/// Hosts without IPv6 have no table for it.
fn listening() -> Vec<TcpNetEntry> {
    let all = [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten();
    all.filter(|entry| entry.state == TcpState::Listen).collect()
}

/// A connection to `asked` can reach a socket bound to it or to every address.
fn reaches(bound: SocketAddr, asked: SocketAddr) -> bool {
    let ip = match bound.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip @ IpAddr::V4(_) => ip,
    };
    bound.port() == asked.port() && (ip.is_unspecified() || ip == asked.ip())
}

fn sockets_of(processes: &[ProcessId]) -> HashSet<u64> {
    let descriptors = processes.iter().filter_map(|id| Process::new(id.pid).ok()?.fd().ok()).flatten().flatten();
    let inode = |target: FDTarget| match target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    };
    descriptors.filter_map(|descriptor| inode(descriptor.target)).collect()
}

/// A port of the loopback address that was free a moment ago.
pub(super) fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        assert_eq!(status_in(b"HTTP/1.1 200 OK\r\n"), Some(200));
        assert_eq!(status_in(b"HTTP/1.0 503 Service Unavailable\r\n"), Some(503));
        assert_eq!(status_in(b"HTTP/1.1 204\r\n"), Some(204));
        assert_eq!(status_in(b"SSH-2.0-OpenSSH_9.2\r\n"), None);
        assert_eq!(status_in(b"HTTP"), None);
    }

    #[test]
    fn a_listener_is_found_with_its_owner() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(owner(address, &[ProcessId::this()]), Owner::Ours);
        assert_eq!(owner(address, &[]), Owner::Other);
        assert!(addresses_of(&[ProcessId::this()]).contains(&address));
        drop(listener);
        assert_eq!(owner(address, &[ProcessId::this()]), Owner::Nobody);
    }

    #[test]
    fn only_sockets_that_a_connection_can_reach_count() {
        let asked = "127.0.0.1:80".parse().unwrap();
        for (bound, reached) in [
            ("127.0.0.1:80", true),
            ("0.0.0.0:80", true),
            ("[::]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:81", false),
            ("127.0.0.2:80", false),
            ("[::1]:80", false),
        ] {
            assert_eq!(reaches(bound.parse().unwrap(), asked), reached, "{bound}");
        }
    }
}
