//! A server whose delays are known, to check what a load driver says of them.
//!
//! `cargo run --release --example known_delays` prints its address. `GET /constant`, `/bimodal` and `/heavy` are answered after
//! 2 ms; after 1 ms or, one in twenty, 20 ms; and after a time with a Pareto tail. `GET /seen` gives the percentiles of the
//! delays as they were, in nanoseconds from a request's arrival to its reply's write, and forgets them.
//!
//! It turns without waiting, on a CPU of its own: a timer would be late by as much as is to be measured.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const LISTENER: Token = Token(usize::MAX);

/// The delay that a path asks for.
fn delay(path: &str, random: &mut StdRng) -> Duration {
    match path {
        "/constant" => Duration::from_millis(2),
        "/bimodal" if random.random_range(0..20) == 0 => Duration::from_millis(20),
        "/bimodal" => Duration::from_millis(1),
        // Pareto with index 1.5, from half a millisecond to half a second.
        "/heavy" => Duration::from_micros(500)
            .mul_f64(random.random::<f64>().max(1e-4).powf(-1.0 / 1.5))
            .min(Duration::from_millis(500)),
        _ => Duration::ZERO,
    }
}

/// Nearest ranks of 50, 90, 99 and 99.9 %, as JSON.
fn percentiles(seen: &mut Vec<u64>) -> String {
    seen.sort_unstable();
    let at = |per_mille: usize| {
        let rank = (seen.len() * per_mille).div_ceil(1_000).max(1);
        seen.get(rank - 1).copied().unwrap_or(0)
    };
    let text = format!(
        r#"{{"count":{},"p50":{},"p90":{},"p99":{},"p99_9":{}}}"#,
        seen.len(),
        at(500),
        at(900),
        at(990),
        at(999)
    );
    seen.clear();
    text
}

fn reply(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn main() -> std::io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?);
    let (mut connections, mut due) = (Vec::<Option<TcpStream>>::new(), BinaryHeap::new());
    let (mut seen, mut random) = (Vec::new(), StdRng::seed_from_u64(1));
    let (mut events, mut buffer) = (Events::with_capacity(1_024), [0; 4_096]);
    let start = Instant::now();
    let now_ns = || u64::try_from(start.elapsed().as_nanos()).expect("a short run");
    loop {
        poll.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    poll.registry().register(&mut stream, Token(connections.len()), Interest::READABLE)?;
                    connections.push(Some(stream));
                }
                continue;
            }
            let place = event.token().0;
            let Some(stream) = &mut connections[place] else { continue };
            let arrived_ns = now_ns();
            match stream.read(&mut buffer) {
                Ok(0) => connections[place] = None,
                Ok(length) => {
                    let request = String::from_utf8_lossy(&buffer[..length]);
                    let path = request.split(' ').nth(1).unwrap_or("/");
                    if path == "/seen" {
                        stream.write_all(reply(&percentiles(&mut seen)).as_bytes())?;
                    } else {
                        let delay_ns = u64::try_from(delay(path, &mut random).as_nanos()).expect("a short delay");
                        due.push(Reverse((arrived_ns + delay_ns, place, arrived_ns)));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => connections[place] = None,
            }
        }
        while let Some(&Reverse((due_ns, place, arrived_ns))) = due.peek()
            && due_ns <= now_ns()
        {
            due.pop();
            if let Some(stream) = &mut connections[place] {
                seen.push(now_ns() - arrived_ns);
                if stream.write_all(reply("ok").as_bytes()).is_err() {
                    connections[place] = None;
                }
            }
        }
    }
}
