//! HTTP/1.1 itself: framing, connections, and requests that arrive in pieces or in a row.

use std::time::Duration;

use super::list::page_of;
use crate::contract::render_user;
use crate::dataset::user;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{Expect, not_found, ok, status, unprocessable};
use crate::parity::request::{self, Request, chunked, get, post};
use crate::parity::session::{Fault, Session, now_ms};

/// Between the pieces of a request, so that they arrive apart.
const PAUSE: Duration = Duration::from_millis(15);
/// A client that sent `expect: 100-continue` waits about a second before it sends the body anyway; this is less.
const EXPECT_WAIT: Duration = Duration::from_millis(700);
/// For the end of a connection that its server has no reason to keep.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Answers to a request that is not HTTP.
const NOT_HTTP: &[u16] = &[400, 501];
/// How far the `date` header may be from this host's clock.
const DATE_MS: i64 = 60_000;

const HEALTH: &str = r#"{"status":"ok"}"#;

pub(super) fn checks() -> Vec<Check> {
    vec![
        core("wire-connection-not-kept", "a connection takes one request after the other").runs(kept),
        strict("wire-error-ends-connection", "a connection takes requests after a refused one").runs(kept_after_error),
        strict("wire-fragments-not-joined", "a request that arrives in pieces is one request").runs(fragments),
        strict("wire-pipeline-disordered", "requests sent in a row are answered in order").runs(pipeline),
        strict("wire-pipelined-bodies-mixed", "bodies sent in a row are told apart").runs(pipelined_bodies),
        strict("wire-close-ignored", "connection: close closes after the reply").runs(closes),
        strict("wire-chunked-body-not-read", "a chunked body is read like any other").runs(chunked_body),
        strict("wire-chunks-in-pieces-not-read", "a chunked body that arrives byte by byte is one body")
            .runs(trickled_chunks),
        strict("wire-expect-stalls", "expect: 100-continue is answered before the body comes").runs(expect_continue),
        strict("wire-expect-asks-for-unread-body", "a request that is refused anyway gets no 100").runs(expect_refused),
        strict("wire-both-framings-accepted", "a length and chunks in one request are refused, or end the connection")
            .runs(both_framings),
        strict("wire-two-lengths-accepted", "two different lengths are refused").runs(|session| {
            sends_raw(
                session,
                "POST /echo HTTP/1.1\r\nhost: HOST\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x",
                NOT_HTTP,
            )
        }),
        strict("wire-bad-length-accepted", "a length that is no number is refused").runs(|session| {
            sends_raw(session, "POST /echo HTTP/1.1\r\nhost: HOST\r\ncontent-length: +2\r\n\r\n{}", NOT_HTTP)
        }),
        strict("wire-missing-host-accepted", "a request without host is 400")
            .runs(|session| sends_raw(session, "GET /health HTTP/1.1\r\n\r\n", NOT_HTTP)),
        strict("wire-nonsense-accepted", "a line that is not HTTP is 400")
            .runs(|session| sends_raw(session, "HELLO\r\n\r\n", NOT_HTTP)),
        strict("wire-huge-head-accepted", "a head of 600 KB is refused, and others are still served").runs(|session| {
            sends_raw(
                session,
                &format!("GET /health HTTP/1.1\r\nhost: HOST\r\nx: {}\r\n\r\n", "x".repeat(600_000)),
                &[400, 431],
            )?;
            session.exchange(&get("/health"), &ok(HEALTH)).map(|_| ())
        }),
        strict("wire-absolute-form-not-routed", "a target in absolute form is its path").runs(|session| {
            let target = format!("http://{}/users/4242", session.host());
            session.exchange(&get(target), &ok(render_user(&user(4242)))).map(|_| ())
        }),
        strict("wire-date-missing", "a reply carries the date of now").runs(date),
    ]
}

fn kept(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = session.values.users;
    on_one_connection(session, &ids.map(|id| (get(format!("/users/{id}")), ok(render_user(&user(id))))))
}

fn kept_after_error(session: &mut Session<'_>) -> Result<(), Fault> {
    let health = || (get("/health"), ok(HEALTH));
    let invalid = (post("/echo", "{}"), unprocessable());
    on_one_connection(session, &[(get("/nope"), not_found()), health(), invalid, health()])
}

fn on_one_connection(session: &mut Session<'_>, exchanges: &[(Request, Expect)]) -> Result<(), Fault> {
    let mut connection = session.open()?;
    for (index, (request, expect)) in exchanges.iter().enumerate() {
        let reply = session.exchange_on(&mut connection, request, expect)?;
        if reply.closes && index + 1 < exchanges.len() {
            let text = format!("expected the connection to stay open, got connection: close; sent {}", request.shown());
            return Err(Fault::Differs(text));
        }
    }
    Ok(())
}

fn fragments(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    let request = post("/echo", body.clone());
    let mut connection = session.open()?;
    // In the middle of the method, of a header's name and of the body.
    let bytes = request.encode(session.host());
    let cuts = [0, 2, 30, bytes.len() - body.len() + 5, bytes.len()];
    for piece in cuts.windows(2) {
        session.send_on(&mut connection, &bytes[piece[0]..piece[1]]);
        std::thread::sleep(PAUSE);
    }
    session.receive_on(&mut connection, &request, &ok(body)).map(|_| ())
}

fn pipeline(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = session.values.users;
    // A slow one first: a server that answers as it gets ready shows itself.
    let slow = (get("/users?page=40&limit=100"), ok(page_of(40, 100)));
    let quick = ids.map(|id| (get(format!("/users/{id}")), ok(render_user(&user(id)))));
    in_a_row(session, &[vec![slow], quick.to_vec()].concat())
}

