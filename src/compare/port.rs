//! Who listens on a port. A left-over server with `SO_REUSEPORT` would share the load unseen.

use std::collections::HashSet;

use procfs::net::{TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process};

/// Whether every socket that listens on the port belongs to one of these processes; `None` where that cannot be read.
pub(super) fn owned(port: u16, processes: &[i32]) -> Option<bool> {
    let listening: HashSet<u64> = [tcp().ok()?, tcp6().unwrap_or_default()]
        .iter()
        .flatten()
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .map(|entry| entry.inode)
        .collect();
    let held: HashSet<u64> = processes.iter().flat_map(|&pid| sockets(pid)).collect();
    Some(!listening.is_empty() && listening.is_subset(&held))
}

/// Inodes of the sockets a process has open; none where it is gone.
fn sockets(pid: i32) -> Vec<u64> {
    let Ok(files) = Process::new(pid).and_then(|process| process.fd()) else { return Vec::new() };
    let socket = |target| if let FDTarget::Socket(inode) = target { Some(inode) } else { None };
    files.filter_map(|file| socket(file.ok()?.target)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_belongs_to_its_process_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(owned(port, &[own]), Some(true));
        assert_eq!(owned(port, &[1, own]), Some(true));
        assert_eq!(owned(port, &[]), Some(false));
    }

    #[test]
    fn a_port_that_is_shared_with_somebody_else_is_not_owned() {
        let shared = || {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_reuse_port(true).unwrap();
            socket
        };
        let first = shared();
        let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        first.bind(&any.into()).unwrap();
        first.listen(1).unwrap();
        let address = first.local_addr().unwrap();
        let port = address.as_socket().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(owned(port, &[own]), Some(true));
        // The second listener is held by another process.
        let second = shared();
        second.bind(&address).unwrap();
        second.listen(1).unwrap();
        let mut child =
            std::process::Command::new("sleep").arg("60").stdin(std::os::fd::OwnedFd::from(second)).spawn().unwrap();
        assert_eq!(owned(port, &[own]), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
