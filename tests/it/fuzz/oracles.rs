//! What must hold of every stream, whatever is in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::front::{End, Front};
use super::generate::Case;
use super::replies::{self, Reply};

/// How long the second front may need for replies the first one has given; the second time for a machine that is busy.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Attempts at a smaller stream that still fails.
const SHRINKS: usize = 400;

/// An answer of our own front from which axum over hyper may differ.
struct Lawful {
    own: u16,
    /// Part of its detail.
    says: &'static str,
    /// What the other may answer; nothing for anything.
    axum: &'static [u16],
    /// Why.
    _because: &'static str,
}

const LAWFUL: &[Lawful] = &[
    Lawful { own: 505, says: "speaks", axum: &[400], _because: "hyper answers what it cannot parse with an empty 400" },
    Lawful {
        own: 501,
        says: "coding",
        axum: &[],
        _because: "hyper reads any list that ends in chunked; others are 400",
    },
    Lawful { own: 417, says: "expectation", axum: &[], _because: "hyper reads over expectations it does not know" },
    Lawful { own: 413, says: "longer", axum: &[], _because: "hyper reads no body that its route does not ask for" },
    Lawful {
        own: 400,
        says: "the body is framed wrongly",
        axum: &[200, 201, 401, 404, 405, 415, 422],
        _because: "hyper reads no body that its route does not ask for, and takes bare line feeds in trailers",
    },
    Lawful { own: 400, says: "content-length", axum: &[], _because: "hyper reads over a length beside chunks" },
    Lawful { own: 431, says: "too long", axum: &[], _because: "the limit of hyper is passed by what it reads at once" },
    Lawful { own: 400, says: "fragment", axum: &[], _because: "the Uri of hyper cuts fragments off" },
];

/// The largest lengths, which hyper keeps for itself and answers 431.
const RESERVED_LENGTHS: [&str; 2] = ["18446744073709551615", "18446744073709551614"];

/// What hyper reads at first.
const READ_BYTES: usize = 8 * 1_024;

/// Checks a stream on both fronts.
///
/// # Errors
/// The rule that is broken, and how.
pub(super) fn check(own: &Front, axum: &Front, case: &Case) -> Result<(), String> {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let whole = replies_of(own, &[&case.bytes], 0, Duration::ZERO)?;
        if let Some(expected) = &case.expected {
            let statuses: Vec<u16> = whole.0.iter().map(|reply| reply.status).collect();
            if statuses != *expected {
                return Err(format!("good requests: {statuses:?} instead of {expected:?}"));
            }
        }
        let cut = replies_of(own, &case.pieces(), 0, Duration::ZERO)?;
        same_however_cut(&case.bytes, &whole, &cut)?;
        let mut outcome = Ok(());
        for patience in PATIENCE {
            let second = replies_of(axum, &[&case.bytes], whole.0.len(), patience)?;
            outcome = same_on_both(&case.bytes, &whole.0, &second);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }));
    checked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default())
    })
}

type Outcome = (Vec<Reply>, End);

fn replies_of(front: &Front, pieces: &[&[u8]], count: usize, patience: Duration) -> Result<Outcome, String> {
    let exchanged = front.exchange(pieces, count, patience);
    let (bytes, end) = exchanged.map_err(|fault| format!("{:?}, {} pieces: {fault}", front.shape, pieces.len()))?;
    let replies = replies::read(&bytes, front.shape);
    Ok((replies.map_err(|fault| format!("{:?}, {} pieces: {fault}", front.shape, pieces.len()))?, end))
}

/// The replies and the end of a connection must not depend on how the kernel hands the bytes over.
fn same_however_cut(stream: &[u8], whole: &Outcome, cut: &Outcome) -> Result<(), String> {
    if whole == cut {
        return Ok(());
    }
    // Who waits for `100 Continue` may be refused before the body is sent, and the connection then ends: nobody can know
    // whether the body will follow. Sent with its body, the same request is refused after it.
    if contains(stream, "100-continue") && ends_early(&cut.0, &whole.0) {
        return Ok(());
    }
    Err(format!("depends on the cuts:\n in one: {whole:?}\n in pieces: {cut:?}"))
}

/// Whether `short` is the beginning of `long`, but for its last reply: what can be refused without the body.
fn ends_early(short: &[Reply], long: &[Reply]) -> bool {
    let Some((last, before)) = short.split_last() else { return false };
    let same = before.iter().zip(long).all(|(a, b)| a.status == b.status);
    short.len() <= long.len() && same && last.closes && matches!(last.status, 404 | 405 | 413 | 415)
}

