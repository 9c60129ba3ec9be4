//! Changes to bytes that know nothing of what they mean.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::dictionary::TOKENS;

/// Longest part that is moved, doubled or deleted.
const MOST_BYTES: usize = 80;
/// How often a part is repeated at most: past the 64 KiB that heads and bodies may have.
const MOST_REPEATS: usize = 900;

/// Changes one thing.
pub(super) fn bytes(rng: &mut StdRng, bytes: &mut Vec<u8>) {
    let at = rng.random_range(0..=bytes.len());
    let end = (at + rng.random_range(1..=MOST_BYTES)).min(bytes.len());
    let part = bytes[at..end].to_vec();
    let elsewhere = rng.random_range(0..=bytes.len());
    match rng.random_range(0..10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = rng.random(),
        2 => bytes.insert(at, rng.random()),
        3 => drop(bytes.drain(at..end)),
        4 => drop(bytes.splice(at..at, part)),
        5 => drop(bytes.splice(elsewhere..elsewhere, part)),
        6 if rng.random_range(0..3) == 0 => bytes.truncate(at),
        7 if rng.random_range(0..4) == 0 => drop(bytes.splice(at..at, part.repeat(rng.random_range(2..MOST_REPEATS)))),
        _ => drop(bytes.splice(at..at, TOKENS.choose(rng).expect("tokens").iter().copied())),
    }
}
