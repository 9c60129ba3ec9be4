//! Every way a request or a connection can fail, by kind, and what to do about the ones that are not the server's.

use std::io;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::http1::Fault;

/// Why something did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A reconnect was refused: nobody listens.
    Refused,
    /// No local port is free: the driver's side, not the server's.
    NoLocalPort,
    /// No file descriptor is left: the driver's side, not the server's.
    TooManyFiles,
    /// A reconnect failed otherwise, or took too long.
    Connect,
    /// Reading failed, such as by a reset.
    Read,
    /// Writing failed.
    Write,
    /// No whole reply within the time given.
    Timeout,
    /// The reply is not HTTP/1.1.
    Parse,
    /// A status that does not count.
    Status,
    /// A body did not begin as it must, or a sampled one was not the expected one.
    Body,
    /// Bytes after the end of a reply.
    Surplus,
    /// Bytes before the request was on the wire.
    EarlyReply,
    /// The connection was closed with a request outstanding.
    Closed,
}

impl ErrorKind {
    /// All kinds, in the order of every list.
    pub const ALL: [Self; 13] = [
        Self::Refused,
        Self::NoLocalPort,
        Self::TooManyFiles,
        Self::Connect,
        Self::Read,
        Self::Write,
        Self::Timeout,
        Self::Parse,
        Self::Status,
        Self::Body,
        Self::Surplus,
        Self::EarlyReply,
        Self::Closed,
    ];

    /// The name in records and reports: what serde writes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoLocalPort => "no_local_port",
            Self::TooManyFiles => "too_many_files",
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
            Self::Timeout => "timeout",
            Self::Parse => "parse",
            Self::Status => "status",
            Self::Body => "body",
            Self::Surplus => "surplus",
            Self::EarlyReply => "early_reply",
            Self::Closed => "closed",
        }
    }

    /// The kind of a failed connect.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ECONNREFUSED) => Self::Refused,
            Some(Errno::EADDRNOTAVAIL) => Self::NoLocalPort,
            Some(Errno::EMFILE | Errno::ENFILE) => Self::TooManyFiles,
            _ => Self::Connect,
        }
    }

    /// The kind of a fault in the bytes of a server.
    pub(super) fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::EarlyReply => Self::EarlyReply,
            Fault::Surplus { .. } => Self::Surplus,
            Fault::ClosedBeforeReply | Fault::ClosedInHead | Fault::ClosedInBody => Self::Closed,
            _ => Self::Parse,
        }
    }
}

/// `connection refused (ECONNREFUSED): start the server, or check the address and the port`.
pub(super) fn explain_connect(error: &io::Error) -> String {
    let Some(errno) = error.raw_os_error().map(Errno::from_raw) else {
        // Only TLS fails without the system.
        return format!(
            "the TLS handshake failed ({error}): check that the server speaks TLS; for a certificate of your own name its \
             authority with --cacert, or use --insecure"
        );
    };
    let remedy = match errno {
        Errno::ECONNREFUSED => "start the server, or check the address and the port",
        Errno::EMFILE => "raise the limit of open files (ulimit -n) or use fewer connections",
        Errno::ENFILE => "raise the system's limit of open files (sysctl fs.file-max) or use fewer connections",
        Errno::EADDRNOTAVAIL => {
            "no local port is free; use fewer connections, wait a minute for closed ones to expire, \
             or widen net.ipv4.ip_local_port_range"
        }
        Errno::ENOENT => "there is no such socket: start the server, or check --unix-socket",
        Errno::EACCES => "this user may not write to the socket: change its mode or run as its owner",
        Errno::EAGAIN => "the server does not accept and its backlog is full: look whether it still runs",
        Errno::ETIMEDOUT => "the server does not accept; look at its backlog and whether it still runs",
        _ => "check that the address is reachable from here",
    };
    format!("{} ({errno:?}): {remedy}", errno.desc().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_connect_is_named_with_its_remedy() {
        for (errno, kind, text) in [
            (Errno::ECONNREFUSED, ErrorKind::Refused, "connection refused (ECONNREFUSED): start the server"),
            (Errno::EMFILE, ErrorKind::TooManyFiles, "(EMFILE): raise the limit of open files (ulimit -n)"),
            (Errno::ENFILE, ErrorKind::TooManyFiles, "(ENFILE): raise the system's limit"),
            (Errno::EADDRNOTAVAIL, ErrorKind::NoLocalPort, "(EADDRNOTAVAIL): no local port is free"),
            (Errno::ETIMEDOUT, ErrorKind::Connect, "(ETIMEDOUT): the server does not accept"),
            (Errno::EHOSTUNREACH, ErrorKind::Connect, "(EHOSTUNREACH): check that the address"),
        ] {
            let error = io::Error::from_raw_os_error(errno as i32);
            assert_eq!(ErrorKind::of_connect(&error), kind);
            assert!(explain_connect(&error).contains(text), "{}", explain_connect(&error));
        }
    }

    #[test]
    fn serde_writes_the_names() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert!(ErrorKind::ALL.is_sorted());
    }
}
