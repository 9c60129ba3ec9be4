//! The head of a reply: parsed strictly once, then recognised by comparison.

use std::ops::Range;

use super::Fault;

/// What a head says about framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// 100..=599.
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) close: bool,
}

/// Looks for the empty line that ends a head or a trailer section, continuing where it stopped.
#[derive(Debug, Default)]
pub(super) struct LineScan {
    at: usize,
    line_start: usize,
}

impl LineScan {
    /// Length of the section with its empty line, once `bytes` holds that.
    pub(super) fn end_of_section(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        while let Some(found) = bytes[self.at..].iter().position(|&byte| byte == b'\n') {
            let feed = self.at + found;
            if feed == self.line_start || bytes[feed - 1] != b'\r' {
                return Err(Fault::BareLineFeed);
            }
            let empty = feed - 1 == self.line_start;
            self.at = feed + 1;
            self.line_start = feed + 1;
            if empty {
                return Ok(Some(feed + 1));
            }
        }
        self.at = bytes.len();
        Ok(None)
    }
}

/// The last head that passed the strict parser. A server repeats its heads but for the date and the length, so most
/// replies are recognised by comparing bytes around these two; whatever differs goes to the strict parser.
#[derive(Debug, Default)]
pub(in crate::load) struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
    /// Values of `date` and `content-length` in `bytes`, in the order they stand there.
    holes: [Hole; 2],
}

#[derive(Debug, Clone, Default)]
struct Hole {
    range: Range<usize>,
    is_length: bool,
}

impl HeadCache {
    /// The head at the start of `input` and how long it is, where only date and length differ from the last one.
    #[inline]
    pub(super) fn recall(&self, input: &[u8]) -> Option<(Head, usize)> {
        let mut head = self.head?;
        let input = input.get(..self.bytes.len())?;
        let mut from = 0;
        for hole in &self.holes {
            let Range { start, end } = hole.range;
            if input[from..start] != self.bytes[from..start] {
                return None;
            }
            let value = &input[start..end];
            if hole.is_length {
                head.length = Some(digits(value)?);
            } else if !value.iter().all(|byte| matches!(byte, b' '..=b'~')) {
                return None;
            }
            from = end;
        }
        (input[from..] == self.bytes[from..]).then_some((head, input.len()))
    }

    /// Parses a whole head and remembers it.
    pub(super) fn learn(&mut self, bytes: &[u8]) -> Result<Head, Fault> {
        let parsed = parse(bytes)?;
        // Interim heads alternate with final ones: remembering them would forget what is worth remembering.
        if parsed.head.status >= 200 {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = Some(parsed.head);
            let date = Hole { range: parsed.date, is_length: false };
            let length = Hole { is_length: !parsed.length.is_empty(), range: parsed.length };
            self.holes = if date.range.start <= length.range.start { [date, length] } else { [length, date] };
        }
        Ok(parsed.head)
    }
}

/// A number of decimal digits only, without overflow.
fn digits(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

struct Parsed {
    head: Head,
    /// Where the value of the one `date` stands; empty where there is none or more.
    date: Range<usize>,
    /// Where the digits of the one `content-length` stand; empty likewise.
    length: Range<usize>,
}

/// A whole head, with its empty line and with lines that end as they must.
fn parse(bytes: &[u8]) -> Result<Parsed, Fault> {
    let mut lines = lines(bytes);
    let (_, first) = lines.next().ok_or(Fault::StatusLine)?;
    let (status, minor) = status_line(first)?;
    let mut fields = Fields::default();
    for (offset, line) in lines {
        fields.take(offset, line)?;
    }
    if fields.chunked && minor == 0 {
        return Err(Fault::TransferEncoding);
    }
    if fields.chunked && fields.length.is_some() {
        return Err(Fault::ConflictingLengths);
    }
    let close = fields.close || (minor == 0 && !fields.keep_alive);
    let head = Head { status, length: fields.length, chunked: fields.chunked, close };
    Ok(Parsed { head, date: fields.date.unwrap_or_default(), length: fields.length_at.unwrap_or_default() })
}

/// Checks the lines of a trailer section. They may not change the framing, so nothing of them is kept.
pub(super) fn check_trailers(bytes: &[u8]) -> Result<(), Fault> {
    lines(bytes).try_for_each(|(_, line)| split_field(line).map(|_| ()))
}

/// Lines up to the empty one, without their ends, and where each begins.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = 0;
    bytes.split_inclusive(|&byte| byte == b'\n').map_while(move |line| {
        let start = offset;
        offset += line.len();
        let line = line.strip_suffix(b"\r\n")?;
        (!line.is_empty()).then_some((start, line))
    })
}

/// `HTTP/1.1 200 OK` → (200, 1).
fn status_line(line: &[u8]) -> Result<(u16, u8), Fault> {
    let rest = line.strip_prefix(b"HTTP/").ok_or(Fault::StatusLine)?;
    let (version, rest) = rest.split_at_checked(4).ok_or(Fault::StatusLine)?;
    let minor = match version {
        b"1.1 " => 1,
        b"1.0 " => 0,
        _ => return Err(Fault::Version),
    };
    let (code, reason) = rest.split_at_checked(3).ok_or(Fault::StatusLine)?;
    let status = digits(code).and_then(|code| u16::try_from(code).ok()).ok_or(Fault::StatusLine)?;
    // The space before an empty reason is often left out, and nothing hangs on it.
    let reason_is_sound = reason.is_empty() || (reason[0] == b' ' && reason.iter().all(|&byte| is_value_byte(byte)));
    if !(100..=599).contains(&status) || !reason_is_sound {
        return Err(Fault::StatusLine);
    }
    Ok((status, minor))
}

#[derive(Default)]
struct Fields {
    length: Option<u64>,
    length_at: Option<Range<usize>>,
    date: Option<Range<usize>>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn take(&mut self, offset: usize, line: &[u8]) -> Result<(), Fault> {
        let (name, value_at) = split_field(line)?;
        let value = &line[value_at.clone()];
        let place = offset + value_at.start..offset + value_at.end;
        if name.eq_ignore_ascii_case(b"content-length") {
            self.take_length(value, place)?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // No other coding was offered with `te`, and chunked twice is malformed.
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::TransferEncoding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"date") {
            // Of several dates none is masked: they must then be equal to be recognised.
            self.date = Some(if self.date.is_none() { place } else { 0..0 });
        }
        Ok(())
    }

    /// Equal lengths may be repeated (RFC 9110, section 8.6), unequal ones may not.
    fn take_length(&mut self, value: &[u8], place: Range<usize>) -> Result<(), Fault> {
        let repeated = self.length.is_some() || value.contains(&b',');
        for part in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let length = digits(part).ok_or(Fault::Length)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Fault::ConflictingLengths);
            }
            self.length = Some(length);
        }
        self.length_at = Some(if repeated { 0..0 } else { place });
        Ok(())
    }
}

/// Name, and where the value without surrounding blanks stands in the line.
fn split_field(line: &[u8]) -> Result<(&[u8], Range<usize>), Fault> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or(Fault::Field)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty()
        || !name.iter().all(|&byte| is_token_byte(byte))
        || !value.iter().all(|&byte| is_value_byte(byte))
    {
        return Err(Fault::Field);
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    Ok((name, colon + 1 + start..colon + 1 + end))
}

/// A byte of a method or field name (RFC 9110, section 5.6.2).
pub(in crate::load) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A byte of a field value: visible, blank or beyond ASCII.
pub(in crate::load) fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
