//! Every sample is fed whole, byte by byte and cut at every position, with a cold and with a warm head cache.

use super::*;

type Outcome = Result<Option<(Reply, Vec<u8>)>, Fault>;

const WHOLE: Wants = Wants { whole: true, start: false };

/// Feeds the pieces to a connection that expects a reply; the outcome is that of the first piece that decides.
fn feed(pieces: &[&[u8]], is_head: bool, heads: &mut HeadCache) -> Outcome {
    let mut framer = Framer::default();
    framer.expect(is_head, WHOLE);
    for (k, piece) in pieces.iter().enumerate() {
        if let Some(reply) = framer.feed(piece, heads)? {
            let surplus: usize = pieces[k + 1..].iter().map(|piece| piece.len()).sum();
            return if surplus == 0 {
                Ok(Some((reply, framer.body().to_vec())))
            } else {
                Err(Fault::Surplus { bytes: surplus })
            };
        }
    }
    Ok(framer.end()?.map(|reply| (reply, framer.body().to_vec())))
}

/// The outcome, which may not depend on how the bytes were cut.
fn outcome_of(bytes: &[u8], is_head: bool) -> Outcome {
    let whole = feed(&[bytes], is_head, &mut HeadCache::default());
    let mut warm = HeadCache::default();
    let _ = feed(&[bytes], is_head, &mut warm);
    assert_eq!(same_surplus(feed(&[bytes], is_head, &mut warm)), same_surplus(whole.clone()), "warm");
    for cut in 1..bytes.len() {
        let pieces = [&bytes[..cut], &bytes[cut..]];
        for heads in [&mut HeadCache::default(), &mut warm] {
            let parted = feed(&pieces, is_head, heads);
            assert_eq!(same_surplus(parted), same_surplus(whole.clone()), "cut at {cut}");
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(same_surplus(feed(&single, is_head, &mut warm)), same_surplus(whole.clone()), "byte by byte");
    whole
}

/// How much surplus is seen at once depends on the cut, that there is some does not.
fn same_surplus(outcome: Outcome) -> Outcome {
    match outcome {
        Err(Fault::Surplus { .. }) => Err(Fault::Surplus { bytes: 0 }),
        other => other,
    }
}

fn reply_to(bytes: &str) -> (Reply, String) {
    let (reply, body) = outcome_of(bytes.as_bytes(), false).unwrap().unwrap();
    (reply, String::from_utf8(body).unwrap())
}

fn fault_of(bytes: &str) -> Fault {
    outcome_of(bytes.as_bytes(), false).unwrap_err()
}

const OK: Reply = Reply { status: 200, framing: Framing::Length, close: false };

#[test]
fn content_length_frames_a_body() {
    let (reply, body) = reply_to("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: now\r\n\r\nhello");
    assert_eq!((reply, body.as_str()), (OK, "hello"));
    let (reply, body) = reply_to("HTTP/1.1 404 \r\ncontent-length:0\r\n\r\n");
    assert_eq!((reply, body.as_str()), (Reply { status: 404, ..OK }, ""));
    assert_eq!(reply_to("HTTP/1.1 200\r\ncontent-length: 2, 2\r\nContent-Length:\t2 \r\n\r\nab").1, "ab");
}

#[test]
fn chunks_and_trailers_are_read() {
    let (reply, body) = reply_to(concat!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n",
        "5\r\nhello\r\n00000C;name=\"v\"\r\n, wide world\r\n0\r\nX-Sum: 1\r\nx-other:\r\n\r\n"
    ));
    assert_eq!(reply, Reply { framing: Framing::Chunked, ..OK });
    assert_eq!(body, "hello, wide world");
    assert_eq!(reply_to("HTTP/1.1 200 OK\r\ntransfer-encoding:chunked\r\n\r\n0\r\n\r\n").1, "");
}

#[test]
fn replies_without_a_body_end_with_their_head() {
    for status in [204, 304] {
        let (reply, body) = reply_to(&format!("HTTP/1.1 {status} x\r\ncontent-length: 7\r\n\r\n"));
        assert_eq!((reply, body.as_str()), (Reply { status, framing: Framing::NoBody, close: false }, ""));
    }
    let head = outcome_of(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", true).unwrap().unwrap();
    assert_eq!(head.0.framing, Framing::NoBody);
    let surplus = outcome_of(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", true);
    assert_eq!(surplus, Err(Fault::Surplus { bytes: 1 }));
}

#[test]
fn interim_replies_are_skipped_up_to_a_bound() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(reply_to(&format!("HTTP/1.1 100 Continue\r\n\r\n{interim}{last}")), (OK, "ok".to_owned()));
    assert_eq!(reply_to(&format!("{}{last}", interim.repeat(INTERIM_LIMIT.into()))).1, "ok");
    assert_eq!(fault_of(&format!("{}{last}", interim.repeat(usize::from(INTERIM_LIMIT) + 1))), Fault::TooManyInterim);
    assert_eq!(fault_of("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"), Fault::SwitchingProtocols);
}

#[test]
fn without_a_length_the_body_lasts_until_the_end_of_the_stream() {
    let (reply, body) = reply_to("HTTP/1.1 200 OK\r\n\r\nto the end");
    assert_eq!(
        (reply, body.as_str()),
        (Reply { status: 200, framing: Framing::EndOfStream, close: true }, "to the end")
    );
}

#[test]
fn the_end_of_the_stream_elsewhere_is_a_fault() {
    assert_eq!(fault_of("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell"), Fault::ClosedInBody);
    assert_eq!(fault_of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"), Fault::ClosedInBody);
    assert_eq!(fault_of("HTTP/1.1 200 OK\r\ncontent-len"), Fault::ClosedInHead);
    let mut framer = Framer::default();
    assert_eq!(framer.end(), Ok(None));
    framer.expect(false, Wants::default());
    assert_eq!(framer.end(), Err(Fault::ClosedBeforeReply));
}

#[test]
fn connection_close_and_old_versions_are_obeyed() {
    assert!(reply_to("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\ncontent-length: 0\r\n\r\n").0.close);
    assert!(reply_to("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n").0.close);
    assert!(!reply_to("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n").0.close);
}

#[test]
fn what_is_ambiguous_or_malformed_is_refused_by_name() {
    let with = |fields: &str| fault_of(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"));
    assert_eq!(with("content-length: 1\r\ncontent-length: 2"), Fault::ConflictingLengths);
    assert_eq!(with("content-length: 1, 2"), Fault::ConflictingLengths);
    assert_eq!(with("content-length: 1\r\ntransfer-encoding: chunked"), Fault::ConflictingLengths);
    for length in ["", "-1", "+1", "0x1", "1 1", "18446744073709551616"] {
        assert_eq!(with(&format!("content-length: {length}")), Fault::Length, "{length}");
    }
    assert_eq!(with("transfer-encoding: gzip"), Fault::TransferEncoding);
    assert_eq!(with("transfer-encoding: chunked\r\ntransfer-encoding: chunked"), Fault::TransferEncoding);
    for field in ["no colon", ": no name", "name : space", " folded: x", "a: \u{1}", "a: x\rcontent-length: 1"] {
        assert_eq!(with(field), Fault::Field, "{field}");
    }
    assert_eq!(with("a: b\n"), Fault::BareLineFeed);
    assert_eq!(fault_of("\nHTTP/1.1 200 OK\r\n\r\n"), Fault::BareLineFeed);
    for line in ["", "HTTP/1.1 20 OK", "HTTP/1.1 600 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK", "http/1.1 200 OK"] {
        assert_eq!(fault_of(&format!("{line}\r\n\r\n")), Fault::StatusLine, "{line}");
    }
    assert_eq!(fault_of("HTTP/2.0 200 OK\r\n\r\n"), Fault::Version);
    assert_eq!(fault_of("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), Fault::TransferEncoding);
}

#[test]
fn malformed_chunks_are_refused() {
    for chunks in
        ["\r\n", "g\r\n", "-1\r\n", " 1\r\na\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n", "11111111111111111\r\n"]
    {
        let bytes = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(fault_of(&bytes), Fault::Chunk, "{chunks:?}");
    }
    let trailer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n";
    assert_eq!(fault_of(trailer), Fault::Field);
    let line = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{}", "x".repeat(5000));
    assert_eq!(feed(&[line.as_bytes()], false, &mut HeadCache::default()), Err(Fault::Chunk));
}

#[test]
fn surplus_and_early_bytes_are_faults() {
    assert!(matches!(fault_of("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab"), Fault::Surplus { .. }));
    assert!(matches!(fault_of("HTTP/1.1 204 No Content\r\n\r\n\r\n"), Fault::Surplus { .. }));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nx";
    assert!(matches!(fault_of(chunked), Fault::Surplus { .. }));
    let early = Framer::default().feed(b"H", &mut HeadCache::default());
    assert_eq!(early, Err(Fault::EarlyReply));
}

#[test]
fn a_head_may_be_long_but_not_endless() {
    let long = format!("HTTP/1.1 200 OK\r\na: {}\r\ncontent-length: 1\r\n\r\nx", "y".repeat(60_000));
    let pieces: Vec<&[u8]> = long.as_bytes().chunks(1000).collect();
    assert_eq!(feed(&pieces, false, &mut HeadCache::default()), Ok(Some((OK, b"x".to_vec()))));
    let endless = "HTTP/1.1 200 OK\r\n".to_owned() + &"a: b\r\n".repeat(11_000);
    for size in [1000, endless.len()] {
        let pieces: Vec<&[u8]> = endless.as_bytes().chunks(size).collect();
        assert_eq!(feed(&pieces, false, &mut HeadCache::default()), Err(Fault::HeadTooLong), "{size}");
    }
}

#[test]
fn many_replies_on_one_connection_differ_in_date_and_length_only() {
    let (mut framer, mut heads) = (Framer::default(), HeadCache::default());
    for k in 0..200_usize {
        let body = "z".repeat(k);
        let text = format!("HTTP/1.1 200 OK\r\nDate: at {:05}\r\nContent-Length: {k}\r\nx: y\r\n\r\n{body}", k * 7);
        framer.expect(false, WHOLE);
        assert_eq!(framer.feed(text.as_bytes(), &mut heads), Ok(Some(OK)));
        assert_eq!(framer.body(), body.as_bytes());
    }
}

#[test]
fn the_cache_recognises_only_what_differs_in_date_and_length() {
    let mut heads = HeadCache::default();
    let known = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\ndate: Thu, 01 Jan\r\nx: y\r\n\r\n";
    heads.learn(known.as_bytes()).unwrap();
    let recalled = |text: &str| heads.recall(text.as_bytes()).map(|(head, length)| (head.length, length));
    assert_eq!(recalled(&known.replace("17", "23").replace("Thu", "Fri")), Some((Some(23), known.len())));
    assert_eq!(recalled(&format!("{known}body")), Some((Some(17), known.len())));
    for (from, to) in [("17", "1x"), ("17", "171"), ("200", "500"), ("x: y", "x: z"), ("Thu,", "T\r\n\r"), ("17", "+7")]
    {
        assert_eq!(recalled(&known.replace(from, to)), None, "{to:?}");
    }
    assert_eq!(recalled(&known[..known.len() - 1]), None);
}

#[test]
fn a_captured_body_is_bounded_and_still_differs() {
    let length = CAPTURE_LIMIT_BYTES + 10;
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", "b".repeat(length));
    let (_, body) = feed(&[text.as_bytes()], false, &mut HeadCache::default()).unwrap().unwrap();
    assert_eq!(body.len(), CAPTURE_LIMIT_BYTES + 1);
}

#[test]
fn the_start_of_every_body_can_be_wanted_alone() {
    let body = "0123456789".repeat(5);
    let length = format!("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{body}");
    let chunks = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\n{}\r\n2b\r\n{}\r\n0\r\n\r\n",
        &body[..7],
        &body[7..]
    );
    let closed = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    for reply in [length, chunks, closed] {
        for piece in [1, 3, 17, 1_000] {
            let (mut framer, mut heads) = (Framer::default(), HeadCache::default());
            framer.expect(false, Wants { whole: false, start: true });
            for bytes in reply.as_bytes().chunks(piece) {
                framer.feed(bytes, &mut heads).unwrap();
            }
            framer.end().unwrap();
            assert_eq!(framer.start()[..START_BYTES], body.as_bytes()[..START_BYTES], "{piece}");
            assert!(!framer.wants().whole);
        }
    }
}
