//! Bodies in chunks (RFC 9112, section 7.1), decoded as they come.

/// Longest line with a chunk's size, extensions included. Nobody sends extensions; a client that does may not make us keep them.
const MOST_SIZE_LINE: usize = 256;
/// Most bytes of trailer lines, which are read over.
const MOST_TRAILERS: usize = 8 * 1024;
/// Digits of a size: a chunk beyond 2^60 bytes is a slip or an attack.
const MOST_DIGITS: usize = 15;

/// How far a body has been read.
#[derive(Debug)]
pub(super) struct Chunks {
    state: State,
    /// Bytes of the current line so far, where the state is a line.
    line: usize,
    /// Bytes of trailers so far.
    trailers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the digits of a size.
    Size {
        size: u64,
        digits: usize,
    },
    /// In blanks after the digits, which only an extension or the line's end may follow.
    Blank {
        size: u64,
    },
    /// In extensions, until the line ends.
    Extension {
        size: u64,
    },
    /// After the carriage return of a size line.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// At the carriage return after the data.
    DataEnd,
    /// At the line feed after that.
    DataFeed,
    /// At the start of a trailer line, or of the last line of all.
    Trailer,
    /// In the name of a trailer: without one, the line may be the next request.
    TrailerName,
    /// After its colon.
    TrailerValue,
    /// After its carriage return.
    TrailerEnd,
    /// After the carriage return of the last line.
    End,
    Done,
}

/// Bytes that are no chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Garbled;

impl Chunks {
    pub(super) fn new() -> Self {
        Self { state: State::Size { size: 0, digits: 0 }, line: 0, trailers: 0 }
    }

    /// Whether the body has been read to its end.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads from `bytes`, handing data to `keep` piece by piece; gives how many bytes belonged to the body.
    pub(super) fn read(&mut self, bytes: &[u8], mut keep: impl FnMut(&[u8])) -> Result<usize, Garbled> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if let State::Data { left } = self.state {
                let rest = &bytes[at..];
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                keep(&rest[..count]);
                at += count;
                let left = left - count as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data { left } };
                continue;
            }
            self.step(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// One byte that is not data.
    fn step(&mut self, byte: u8) -> Result<(), Garbled> {
        self.state = match (self.state, byte) {
            (State::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MOST_DIGITS => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                State::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(Garbled),
            (State::Size { size, .. } | State::Blank { size } | State::Extension { size }, b'\r') => {
                State::SizeEnd { size }
            }
            (State::Size { size, .. } | State::Blank { size }, b';') => State::Extension { size },
            (State::Size { size, .. } | State::Blank { size }, b' ' | b'\t') if self.line < MOST_SIZE_LINE => {
                self.line += 1;
                State::Blank { size }
            }
            (State::Extension { size }, b'\t' | b' '..=b'~' | 0x80..) if self.line < MOST_SIZE_LINE => {
                self.line += 1;
                State::Extension { size }
            }
            (State::SizeEnd { size: 0 } | State::TrailerEnd, b'\n') => State::Trailer,
            (State::SizeEnd { size }, b'\n') => {
                self.line = 0;
                State::Data { left: size }
            }
            (State::DataEnd, b'\r') => State::DataFeed,
            (State::DataFeed, b'\n') => State::Size { size: 0, digits: 0 },
            (State::Trailer, b'\r') => State::End,
            (State::Trailer | State::TrailerName, _) if is_token(byte) => self.trailer(State::TrailerName)?,
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => self.trailer(State::TrailerValue)?,
            (State::TrailerValue, b'\r') => State::TrailerEnd,
            (State::End, b'\n') => State::Done,
            _ => return Err(Garbled),
        };
        Ok(())
    }

    /// Counts a byte of a trailer.
    fn trailer(&mut self, state: State) -> Result<State, Garbled> {
        self.trailers += 1;
        if self.trailers > MOST_TRAILERS { Err(Garbled) } else { Ok(state) }
    }
}

/// The characters of names (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data, bytes read and whether the end was reached, with the bytes given in pieces of `piece`.
    fn decode(text: &str, piece: usize) -> Result<(String, usize, bool), Garbled> {
        let mut chunks = Chunks::new();
        let mut data = Vec::new();
        let mut total = 0;
        for bytes in text.as_bytes().chunks(piece) {
            total += chunks.read(bytes, |part| data.extend_from_slice(part))?;
            if chunks.is_done() {
                break;
            }
        }
        Ok((String::from_utf8(data).expect("UTF-8"), total, chunks.is_done()))
    }

    #[test]
    fn bodies_are_read_whole_whatever_the_pieces() {
        for text in ["3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "0003 ; x=y\r\nabc\r\n2 \r\nde\r\n0\r\nt: 1\r\nu-v:\r\n\r\n"] {
            for piece in 1..=text.len() {
                let more = format!("{text}GET /");
                assert_eq!(decode(&more, piece), Ok(("abcde".to_owned(), text.len(), true)), "{text:?} by {piece}");
            }
            for end in 1..text.len() {
                let (_, total, done) = decode(&text[..end], 7).expect("a good start");
                assert_eq!((total, done), (end, false), "{:?}", &text[..end]);
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for text in [
            "\r\n",
            ";\r\n",
            "g\r\n",
            "-1\r\n",
            "0x3\r\nabc\r\n",
            "3\nabc\r\n",
            "3 3\r\nabc\r\n",
            "3 x\r\nabc\r\n",
            " 3\r\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
            "3\r\nabc\rx",
            "1234567890abcdef\r\n",
            "3;\u{0}\r\n",
            "3\r x",
            "0\r\n\n",
            "0\r\nGET / HTTP/1.1\r\n",
            "0\r\n:x\r\n",
            "0\r\nt: 1\n",
            "0\r\nt: \0\r\n",
            "0\r\nt: 1\rx",
        ] {
            assert_eq!(decode(text, 100), Err(Garbled), "{text:?}");
        }
        assert_eq!(decode(&format!("3;{}\r\n", "x".repeat(MOST_SIZE_LINE + 1)), 100), Err(Garbled));
        assert_eq!(decode(&format!("0\r\n{}", "t: 1\r\n".repeat(MOST_TRAILERS)), 100), Err(Garbled));
    }
}
