//! Streams of requests: good ones of all seven routes, then what a hostile or broken client makes of them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use headroom::contract::{BENCH_SECRET, token};

use super::dictionary::{HEADERS, METHODS, NUMBERS, TARGETS, TOKENS, VALUES, VERSIONS};
use super::mutate;

/// Requests of one stream: enough for replies to overtake reads, few enough to look at by eye.
const MOST_REQUESTS: usize = 6;
/// Pieces of one stream: each costs a round trip of another connection.
const MOST_CUTS: usize = 48;

/// A stream, how it is cut, and what it must be answered where that is known.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) bytes: Vec<u8>,
    /// Ascending places inside the stream.
    pub(super) cuts: Vec<usize>,
    /// Statuses in order, for a stream of good requests.
    pub(super) expected: Option<Vec<u16>>,
}

impl Case {
    /// The case of this seed, the same on every machine.
    pub(super) fn from_seed(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed);
        let style = rng.random_range(0..100);
        let mut requests: Vec<Request> = (0..rng.random_range(1..=MOST_REQUESTS)).map(|_| Request::good(rng)).collect();
        if style >= 15 {
            for _ in 0..rng.random_range(1..=3) {
                let place = rng.random_range(0..requests.len());
                requests[place].spoil(rng);
            }
        }
        let mut bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes(rng)).collect();
        if style >= 65 {
            for _ in 0..rng.random_range(1..=4) {
                mutate::bytes(rng, &mut bytes);
            }
        }
        let expected = (style < 15).then(|| requests.iter().map(|request| request.status).collect());
        Self { cuts: cuts(rng, &bytes), bytes, expected }
    }

    /// The stream as it is written.
    pub(super) fn pieces(&self) -> Vec<&[u8]> {
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        let starts = [0].into_iter().chain(self.cuts.iter().copied());
        starts.zip(ends).map(|(start, end)| &self.bytes[start..end]).collect()
    }
}

/// Where a stream is cut: anywhere, around line ends, or byte by byte for a stretch.
fn cuts(rng: &mut StdRng, bytes: &[u8]) -> Vec<usize> {
    let mut cuts: Vec<usize> = match rng.random_range(0..3) {
        0 => (0..rng.random_range(1..12)).map(|_| rng.random_range(0..=bytes.len())).collect(),
        1 => {
            let ends = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'\r' | b'\n'));
            let ends: Vec<usize> = ends.map(|(at, _)| at + rng.random_range(0..2)).collect();
            ends.sample(rng, MOST_CUTS).copied().collect()
        }
        _ => {
            let start = rng.random_range(0..=bytes.len());
            (start..start + MOST_CUTS).collect()
        }
    };
    cuts.retain(|&cut| cut > 0 && cut < bytes.len());
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Absent,
    Length,
    Chunked,
}

/// A request before it is bytes.
#[derive(Debug)]
struct Request {
    method: &'static str,
    target: Vec<u8>,
    version: &'static str,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    framing: Framing,
    /// What it is answered as long as nothing is spoilt.
    status: u16,
    /// Said instead of the body's length.
    lie: Option<&'static str>,
}

impl Request {
    /// One of the contract's requests, to be answered as its route says.
    fn good(rng: &mut StdRng) -> Self {
        let (target, status, body) = match rng.random_range(0..20) {
            0..5 => ("/health".to_owned(), 200, None),
            5..9 => ("/echo".to_owned(), 200, Some(echo(rng))),
            9..11 => ("/me".to_owned(), 200, None),
            11..14 => match rng.random_range(1..60_000_u32) {
                id @ ..=50_000 => (format!("/users/{id}"), 200, None),
                id => (format!("/users/{id}"), 404, None),
            },
            14..16 => {
                let (page, limit) = (rng.random_range(1..=30), rng.random_range(1..=20));
                (format!("/users?page={page}&limit={limit}"), 200, None)
            }
            16..17 => ("/orders".to_owned(), 201, Some(order(rng))),
            17..18 => (format!("/cpu?n={}", rng.random_range(1..300)), 200, None),
            18..19 => ("/nowhere".to_owned(), 404, None),
            _ => ("/users/0".to_owned(), 422, None),
        };
        let mut headers = vec![("host".to_owned(), b"127.0.0.1:3000".to_vec())];
        let mut framing = Framing::Absent;
        if target == "/me" {
            headers.push(("authorization".to_owned(), format!("Bearer {}", good_token(rng)).into_bytes()));
        }
        if body.is_some() {
            headers.push(("content-type".to_owned(), b"application/json".to_vec()));
            framing = if rng.random_bool(0.5) { Framing::Length } else { Framing::Chunked };
        }
        let reads = if rng.random_range(0..8) == 0 { "HEAD" } else { "GET" };
        Self {
            method: if body.is_some() { "POST" } else { reads },
            target: target.into_bytes(),
            version: "HTTP/1.1",
            headers,
            body: body.unwrap_or_default(),
            framing,
            status,
            lie: None,
        }
    }

