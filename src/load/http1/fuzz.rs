//! Replies from a generator, good ones and broken ones, in pieces of every size; and the parser of httparse beside ours.
//!
//! `HEADROOM_FUZZ_SECONDS=600` runs for so long from a random seed, which is printed; `HEADROOM_FUZZ_SEED` sets the first.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

/// Seeds of a usual run of the tests.
const USUAL: u64 = 3_000;

const STATUSES: [u16; 9] = [200, 201, 204, 206, 304, 404, 422, 500, 503];
const FIELDS: [&str; 10] = [
    "content-type: application/json",
    "Date: Mon, 01 Jan 2024 00:00:00 GMT",
    "x-empty:",
    "x-blanks:  \t a b \t",
    "connection: keep-alive",
    "Connection: close",
    "set-cookie: a=b; c=d",
    "set-cookie: e",
    "x-obs: \u{e9}",
    "server: x/1.0 (y)",
];

/// A whole reply with its body, and the parts it was made of.
struct Made {
    bytes: Vec<u8>,
    status: u16,
    body: Vec<u8>,
    /// Ends with its bytes, not with the connection.
    is_framed: bool,
    closes: bool,
}

/// A reply by the rules of RFC 9112.
fn good(random: &mut StdRng) -> Made {
    let mut bytes = Vec::new();
    for _ in 0..random.random_range(0..3) {
        bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    }
    let status = *STATUSES.choose(random).expect("some");
    let minor = u8::from(random.random_range(0..8) > 0);
    bytes.extend_from_slice(
        format!("HTTP/1.{minor} {status} {}\r\n", ["OK", "", "Not Really"].choose(random).expect("some")).as_bytes(),
    );
    let mut closes = minor == 0;
    for _ in 0..random.random_range(0..6) {
        let field = FIELDS.choose(random).expect("some");
        closes = match *field {
            "Connection: close" => true,
            "connection: keep-alive" => closes && bytes.windows(17).any(|part| part == b"Connection: close"),
            _ => closes,
        };
        bytes.extend_from_slice(field.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let mut body: Vec<u8> = (0..random.random_range(0..300)).map(|_| random.random()).collect();
    if status == 204 || status == 304 {
        body.clear();
        if random.random() {
            bytes.extend_from_slice(b"content-length: 12\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        return Made { bytes, status, body, is_framed: true, closes };
    }
    match random.random_range(0..if minor == 0 { 2 } else { 3 }) {
        0 => {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(&body);
        }
        1 => {
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(&body);
            return Made { bytes, status, body, is_framed: false, closes: true };
        }
        _ => {
            bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            let mut rest = body.as_slice();
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(random.random_range(1..=rest.len()));
                let extension = ["", ";a=b", " ; q=\"x\""].choose(random).expect("some");
                bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
                rest = after;
            }
            bytes.extend_from_slice(
                ["0\r\n\r\n", "0\r\nx-trailer: 1\r\n\r\n", "00\r\n\r\n"].choose(random).expect("some").as_bytes(),
            );
        }
    }
    Made { bytes, status, body, is_framed: true, closes }
}

/// Bytes that mean something in a reply, for mutations.
const WORDS: [&[u8]; 14] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"0\r\n\r\n",
    b"content-length: 5\r\n",
    b"content-length: 18446744073709551616\r\n",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b" ",
    b":",
    b"ffffffffffffffff\r\n",
];

fn broken(mut bytes: Vec<u8>, random: &mut StdRng) -> Vec<u8> {
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..5) {
            0 if at < bytes.len() => bytes[at] = random.random(),
            1 if at < bytes.len() => _ = bytes.remove(at),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, *b"\r\n :;0f\0\x7f".choose(random).expect("some")),
            _ => drop(bytes.splice(at..at, WORDS.choose(random).expect("some").iter().copied())),
        }
    }
    bytes
}

/// What a framer makes of bytes that come in these pieces, and of the end of the connection after them. Replies, or the
/// name of a fault: surplus counts what was seen with the reply, which differs by the pieces.
fn outcome(
    bytes: &[u8],
    mut piece: impl FnMut() -> usize,
    heads: &mut HeadCache,
) -> Result<Option<(Reply, Vec<u8>)>, String> {
    let named = |fault: Fault| match fault {
        Fault::Surplus { .. } | Fault::EarlyReply => "surplus".to_owned(),
        other => other.to_string(),
    };
    let (mut framer, mut rest, mut whole) = (Framer::default(), bytes, None);
    framer.expect(false, Wants { whole: true, start: false });
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece().clamp(1, rest.len()));
        rest = later;
        if let Some(reply) = framer.feed(now, heads).map_err(named)? {
            whole = Some((reply, framer.body().to_vec()));
        }
    }
    Ok(match framer.end().map_err(named)? {
        Some(reply) => Some((reply, framer.body().to_vec())),
        None => whole,
    })
}

/// httparse must take every head that ours takes, and read the same status in it.
fn agrees_with_httparse(bytes: &[u8], status: u16, seed: u64) {
    let mut rest = bytes;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 256];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(rest) {
            Ok(httparse::Status::Complete(length)) if response.code.is_some_and(|code| code < 200) => {
                rest = &rest[length..];
            }
            Ok(httparse::Status::Complete(_)) => return assert_eq!(response.code, Some(status), "seed {seed}"),
            other => panic!("seed {seed}: httparse says {other:?} of {:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

fn check(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let made = good(&mut random);
    let mut heads = HeadCache::default();
    let (reply, body) = outcome(&made.bytes, || usize::MAX, &mut heads)
        .unwrap_or_else(|fault| panic!("seed {seed}: {fault}: {:?}", String::from_utf8_lossy(&made.bytes)))
        .unwrap_or_else(|| panic!("seed {seed}: no reply in {:?}", String::from_utf8_lossy(&made.bytes)));
    assert_eq!((reply.status, &body), (made.status, &made.body), "seed {seed}");
    assert_eq!(reply.close, made.closes, "seed {seed}: {:?}", String::from_utf8_lossy(&made.bytes));
    assert_eq!(reply.framing != Framing::EndOfStream, made.is_framed, "seed {seed}");
    agrees_with_httparse(&made.bytes, made.status, seed);
    let broken = broken(made.bytes.clone(), &mut random);
    for bytes in [&made.bytes, &broken] {
        // A cache that has seen other heads, one that has seen this one, and a new one say the same.
        let whole = outcome(bytes, || usize::MAX, &mut HeadCache::default());
        assert_eq!(outcome(bytes, || usize::MAX, &mut heads), whole, "seed {seed}: with a cache");
        assert_eq!(outcome(bytes, || 1, &mut heads), whole, "seed {seed}: byte by byte");
        let parts = outcome(bytes, || random.random_range(1..40), &mut heads);
        assert_eq!(parts, whole, "seed {seed}: in parts of {:?}", String::from_utf8_lossy(bytes));
        if let Ok(Some((reply, _))) = whole {
            agrees_with_httparse(bytes, reply.status, seed);
        }
    }
}

#[test]
fn generated_replies_are_framed_the_same_in_any_pieces_and_as_httparse_reads_them() {
    let setting = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seconds = setting("HEADROOM_FUZZ_SECONDS");
    let first = setting("HEADROOM_FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { rand::random() } else { 1 });
    println!("HEADROOM_FUZZ_SEED={first}");
    let start = Instant::now();
    let mut count = 0;
    while seconds.map_or(count < USUAL, |seconds| start.elapsed() < Duration::from_secs(seconds)) {
        check(first.wrapping_add(count));
        count += 1;
    }
    println!("{count} replies");
}
