//! Whether a reply counts: its status, how its body begins, and one whole body in so many.

use super::Pool;
use crate::load::ErrorKind;
use crate::load::http1::{Reply, START_BYTES, Wants};
use crate::load::window::Failure;

/// Bytes of a failing request and its reply that are kept for display.
const SHOWN_BYTES: usize = 1024;

impl Pool {
    /// Whether a reply counts. One that does not is an error, but leaves the connection usable.
    #[inline]
    pub(super) fn is_good(&mut self, slot: usize, reply: Reply, seen: usize) -> bool {
        let counts = match self.shared.success_status {
            Some(status) => reply.status == status,
            None => (200..300).contains(&reply.status),
        };
        if !counts {
            self.tally.status(reply.status);
            self.count_error(slot, ErrorKind::Status, &format!("status {}", reply.status), seen);
            return false;
        }
        let connection = &self.connections[slot];
        let wants = connection.framer.wants();
        if wants == Wants::default() {
            return true;
        }
        let Some(expected) = self.shared.script.expected(connection.request) else { return true };
        if wants.start
            && let Some(wanted) = expected.start()
        {
            let length = wanted.len().min(START_BYTES);
            let found = connection.framer.start();
            if found.get(..length) != Some(&wanted[..length]) {
                let detail = format!("a body that begins {}, not {}", clip(found), clip(wanted));
                self.count_error(slot, ErrorKind::Body, &detail, seen);
                return false;
            }
        }
        if !wants.whole {
            return true;
        }
        self.tally.bodies_checked += 1;
        match expected.check(connection.framer.body()) {
            Ok(()) => true,
            Err(difference) => {
                self.count_error(slot, ErrorKind::Body, &difference, seen);
                false
            }
        }
    }

    /// Counts an error and keeps the first one for display. `seen` bytes of the reply stand in the buffer.
    #[cold]
    pub(super) fn count_error(&mut self, slot: usize, kind: ErrorKind, detail: &str, seen: usize) {
        self.tally.error(kind);
        if self.tally.first_failure.is_none() {
            let request = self.shared.script.slot(self.connections[slot].request);
            let failure = Failure {
                kind,
                detail: detail.to_owned(),
                request: clip(self.shared.script.bytes(request.start, request.end)),
                reply: clip(&self.buffer[..seen]),
            };
            self.tally.first_failure = Some((self.now_ns, failure));
        }
    }
}

/// Whether this reply is the one in `every` to be compared.
#[inline]
pub(super) fn sample(until_check: &mut u32, every: u32) -> bool {
    if every == 0 {
        return false;
    }
    *until_check -= 1;
    let is_due = *until_check == 0;
    if is_due {
        *until_check = every;
    }
    is_due
}

fn clip(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    if bytes.len() > SHOWN_BYTES { format!("{text}… ({} bytes)", bytes.len()) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_body_in_so_many_is_compared_beginning_with_the_first() {
        let mut until_check = 1;
        let sampled: Vec<bool> = (0..7).map(|_| sample(&mut until_check, 3)).collect();
        assert_eq!(sampled, [true, false, false, true, false, false, true]);
        assert!(!sample(&mut 1, 0));
        assert!(sample(&mut 1, 1));
    }
}