/// Both fronts answer the same requests with the same statuses, and the same bodies where they are the routes' own.
fn same_on_both(stream: &[u8], own: &[Reply], (axum, end): &Outcome) -> Result<(), String> {
    let fault = |what: &str| Err(format!("{what}:\n own: {own:?}\n axum: {axum:?}"));
    for (a, b) in own.iter().zip(axum) {
        if a.status != b.status {
            // From here on the two may have read different requests.
            let lawful = is_lawful(stream, a, b);
            return if lawful { Ok(()) } else { fault(&format!("{} and {} differ", a.status, b.status)) };
        }
        // hyper's own answers have no body; both word a body that is not framed rightly in their own way.
        let unparsed = b.body.is_empty() && b.closes && matches!(b.status, 400 | 414 | 431);
        if a.body != b.body && a.status != 400 && !unparsed {
            return fault("bodies differ");
        }
    }
    // hyper answers the head of a request whose body then does not come; our own front has nothing to answer.
    let incomplete = axum.len() == own.len() + 1 && own.last().is_none_or(|reply| !reply.closes);
    // hyper closes after a body that no route has read, if it is in chunks or not yet there as a whole.
    let unread = axum.len() < own.len() && (contains(stream, "chunked") || stream.len() > READ_BYTES);
    // hyper says nothing to a client that begins with HTTP/2.
    let preface = own.len() == axum.len() + 1 && own.last().is_some_and(|reply| reply.closes);
    let silent = preface && contains(stream, "PRI * HTTP/2.0");
    // hyper closes after what it cannot parse without reading on, which resets the connection under its last replies.
    let reset = axum.len() < own.len() && *end == End::Reset;
    // hyper does not look into a connection header that is not ASCII, and keeps what it asks to close.
    let kept = axum.len() > own.len() && own.last().is_some_and(|reply| reply.closes) && !stream.is_ascii();
    if own.len() == axum.len() || incomplete || kept || unread || silent || reset {
        Ok(())
    } else {
        fault("one says more")
    }
}

fn is_lawful(stream: &[u8], own: &Reply, axum: &Reply) -> bool {
    let listed = |lawful: &&Lawful| {
        let answers = lawful.axum.is_empty() || lawful.axum.contains(&axum.status);
        // HEAD has no detail.
        let says = own.body.is_empty() || own.body.contains(lawful.says);
        own.status == lawful.own && says && answers
    };
    let reserved = axum.status == 431 && RESERVED_LENGTHS.iter().any(|length| contains(stream, length));
    let odd_target = axum.status == 400 && axum.body.is_empty() && has_odd_target(stream);
    LAWFUL.iter().any(|lawful| listed(&lawful)) || reserved || odd_target
}

/// Whether some target is one that the `Uri` of hyper refuses; ours is any that has a path.
fn has_odd_target(stream: &[u8]) -> bool {
    let mut lines = stream.split(|&byte| byte == b'\n');
    lines.any(|line| {
        let mut words = line.split(|&byte| byte == b' ');
        words.nth(1).is_some_and(|word| axum::http::Uri::try_from(word).is_err())
    })
}

/// In any case.
fn contains(stream: &[u8], word: &str) -> bool {
    stream.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// A smaller case that breaks the same rule.
pub(super) fn shrink(own: &Front, axum: &Front, case: &Case, fault: &str) -> Case {
    let rule = |fault: &str| fault.split(':').next().unwrap_or_default().to_owned();
    let mut best = case.clone();
    let mut tries = 0;
    let mut size = best.bytes.len() / 2;
    while size > 0 && tries < SHRINKS {
        let mut at = 0;
        while at < best.bytes.len() && tries < SHRINKS {
            let smaller = without(&best, at, size);
            tries += 1;
            match check(own, axum, &smaller) {
                Err(other) if rule(&other) == rule(fault) => best = smaller,
                _ => at += size,
            }
        }
        size /= 2;
    }
    best
}

/// The case without `size` bytes at `at`; what it must be answered is then not known any more.
fn without(case: &Case, at: usize, size: usize) -> Case {
    let end = (at + size).min(case.bytes.len());
    let mut bytes = case.bytes.clone();
    bytes.drain(at..end);
    let moved = |&cut: &usize| if cut > end { cut - (end - at) } else { cut.min(at) };
    let mut cuts: Vec<usize> = case.cuts.iter().map(moved).filter(|&cut| cut > 0 && cut < bytes.len()).collect();
    cuts.dedup();
    Case { bytes, cuts, expected: None }
}
