//! The hash loop: the `cpu` route's chain and nothing around it, one chain after another on each thread.

use std::time::{Duration, Instant};

use sha2::block_api::compress256;

/// First hash value of SHA-256 (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
/// Bits of the 64 bytes that every step but the first hashes, where the padding says so.
const TEXT_BITS: u64 = 512;

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Threads that hashed, each on its own.
    pub threads: usize,
    /// Whole chains of all threads together.
    pub chains: u64,
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// Hexadecimal end of the last chain, so that the work can be checked.
    pub last: [u8; 64],
}

/// Hashes chains of `rounds` on `threads` threads for `duration`; a chain that has begun is finished.
pub fn run(threads: usize, rounds: u32, duration: Duration) -> Outcome {
    let start = Instant::now();
    let work = || {
        let mut chains = 0;
        loop {
            let last = chain(rounds);
            chains += 1;
            if start.elapsed() >= duration {
                return (chains, last);
            }
        }
    };
    let done: Vec<(u64, [u8; 64])> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("hashing does not panic")).collect()
    });
    Outcome {
        threads: done.len(),
        chains: done.iter().map(|(chains, _)| chains).sum(),
        elapsed: start.elapsed(),
        last: done[0].1,
    }
}

/// `h = "headroom"`, then `rounds` times `h = hex(sha256(h))`, on the compression function itself.
fn chain(rounds: u32) -> [u8; 64] {
    let mut first = [0; 64];
    first[..8].copy_from_slice(b"headroom");
    first[8] = 0x80;
    first[63] = 64;
    let mut text = hex(hash(&[first]));
    let mut padding = [0; 64];
    padding[0] = 0x80;
    padding[56..].copy_from_slice(&TEXT_BITS.to_be_bytes());
    for _ in 1..rounds {
        text = hex(hash(&[text, padding]));
    }
    text
}

fn hash(blocks: &[[u8; 64]]) -> [u32; 8] {
    let mut state = INITIAL;
    compress256(&mut state, blocks);
    state
}

fn hex(state: [u32; 8]) -> [u8; 64] {
    let mut text = [0; 64];
    for (digits, word) in text.as_chunks_mut::<8>().0.iter_mut().zip(state) {
        for (at, digit) in digits.iter_mut().enumerate() {
            let nibble = (word >> (28 - 4 * at)) & 15;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_the_contracts() {
        let text = |rounds| String::from_utf8(chain(rounds).to_vec()).expect("digits");
        assert_eq!(text(1), "26e93d81a9553eabd165301cad992369094b6a1759a62e94a998a94aa5315902");
        assert_eq!(text(2), "83fb0cdc24a1f9c0399eaae2744dd62e22084c3cfa102750c07a5c7681c693b6");
        assert_eq!(text(100), "83f6da55ac4dd766361b9e0c288812a15e0ad6c5ae907d30c97e3b900c32953f");
    }

    #[test]
    fn every_thread_counts() {
        let outcome = run(2, 1, Duration::from_millis(1));
        assert!(outcome.threads == 2 && outcome.chains >= 2, "{outcome:?}");
    }
}