    /// Changes one thing to something odd, which may still be lawful.
    fn spoil(&mut self, rng: &mut StdRng) {
        match rng.random_range(0..16) {
            0 => self.method = pick(rng, METHODS),
            1 => self.target = pick(rng, TARGETS).to_vec(),
            2 => self.target = self.odd_target(rng),
            3 => self.version = pick(rng, VERSIONS),
            4..8 => {
                let (name, value) = pick(rng, HEADERS);
                let place = rng.random_range(0..=self.headers.len());
                self.headers.insert(place, (name.to_owned(), value.to_vec()));
            }
            8 => self.odd_header(rng),
            9..12 => self.body = odd_json(rng, &self.body),
            12 => self.lie = Some(pick(rng, NUMBERS)),
            13 => {
                self.framing = *[Framing::Absent, Framing::Length, Framing::Chunked].choose(rng).expect("three");
                if self.body.is_empty() {
                    self.body = echo(rng);
                }
            }
            14 => {
                let length = rng.random_range(65_400..66_000_usize).saturating_sub(self.body.len());
                self.body.splice(0..0, std::iter::repeat_n(b' ', length));
            }
            _ => self.headers.push(("authorization".to_owned(), format!("Bearer {}", odd_token(rng)).into_bytes())),
        }
    }

    fn odd_target(&self, rng: &mut StdRng) -> Vec<u8> {
        let number = pick(rng, NUMBERS);
        match rng.random_range(0..6) {
            0 => format!("/users/{number}").into_bytes(),
            1 => format!("/users?page={number}&limit={}", pick(rng, NUMBERS)).into_bytes(),
            2 => format!("/cpu?n={number}").into_bytes(),
            3 => [b"http://127.0.0.1:3000", &self.target[..]].concat(),
            4 if !self.target.is_empty() => {
                // One byte of it as an escape.
                let at = rng.random_range(0..self.target.len());
                let escape = format!("%{:02X}", self.target[at]);
                [&self.target[..at], escape.as_bytes(), &self.target[at + 1..]].concat()
            }
            _ => {
                let mut target = self.target.clone();
                target.insert(rng.random_range(0..=target.len()), *pick(rng, TOKENS).first().unwrap_or(&b'/'));
                target
            }
        }
    }

    fn odd_header(&mut self, rng: &mut StdRng) {
        if self.headers.is_empty() {
            return;
        }
        let place = rng.random_range(0..self.headers.len());
        match rng.random_range(0..5) {
            0 => drop(self.headers.remove(place)),
            1 => self.headers.push(self.headers[place].clone()),
            2 => self.headers[place].0.make_ascii_uppercase(),
            3 => mutate::bytes(rng, &mut self.headers[place].1),
            _ => self.headers.extend((0..rng.random_range(90..110)).map(|n| (format!("x-{n}"), b"1".to_vec()))),
        }
    }

    fn bytes(&self, rng: &mut StdRng) -> Vec<u8> {
        let mut bytes = format!("{} ", self.method).into_bytes();
        bytes.extend_from_slice(&self.target);
        bytes.extend_from_slice(format!(" {}\r\n", self.version).as_bytes());
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        let length = self.body.len().to_string();
        match self.framing {
            Framing::Absent => {}
            Framing::Length => {
                let said = self.lie.unwrap_or(&length);
                bytes.extend_from_slice(format!("content-length: {said}\r\n").as_bytes());
            }
            Framing::Chunked => bytes.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        bytes.extend_from_slice(b"\r\n");
        if self.framing == Framing::Chunked {
            bytes.extend(self.chunks(rng));
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }

    fn chunks(&self, rng: &mut StdRng) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = &self.body[..];
        let lies_at = rng.random_range(0..4);
        let mut count = 0;
        while !rest.is_empty() {
            let most = if rng.random_bool(0.8) { 40 } else { rest.len() };
            let (piece, more) = rest.split_at(rng.random_range(1..=most.min(rest.len())));
            let size = match self.lie {
                Some(lie) if count == lies_at => lie.to_owned(),
                _ => format!("{:x}", piece.len()),
            };
            let extension = if rng.random_range(0..8) == 0 { ";name=\"value\"" } else { "" };
            bytes.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
            rest = more;
            count += 1;
        }
        let trailer = if rng.random_range(0..8) == 0 { "x-trailer: 1\r\n" } else { "" };
        bytes.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
        bytes
    }
}

fn pick<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    *from.choose(rng).expect("no dictionary is empty")
}

