//! Bytes to replies, as RFC 9112 frames them. Pure: no socket, no clock.
//!
//! A general client forgives; this one reports. Two framings at once, a length that is no number, a chunk without
//! its line end: each is an error that names what was seen.

/// A head larger than this is no reply to anything the gate sends.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The largest happy reply is about 11 KB (a list of 100); an echo of a large body stays under 64 KB.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// More fields than any server of an API sends.
const MAX_HEADERS: usize = 128;
/// `100 Continue` and its like before the final reply.
const MAX_INTERIM: usize = 8;

/// One final reply, with what came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Of the final reply.
    pub(super) status: u16,
    /// In the order sent; names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// Without its framing.
    pub(super) body: Vec<u8>,
    /// Statuses below 200 that came first.
    pub(super) interim: Vec<u16>,
    /// The connection takes no further request.
    pub(super) closes: bool,
}

impl Reply {
    /// First value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// `application/json` of `application/json; charset=utf-8`, in lower case.
    pub(super) fn media_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }
}

/// How far the bytes read so far go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More has to be read; the text says of what.
    Partial(&'static str),
    /// A whole reply, and how many bytes it took.
    Whole(Reply, usize),
}

/// Reads one reply from the start of `bytes`. `to_head`: the request was HEAD, so no body follows.
/// `ended`: the server has closed, so nothing more will come.
///
/// # Errors
/// Says in one line what is not HTTP.
pub(super) fn read(bytes: &[u8], to_head: bool, ended: bool) -> Result<Progress, String> {
    let mut interim = Vec::new();
    let mut at = 0;
    while interim.len() <= MAX_INTERIM {
        let Some((head, head_len)) = read_head(&bytes[at..])? else { return Ok(Progress::Partial("the head")) };
        at += head_len;
        if head.status < 200 && head.status != 101 {
            interim.push(head.status);
            continue;
        }
        let body = match head.framing(to_head)? {
            Framing::Nothing => Some((Vec::new(), 0)),
            Framing::Length(length) => bytes[at..].get(..length).map(|body| (body.to_vec(), length)),
            Framing::Chunked => read_chunks(&bytes[at..])?,
            Framing::UntilClose => ended.then(|| (bytes[at..].to_vec(), bytes.len() - at)),
        };
        let Some((body, body_len)) = body else { return Ok(Progress::Partial("the body")) };
        let Head { status, closes, headers } = head;
        return Ok(Progress::Whole(Reply { status, headers, body, interim, closes }, at + body_len));
    }
    Err(format!("more than {MAX_INTERIM} interim replies before the final one"))
}

struct Head {
    status: u16,
    closes: bool,
    headers: Vec<(String, String)>,
}

enum Framing {
    Nothing,
    Length(usize),
    Chunked,
    UntilClose,
}

fn read_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(format!("a head of more than {MAX_HEAD_BYTES} bytes")),
        Err(error) => return Err(format!("a head that is not HTTP ({error})")),
    };
    let headers: Vec<(String, String)> = response
        .headers
        .iter()
        .map(|field| (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).into_owned()))
        .collect();
    let connection = |token: &str| {
        headers.iter().any(|(name, value)| {
            name == "connection" && value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
        })
    };
    let closes = connection("close") || (response.version == Some(0) && !connection("keep-alive"));
    let status = response.code.ok_or("a head without a status")?;
    Ok(Some((Head { status, closes, headers }, length)))
}

