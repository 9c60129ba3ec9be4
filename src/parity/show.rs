//! Bytes as one line a reader can compare: control characters escaped, long text clipped, the first difference named.
//! Pure.

use std::fmt::Write as _;

/// Bytes of a request or reply shown before it is clipped.
const SHOWN_BYTES: usize = 160;
/// Lines of a request or reply shown as sent.
const SHOWN_LINES: usize = 16;
/// Bytes shown on each side of the first difference.
const AROUND_BYTES: usize = 24;

/// One line: UTF-8 as it is, everything that would break the line or hide in it escaped.
pub(super) fn line(bytes: &[u8]) -> String {
    let text = escape(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    if bytes.len() > SHOWN_BYTES { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

/// `at byte 17 …"age":36… against …"age":37…`: where two bodies part, with a little of both.
pub(super) fn difference(expected: &[u8], got: &[u8]) -> String {
    let common = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let window = |bytes: &[u8]| {
        let start = common.saturating_sub(AROUND_BYTES);
        let end = bytes.len().min(common + AROUND_BYTES);
        let (before, after) = (if start > 0 { "…" } else { "" }, if end < bytes.len() { "…" } else { "" });
        format!("{before}{}{after}", escape(&bytes[start.min(end)..end]))
    };
    format!("first difference at byte {common}: expected {}, got {}", window(expected), window(got))
}

/// Several lines as they were sent, for a reader: line ends as such, each line as [`line()`], at most [`SHOWN_LINES`].
pub(super) fn lines(bytes: &[u8]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (number, piece) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if number == SHOWN_LINES {
            lines.push(format!("… ({} bytes)", bytes.len()));
            break;
        }
        let piece = piece.strip_suffix(b"\r\n").or_else(|| piece.strip_suffix(b"\n")).unwrap_or(piece);
        lines.push(line(piece));
    }
    lines.join("\n")
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\r' => text.push_str("\\r"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                hidden if hidden.is_control() || hidden == '\u{feff}' => {
                    let _ = write!(text, "\\u{{{:x}}}", u32::from(hidden));
                }
                shown => text.push(shown),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_and_hides_nothing() {
        assert_eq!(line("é\r\n\0\u{feff}".as_bytes()), "é\\r\\n\\u{0}\\u{feff}");
        assert_eq!(line(b"a\xffb"), "a\\xffb");
        assert!(line(&[b'x'; 300]).ends_with("x… (300 bytes)"));
    }

    #[test]
    fn lines_end_where_they_ended_and_hide_nothing() {
        assert_eq!(lines(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n{\0}"), "GET / HTTP/1.1\nhost: a\n\n{\\u{0}}");
        assert_eq!(lines(b""), "");
        assert!(lines(&b"a\n".repeat(40)).ends_with("a\n… (80 bytes)"));
    }

    #[test]
    fn the_first_difference_is_named_with_its_surroundings() {
        assert_eq!(
            difference(b"{\"a\":1}", b"{\"a\":2}"),
            "first difference at byte 5: expected {\"a\":1}, got {\"a\":2}"
        );
        assert_eq!(difference(b"abc", b""), "first difference at byte 0: expected abc, got ");
        let (long, longer) = ([b'x'; 100], [b'x'; 101]);
        let text = difference(&long, &longer);
        assert!(text.contains("byte 100") && text.contains("expected …xxx") && !text.contains("xxx…"), "{text}");
    }
}