fn good_token(rng: &mut StdRng) -> String {
    token::for_user(rng.random_range(1..=50_000), BENCH_SECRET)
}

/// Claims that are signed with the right secret and are odd.
fn odd_token(rng: &mut StdRng) -> String {
    let header = pick(rng, &[r#"{"alg":"HS256"}"#, r#"{"alg":"none"}"#, r#"{"alg":"HS256","crit":["x"]}"#, "{}", "[]"]);
    let claim = pick(rng, &["exp", "nbf", "sub", "iat", "x"]);
    let payload = format!(r#"{{"sub":"4242","{claim}":{}}}"#, odd_value(rng));
    token::hs256(header, &payload, BENCH_SECRET)
}

fn echo(rng: &mut StdRng) -> Vec<u8> {
    let name = pick(rng, &["Jane Doe", "Jürgen", "🦀", "a\\\"b", "\\u0000", "x"]);
    let tags: Vec<String> = (0..rng.random_range(0..=10)).map(|n| format!("\"tag{n}\"")).collect();
    let age = rng.random_range(0..=150);
    format!(r#"{{"name":"{name}","email":"jane@example.com","age":{age},"tags":[{}]}}"#, tags.join(",")).into_bytes()
}

fn order(rng: &mut StdRng) -> Vec<u8> {
    let cents = rng.random_range(0..100_000);
    let currency = pick(rng, &["USD", "EUR", "GBP"]);
    let user = rng.random_range(1..=50_000);
    format!(r#"{{"userId":{user},"amount":{}.{:02},"currency":"{currency}"}}"#, cents / 100, cents % 100).into_bytes()
}

/// A value of JSON, or nearly.
fn odd_value(rng: &mut StdRng) -> String {
    match rng.random_range(0..10) {
        0..4 => pick(rng, NUMBERS).to_owned(),
        4..9 => pick(rng, VALUES).to_owned(),
        _ => {
            let depth = pick(rng, &[2, 60, 126, 127, 128, 129, 5_000]);
            let (open, close) = pick(rng, &[("[", "]"), ("{\"a\":", "}")]);
            format!("{}1{}", open.repeat(depth), close.repeat(depth))
        }
    }
}

fn odd_json(rng: &mut StdRng, good: &[u8]) -> Vec<u8> {
    const KEYS: &[&str] =
        &["name", "email", "age", "tags", "userId", "amount", "currency", "x", "n\\u0061me", "", "__proto__"];
    let keys: &[&str] = match rng.random_range(0..3) {
        0 => &["name", "email", "age", "tags"],
        1 => &["userId", "amount", "currency"],
        _ => KEYS,
    };
    let blank = |rng: &mut StdRng| pick(rng, &["", "", "", " ", "\t\r\n"]);
    match rng.random_range(0..10) {
        0..4 => {
            // A good body whose one value, if it has this key, is odd.
            let text = String::from_utf8_lossy(good);
            let key = format!("\"{}\":", pick(rng, keys));
            let Some(at) = text.find(&key) else { return odd_value(rng).into_bytes() };
            let rest = &text[at + key.len()..];
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            format!("{}{key}{}{}", &text[..at], odd_value(rng), &rest[end..]).into_bytes()
        }
        4 => odd_value(rng).into_bytes(),
        5 => {
            let mut bytes = good.to_vec();
            mutate::bytes(rng, &mut bytes);
            bytes
        }
        6 => {
            // Another key, or the same once more, in front.
            let rest = good.strip_prefix(b"{").unwrap_or(good);
            let first = format!("{{\"{}\":{},", pick(rng, KEYS), odd_value(rng));
            [first.as_bytes(), rest].concat()
        }
        _ => {
            let mut text = "{".to_owned();
            for (place, key) in keys.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                text.extend([comma, blank(rng), "\"", key, "\"", blank(rng), ":", &odd_value(rng)].map(String::from));
            }
            text.push('}');
            text.into_bytes()
        }
    }
}