impl Head {
    /// RFC 9112 section 6.3, for replies.
    fn framing(&self, to_head: bool) -> Result<Framing, String> {
        let values = |wanted: &str| -> Vec<&str> {
            self.headers.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
        };
        let (encodings, lengths) = (values("transfer-encoding"), values("content-length"));
        if to_head || self.status == 204 || self.status == 304 {
            return Ok(Framing::Nothing);
        }
        match (encodings.as_slice(), lengths.as_slice()) {
            ([], []) => Ok(Framing::UntilClose),
            ([], [length]) => match length.parse() {
                Ok(length) if length <= MAX_BODY_BYTES => Ok(Framing::Length(length)),
                Ok(length) => Err(format!("a body of {length} bytes")),
                Err(_) => Err(format!("the content-length {length:?}")),
            },
            ([encoding], []) if encoding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            ([], _) => Err("several content-length headers".to_owned()),
            (encodings, []) => Err(format!("the transfer-encoding {:?}", encodings.join(", "))),
            _ => Err("both content-length and transfer-encoding".to_owned()),
        }
    }
}

/// The body and the bytes its chunks took; `None` while the last chunk has not arrived.
fn read_chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut body = Vec::new();
    let mut at = 0;
    // Bounded: every turn consumes at least the line end of a chunk, or returns.
    loop {
        let (size_len, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(format!("a bad chunk size after {} bytes of body", body.len())),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY_BYTES - body.len() {
            return Err(format!("a body of more than {MAX_BODY_BYTES} bytes"));
        }
        at += size_len;
        if size == 0 {
            return Ok(trailer_length(&bytes[at..]).map(|length| (body, at + length)));
        }
        let Some(chunk) = bytes.get(at..at + size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        at += size;
        match bytes.get(at..at + 2) {
            None => return Ok(None),
            Some(b"\r\n") => at += 2,
            Some(_) => return Err(format!("a chunk without its line end after {} bytes of body", body.len())),
        }
    }
}

/// Length of the trailer section: lines up to and including the empty one.
fn trailer_length(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") {
        return Some(2);
    }
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|position| position + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> (Reply, usize) {
        match read(bytes, false, false) {
            Ok(Progress::Whole(reply, used)) => (reply, used),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reply_with_a_length_ends_where_it_says() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\ncontent-length: 2\r\n\r\n{}HTTP";
        let (reply, used) = whole(bytes);
        assert_eq!((reply.status, reply.body.as_slice(), used), (200, b"{}".as_slice(), bytes.len() - 4));
        assert_eq!(reply.media_type().as_deref(), Some("application/json"));
        assert!(!reply.closes);
    }

    #[test]
    fn every_prefix_of_a_chunked_reply_is_partial_and_the_whole_is_read() {
        let bytes =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n";
        for end in 0..bytes.len() {
            assert!(matches!(read(&bytes[..end], false, false), Ok(Progress::Partial(_))), "at {end}");
        }
        let (reply, used) = whole(bytes);
        assert_eq!((reply.body.as_slice(), used), (b"abcde".as_slice(), bytes.len()));
    }

    #[test]
    fn interim_replies_are_counted_apart_and_bounded() {
        let (reply, _) = whole(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!((reply.status, reply.interim), (204, vec![100]));
        let flood = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM + 1);
        assert!(read(&flood, false, false).unwrap_err().contains("interim"));
    }

    #[test]
    fn a_reply_without_framing_ends_with_the_connection() {
        let bytes = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(read(bytes, false, false), Ok(Progress::Partial("the body")));
        let Ok(Progress::Whole(reply, _)) = read(bytes, false, true) else { panic!("not whole") };
        assert_eq!((reply.body.as_slice(), reply.closes), (b"abc".as_slice(), true));
    }

    #[test]
    fn a_reply_to_head_has_no_body_whatever_its_length_says() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n";
        assert!(matches!(read(bytes, true, false), Ok(Progress::Whole(_, used)) if used == bytes.len()));
    }

    #[test]
    fn nonsense_is_named() {
        for (bytes, named) in [
            ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n", "several content-length"),
            ("HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\n", "content-length \"two\""),
            ("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n", "a body of 99999999 bytes"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n", "both"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "transfer-encoding \"gzip\""),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "bad chunk size"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc", "line end"),
        ] {
            let error = read(bytes.as_bytes(), false, false).expect_err(bytes);
            assert!(error.contains(named), "{bytes:?} gave {error:?}");
        }
    }
}
