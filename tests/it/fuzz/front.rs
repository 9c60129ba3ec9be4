//! A server under fire: streams go in, everything it says comes out.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::replies::{self, Shape};
use crate::served::Served;

/// Longest silence of a server that is still going to answer: a debug build hashes a million rounds in it.
const DEADLINE: Duration = Duration::from_secs(20);

/// How the connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Reset,
}

/// A running server whose stderr is kept.
pub(super) struct Front {
    served: Served,
    pub(super) shape: Shape,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Front {
    pub(super) fn start(database_url: &str, shape: Shape) -> Self {
        let http = if shape == Shape::Own { "own" } else { "axum" };
        let mut served = Served::start(database_url, &["--workers", "1", "--http", http]);
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (served.stderr(), Arc::clone(&stderr));
        // Ends with the server, which is killed when this is dropped.
        thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                to.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..count]);
            }
        });
        Self { served, shape, stderr }
    }

    /// Sends a stream piece by piece, each read by the server before the next, ends it and reads all that comes back.
    ///
    /// The writing side is open until `replies` have come or `patience` has passed: hyper drops what it has not answered
    /// when its client ends early.
    ///
    /// # Errors
    /// Says that the server takes or gives nothing any more.
    pub(super) fn exchange(
        &self,
        pieces: &[&[u8]],
        replies: usize,
        patience: Duration,
    ) -> Result<(Vec<u8>, End), String> {
        let stream = TcpStream::connect(self.served.address).map_err(|error| format!("it accepts nothing: {error}"))?;
        let set = stream.set_read_timeout(Some(DEADLINE)).and(stream.set_write_timeout(Some(DEADLINE)));
        set.and(stream.set_nodelay(true)).expect("options of a socket");
        let (told, counted) = mpsc::channel();
        thread::scope(|scope| {
            let reading = scope.spawn(|| collect(&stream, &told));
            let written = self.write(&stream, pieces);
            let until = Instant::now() + patience;
            let mut seen = 0;
            while written.is_ok() && seen < replies {
                match counted.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(Some(count)) => seen = count,
                    Ok(None) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            // Fails where the server has closed already.
            let _ = stream.shutdown(Shutdown::Write);
            let read = reading.join().expect("the reader does not panic");
            written.and(read)
        })
    }

    fn write(&self, mut stream: &TcpStream, pieces: &[&[u8]]) -> Result<(), String> {
        // One worker reads its connections in turn: an answer on another one shows that the piece before it was read.
        let mut other = (pieces.len() > 1).then(|| self.served.wire());
        for piece in pieces {
            match stream.write_all(piece) {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err("it reads nothing any more".to_owned());
                }
                // It has answered and closed.
                Err(_) => return Ok(()),
            }
            if let Some(other) = &mut other {
                other.get("/health");
            }
        }
        Ok(())
    }

    /// Panics unless the server lives, has said nothing on stderr and answers a new connection.
    pub(super) fn assert_well(&self) {
        let stderr = String::from_utf8_lossy(&self.stderr.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
        assert!(stderr.is_empty(), "it complained: {stderr}");
        let reply = self.served.wire().get("/health");
        assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"status":"ok"}"#));
    }

    /// Memory of the process that is its own, in bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let status = procfs::process::Process::new(self.served.pid()).and_then(|process| process.status());
        status.expect("it runs").vmrss.expect("a process has memory") * 1_024
    }
}

/// Reads to the end, telling how many replies have come; `None` at the end.
fn collect(mut stream: &TcpStream, told: &mpsc::Sender<Option<usize>>) -> Result<(Vec<u8>, End), String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1_024];
    let end = loop {
        match stream.read(&mut piece) {
            Ok(0) => break Ok(End::Closed),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break Ok(End::Reset),
            Err(error) => break Err(format!("no end in {DEADLINE:?} ({error}) after: {}", bytes.escape_ascii())),
        }
        let _ = told.send(Some(replies::count(&bytes)));
    };
    let _ = told.send(None);
    end.map(|end| (bytes, end))
}
