//! What a server prints: drained without end, kept within bounds.
//!
//! A thread reads, so that a server never waits for the disk and a chatty one never fills it: the file holds the first
//! [`HEAD_BYTES`] and the last [`TAIL_BYTES`], and says what is left out between.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kept from the beginning, written as it comes.
const HEAD_BYTES: u64 = 256 << 10;
/// Kept from the end, written when the server is gone.
const TAIL_BYTES: usize = 64 << 10;
/// How long the end of the output is waited for when the server is gone: something else may hold the pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Lines that an error message quotes.
const QUOTED_LINES: usize = 5;
/// Characters of each.
const QUOTED_CHARS: usize = 300;

/// The log of one server.
#[derive(Debug)]
pub(super) struct Log {
    kept: Arc<Mutex<Kept>>,
    drained: Receiver<()>,
}

#[derive(Debug)]
struct Kept {
    file: File,
    recent: VecDeque<u8>,
    total_bytes: u64,
}

impl Log {
    /// Creates the file; what is written into the pipe goes there.
    pub(super) fn create(path: &Path) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let kept = Kept { file: File::create(path)?, recent: VecDeque::new(), total_bytes: 0 };
        let kept = Arc::new(Mutex::new(kept));
        let (sender, drained) = channel();
        let shared = Arc::clone(&kept);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            drain(reader, &shared);
            let _ = sender.send(());
        })?;
        Ok((Self { kept, drained }, writer))
    }

    /// The last lines, on one line. For a server that is gone: waits shortly for the end of its output.
    pub(super) fn last_lines(&self) -> String {
        let _ = self.drained.recv_timeout(DRAIN_TIMEOUT);
        let mut kept = guard(&self.kept);
        last_lines(kept.recent.make_contiguous())
    }
}

/// Reads to the end, whatever happens to the file.
fn drain(mut reader: PipeReader, kept: &Mutex<Kept>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => guard(kept).push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    guard(kept).finish();
}

fn guard(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let room = usize::try_from(HEAD_BYTES.saturating_sub(self.total_bytes)).unwrap_or(usize::MAX);
        // A full disk loses lines of a log; it must not stop the server.
        let _ = self.file.write_all(&bytes[..bytes.len().min(room)]);
        self.total_bytes += bytes.len() as u64;
        self.recent.extend(bytes);
        let excess = self.recent.len().saturating_sub(TAIL_BYTES);
        self.recent.drain(..excess);
    }

    /// Writes what came after the head, or its end.
    fn finish(&mut self) {
        let beyond = self.total_bytes.saturating_sub(HEAD_BYTES);
        let tail = self.recent.len().min(usize::try_from(beyond).unwrap_or(usize::MAX));
        let omitted = beyond - tail as u64;
        if omitted > 0 {
            let _ = writeln!(self.file, "\n[{omitted} bytes left out]");
        }
        let start = self.recent.len() - tail;
        let _ = self.file.write_all(&self.recent.make_contiguous()[start..]);
    }
}

/// The last lines that say something, joined to one line without control characters.
pub(super) fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
    let clean = |line: &str| -> String {
        line.trim().chars().filter(|character| !character.is_control()).take(QUOTED_CHARS).collect()
    };
    let lines: Vec<String> = text.lines().map(clean).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "it printed nothing".to_owned();
    }
    // A stack trace hides the line that says what went wrong.
    let error = lines.iter().rposition(|line| line.contains("Error:") || line.starts_with("error:"));
    let last = lines.len().saturating_sub(QUOTED_LINES);
    let first = error.map_or(last, |error| error.min(last));
    lines[first..].iter().take(QUOTED_LINES).map(String::as_str).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(write: impl FnOnce(&mut PipeWriter)) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (log, mut writer) = Log::create(&path).unwrap();
        write(&mut writer);
        drop(writer);
        let last = log.last_lines();
        (std::fs::read_to_string(path).unwrap(), last)
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        let (file, last) = logged(|writer| writer.write_all(b"one\n\n\x1b[31mtwo\x1b[0m\n").unwrap());
        assert_eq!(file, "one\n\n\x1b[31mtwo\x1b[0m\n");
        assert_eq!(last, "one | [31mtwo[0m");
    }

    #[test]
    fn a_log_without_end_stays_bounded_and_keeps_both_ends() {
        let (file, last) = logged(|writer| {
            for number in 0..200_000 {
                writeln!(writer, "line {number}").unwrap();
            }
        });
        assert!(file.len() < usize::try_from(HEAD_BYTES).unwrap() + TAIL_BYTES + 100, "{} bytes", file.len());
        assert!(file.starts_with("line 0\n") && file.ends_with("line 199999\n"));
        assert!(file.contains("bytes left out]"));
        assert!(last.ends_with("line 199998 | line 199999"), "{last}");
    }

    #[test]
    fn a_log_a_little_over_the_head_loses_nothing() {
        let text = "x".repeat(usize::try_from(HEAD_BYTES).unwrap()) + "the end";
        let (file, _) = logged(|writer| writer.write_all(text.as_bytes()).unwrap());
        assert!(file == text, "{} of {} bytes", file.len(), text.len());
    }

    #[test]
    fn silence_is_called_so() {
        assert_eq!(last_lines(b"\n \n"), "it printed nothing");
    }
}
