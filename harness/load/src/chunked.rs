//! The chunked transfer coding (RFC 9112, section 7.1), decoded in parts and without a copy.

use crate::head::Malformed;

/// Longest accepted line: a chunk's size with its extensions, or a trailer field.
const MAX_LINE: usize = 8 * 1024;

/// Where in the coding the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// In the digits of a size, `seen` counts them.
    Size {
        size: u64,
        seen: usize,
    },
    /// In a chunk's extension, which is skipped.
    Extension {
        size: u64,
        seen: usize,
    },
    /// After the CR of a size line.
    SizeLineFeed {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The CR, then the LF, after a chunk's data.
    DataReturn,
    DataLineFeed,
    /// In a trailer line of which `seen` bytes were read; an empty one ends the body.
    Trailer {
        seen: usize,
    },
    TrailerLineFeed {
        last: bool,
    },
    Done,
}

/// A decoder for one body.
#[derive(Debug, Clone, Copy)]
pub struct Chunked {
    stage: Stage,
}

impl Chunked {
    #[expect(
        clippy::new_without_default,
        reason = "a body begins, it is not a default"
    )]
    pub fn new() -> Chunked {
        Chunked {
            stage: Stage::Size { size: 0, seen: 0 },
        }
    }

    /// Whether the body has ended as it should.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Decodes `input`, hands the body's parts to `body`, and returns how many bytes were used: all of
    /// them, unless the body ended before.
    ///
    /// # Errors
    /// The input does not keep to the coding.
    pub fn decode(
        &mut self,
        input: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < input.len() && self.stage != Stage::Done {
            if let Stage::Data { left } = self.stage {
                let available = (input.len() - at) as u64;
                let take = available.min(left);
                // `take` is at most the input's length, so it fits.
                let end = at + take as usize;
                body(&input[at..end]);
                at = end;
                self.stage = if take == left {
                    Stage::DataReturn
                } else {
                    Stage::Data { left: left - take }
                };
            } else {
                self.stage = self.step(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn step(&self, byte: u8) -> Result<Stage, Malformed> {
        let next = match (self.stage, byte) {
            (Stage::Size { size, seen: 1.. }, b'\r') => Stage::SizeLineFeed { size },
            (
                Stage::Size {
                    size,
                    seen: seen @ 1..,
                },
                b';' | b' ' | b'\t',
            ) => Stage::Extension {
                size,
                seen: seen + 1,
            },
            (Stage::Size { size, seen }, _) => {
                let digit =
                    hexadecimal(byte).ok_or(Malformed("a chunk size that is not a number"))?;
                if seen == 16 {
                    return Err(Malformed("a chunk size above 2^64"));
                }
                Stage::Size {
                    size: size << 4 | digit,
                    seen: seen + 1,
                }
            }
            (Stage::Extension { size, .. }, b'\r') => Stage::SizeLineFeed { size },
            (
                Stage::Extension {
                    seen: MAX_LINE.., ..
                },
                _,
            ) => return Err(Malformed("an endless chunk extension")),
            (Stage::Extension { size, seen }, _) => Stage::Extension {
                size,
                seen: seen + 1,
            },
            (Stage::SizeLineFeed { size: 0 }, b'\n') => Stage::Trailer { seen: 0 },
            (Stage::SizeLineFeed { size }, b'\n') => Stage::Data { left: size },
            (Stage::DataReturn, b'\r') => Stage::DataLineFeed,
            (Stage::DataLineFeed, b'\n') => Stage::Size { size: 0, seen: 0 },
            (Stage::Trailer { seen }, b'\r') => Stage::TrailerLineFeed { last: seen == 0 },
            (Stage::Trailer { seen: MAX_LINE.. }, _) => {
                return Err(Malformed("an endless trailer"));
            }
            (Stage::Trailer { seen }, _) => Stage::Trailer { seen: seen + 1 },
            (Stage::TrailerLineFeed { last: true }, b'\n') => Stage::Done,
            (Stage::TrailerLineFeed { last: false }, b'\n') => Stage::Trailer { seen: 0 },
            _ => return Err(Malformed("a chunk longer or shorter than its size")),
        };
        Ok(next)
    }
}

fn hexadecimal(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(input: &[u8], part: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let (mut decoder, mut body, mut used) = (Chunked::new(), Vec::new(), 0);
        for piece in input.chunks(part) {
            used += decoder.decode(piece, |bytes| body.extend_from_slice(bytes))?;
        }
        Ok((body, used, decoder.is_done()))
    }

    #[test]
    fn extensions_and_trailers_are_skipped_and_the_rest_is_left() {
        let text = b"5;a=b\r\nhello\r\n0A \r\n0123456789\r\n0\r\nX: y\r\n\r\nREST";
        assert_eq!(
            decode(text, text.len()),
            Ok((b"hello0123456789".to_vec(), text.len() - 4, true))
        );
    }

    #[test]
    fn broken_codings_are_refused() {
        for text in [
            "\r\n",
            "g\r\n",
            "5\nhello",
            "5\r\nhelloX",
            "5\r\nhello\rX",
            "11111111111111111\r\n",
            "-1\r\n",
        ] {
            assert!(decode(text.as_bytes(), 1).is_err(), "{text:?}");
        }
        let endless = [b"0\r\n".to_vec(), vec![b'x'; 20_000]].concat();
        assert!(decode(&endless, 100).is_err());
        let endless = [b"5;".to_vec(), vec![b'x'; 20_000]].concat();
        assert!(decode(&endless, 100).is_err());
    }

    proptest! {
        #[test]
        fn any_split_of_any_body_decodes_to_the_same(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..10),
            part in 1usize..40,
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(decode(&text, part), Ok((chunks.concat(), text.len(), true)));
        }

        #[test]
        fn no_input_makes_it_panic_or_use_too_much(input in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(used) = Chunked::new().decode(&input, |_| {}) {
                prop_assert!(used <= input.len());
            }
        }
    }
}