fn pipelined_bodies(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    let echo = || (post("/echo", body.clone()), ok(body.clone()));
    let in_chunks = (post("/echo", body.clone()).in_chunks(7), ok(body.clone()));
    let health = (get("/health"), ok(HEALTH));
    in_a_row(session, &[echo(), in_chunks, health, echo()])
}

/// Sends all in one write and reads the replies in order.
fn in_a_row(session: &mut Session<'_>, exchanges: &[(Request, Expect)]) -> Result<(), Fault> {
    let mut connection = session.open()?;
    let bytes: Vec<u8> = exchanges.iter().flat_map(|(request, _)| request.encode(session.host())).collect();
    session.send_on(&mut connection, &bytes);
    for (request, expect) in exchanges {
        let reply = session.reply_on(&mut connection, request)?;
        session.compare(request, expect, &reply)?;
    }
    Ok(())
}

fn closes(session: &mut Session<'_>) -> Result<(), Fault> {
    let request = get("/health").header("connection", "close");
    let mut connection = session.open()?;
    session.exchange_on(&mut connection, &request, &ok(HEALTH))?;
    if connection.closes_within(CLOSE_WAIT.min(session.timeout)) {
        return Ok(());
    }
    Err(Fault::Differs(format!("expected the connection to be closed, and it stayed open; sent {}", request.shown())))
}

fn chunked_body(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    session.exchange(&post("/echo", body.clone()).in_chunks(10), &ok(body)).map(|_| ())
}

fn trickled_chunks(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    let request = post("/echo", body.clone()).in_chunks(16);
    let mut connection = session.open()?;
    for byte in request.encode(session.host()) {
        session.send_on(&mut connection, &[byte]);
    }
    session.receive_on(&mut connection, &request, &ok(body)).map(|_| ())
}

fn expect_continue(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    let request = post("/echo", body.clone()).header("expect", "100-continue");
    let (head, rest) = request.encode_parts(session.host());
    let mut connection = session.open()?;
    session.send_on(&mut connection, &head);
    match connection.interim(EXPECT_WAIT.min(session.timeout)) {
        Ok(Some(100)) => {
            session.send_on(&mut connection, &rest);
            session.receive_on(&mut connection, &request, &ok(body)).map(|_| ())
        }
        Ok(Some(status)) => Err(Fault::Differs(format!("expected 100, got {status}; sent {}", request.shown()))),
        Ok(None) => session.receive_on(&mut connection, &request, &ok(body)).map(|_| ()),
        Err(text) => Err(Fault::Differs(format!("expected 100, got {text}; sent the head of {}", request.shown()))),
    }
}

fn expect_refused(session: &mut Session<'_>) -> Result<(), Fault> {
    let request = post("/nope", session.values.echo()).header("expect", "100-continue");
    let (head, _) = request.encode_parts(session.host());
    let mut connection = session.open()?;
    session.send_on(&mut connection, &head);
    let reply = session.receive_on(&mut connection, &request, &not_found())?;
    if reply.interim.is_empty() {
        return Ok(());
    }
    Err(Fault::Differs(format!(
        "expected 404 alone, got {:?} before it; sent the head of {}",
        reply.interim,
        request.shown()
    )))
}

/// RFC 9112 section 6.1: refuse it, or read it as chunks and close; kept open, it lets a request be smuggled in.
fn both_framings(session: &mut Session<'_>) -> Result<(), Fault> {
    let body = session.values.echo();
    let request = post("/echo", body.clone()).header("transfer-encoding", "chunked");
    let mut connection = session.open()?;
    let (head, _) = request.encode_parts(session.host());
    session.send_on(&mut connection, &[head, chunked(body.as_bytes(), 1000)].concat());
    let reply = session.reply_on(&mut connection, &request)?;
    if reply.status != 200 {
        return session.compare(&request, &status(NOT_HTTP), &reply);
    }
    if connection.closes_within(CLOSE_WAIT.min(session.timeout)) {
        return Ok(());
    }
    let shown = request.shown();
    Err(Fault::Differs(format!(
        "expected 400, or the connection closed after the reply, got 200 and it open; sent {shown}"
    )))
}

/// Sends bytes as they are, with the host filled in, and wants one of these statuses.
fn sends_raw(session: &mut Session<'_>, text: &str, statuses: &'static [u16]) -> Result<(), Fault> {
    let request = request::raw(text.lines().next().unwrap_or_default());
    let bytes = text.replace("HOST", session.host());
    let mut connection = session.open()?;
    session.send_on(&mut connection, bytes.as_bytes());
    let reply = session.reply_on(&mut connection, &request)?;
    session.compare(&request, &status(statuses), &reply)
}

fn date(session: &mut Session<'_>) -> Result<(), Fault> {
    let request = get("/health");
    let reply = session.exchange(&request, &ok(HEALTH))?;
    let Some(text) = reply.header("date") else {
        return Err(Fault::Differs(format!("expected a date header, got none; sent {}", request.shown())));
    };
    let parsed = jiff::fmt::rfc2822::parse(text).map(|zoned| zoned.timestamp().as_millisecond());
    match parsed {
        Ok(ms) if (ms - now_ms()).abs() <= DATE_MS => Ok(()),
        _ => Err(Fault::Differs(format!("expected the date of now, got {text}; sent {}", request.shown()))),
    }
}
