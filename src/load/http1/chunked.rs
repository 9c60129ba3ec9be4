//! The chunked coding, one byte or many at a time.

use super::head::{LineScan, check_trailers};
use super::{Fault, gather, keep};

/// Longest line with a chunk's size. Extensions are legal and ignored; nobody needs long ones.
const SIZE_LINE_LIMIT_BYTES: u16 = 4096;

#[derive(Debug, Default)]
pub(super) struct Chunked {
    step: Step,
    /// Bytes left of the chunk, or its size as far as it is read.
    left: u64,
    /// Bytes of the current size line, and how many of them were digits.
    line: u16,
    digits: u8,
}

#[derive(Debug, Default, Clone, Copy)]
enum Step {
    #[default]
    Size,
    Extension,
    SizeFeed,
    Data,
    DataReturn,
    DataFeed,
    Trailers,
}

impl Chunked {
    /// Takes from `rest`; true once the last chunk and its trailers are read.
    pub(super) fn feed(
        &mut self,
        rest: &mut &[u8],
        carry: &mut Vec<u8>,
        scan: &mut LineScan,
        mut body: Option<&mut Vec<u8>>,
    ) -> Result<bool, Fault> {
        while let Some((&byte, after)) = rest.split_first() {
            match self.step {
                Step::Data => {
                    let taken = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                    if let Some(body) = body.as_deref_mut() {
                        keep(body, &rest[..taken]);
                    }
                    self.left -= taken as u64;
                    *rest = &rest[taken..];
                    if self.left == 0 {
                        self.step = Step::DataReturn;
                    }
                }
                Step::Trailers => {
                    if gather(carry, scan, rest)?.is_none() {
                        return Ok(false);
                    }
                    check_trailers(carry)?;
                    carry.clear();
                    return Ok(true);
                }
                _ => {
                    self.step = self.line_byte(byte)?;
                    *rest = after;
                }
            }
        }
        Ok(false)
    }

    /// One byte outside data and trailers.
    fn line_byte(&mut self, byte: u8) -> Result<Step, Fault> {
        self.line += 1;
        if self.line > SIZE_LINE_LIMIT_BYTES {
            return Err(Fault::Chunk);
        }
        match (self.step, byte) {
            (Step::Size | Step::Extension, b'\r') if self.digits > 0 => Ok(Step::SizeFeed),
            (Step::Size, b';' | b' ' | b'\t') if self.digits > 0 => Ok(Step::Extension),
            (Step::Size, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Chunk)?;
                self.left = self.left.checked_mul(16).ok_or(Fault::Chunk)? + u64::from(digit);
                self.digits = self.digits.saturating_add(1);
                Ok(Step::Size)
            }
            (Step::Extension, b'\t' | b' '..=b'~' | 0x80..) => Ok(Step::Extension),
            (Step::SizeFeed, b'\n') => Ok(if self.left == 0 { Step::Trailers } else { Step::Data }),
            (Step::DataReturn, b'\r') => Ok(Step::DataFeed),
            (Step::DataFeed, b'\n') => {
                *self = Self::default();
                Ok(Step::Size)
            }
            _ => Err(Fault::Chunk),
        }
    }
}
