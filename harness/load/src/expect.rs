//! What an answer must be, and the judgement of one that came.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// One accepted answer to a request: what is checked on an answer with one of its statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// Its statuses. An answer with none of those that its request accepts counts as `shed` (503) or
    /// `http_error`.
    pub statuses: Vec<u16>,
    /// The `Content-Type`. Without parameters here, parameters of the answer are ignored.
    pub media_type: Option<String>,
    /// Length of the decoded body in bytes. For HEAD: the length the answer declares.
    pub length: Option<u64>,
    /// The body, after chunked decoding.
    pub body: ExpectBody,
}

/// How a body is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectBody {
    /// Any body will do.
    Any,
    /// The body's 64-bit XXH3 hash, see [`body_hash`].
    Hash(u64),
    /// Exactly these bytes.
    Exact(Vec<u8>),
}

/// The hash that `ExpectBody::Hash` holds.
pub fn body_hash(body: &[u8]) -> u64 {
    xxh3_64(body)
}

impl Expect {
    /// Any body of any type with this status.
    pub fn status(status: u16) -> Expect {
        Expect {
            statuses: vec![status],
            media_type: None,
            length: None,
            body: ExpectBody::Any,
        }
    }

    /// Status 200 and exactly this body.
    pub fn exact(body: impl Into<Vec<u8>>) -> Expect {
        Expect {
            body: ExpectBody::Exact(body.into()),
            ..Expect::status(200)
        }
    }

    pub(crate) fn accepts_media_type(&self, got: Option<&[u8]>) -> bool {
        let Some(wanted) = self.media_type.as_deref() else {
            return true;
        };
        let Some(mut got) = got else { return false };
        if !wanted.contains(';') {
            got = got.split(|&byte| byte == b';').next().unwrap_or(got);
        }
        got.trim_ascii()
            .eq_ignore_ascii_case(wanted.trim().as_bytes())
    }
}

/// What became of one answered request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Status, media type, length and body are as expected.
    Correct,
    /// The status is right, the `Content-Type` is not.
    WrongMediaType,
    /// The status is right, the body's length is not.
    WrongLength,
    /// Status and length are right, the bytes are not.
    WrongBody,
    /// 503 where it was not expected: the server refused for lack of room.
    Shed,
    /// Any other unexpected status.
    HttpError(u16),
}

/// The facts of an answer that its judgement rests on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) media_type_accepted: bool,
    pub(crate) length: u64,
    pub(crate) body_accepted: bool,
}

/// `expect` is the accepted answer with the answer's status, if there is one.
pub(crate) fn judge(expect: Option<&Expect>, answered: Answered) -> Judgement {
    let Some(expect) = expect else {
        return match answered.status {
            503 => Judgement::Shed,
            status => Judgement::HttpError(status),
        };
    };
    if !answered.media_type_accepted {
        return Judgement::WrongMediaType;
    }
    if expect
        .length
        .is_some_and(|length| length != answered.length)
    {
        return Judgement::WrongLength;
    }
    if answered.body_accepted {
        Judgement::Correct
    } else {
        Judgement::WrongBody
    }
}

/// Checks a body that arrives in parts, in constant memory.
pub(crate) struct StreamCheck {
    hasher: Xxh3,
    seen: u64,
    equal: bool,
}

impl std::fmt::Debug for StreamCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The hasher's state tells a reader nothing.
        let StreamCheck {
            hasher: _,
            seen,
            equal,
        } = self;
        formatter
            .debug_struct("StreamCheck")
            .field("seen", seen)
            .field("equal", equal)
            .finish_non_exhaustive()
    }
}

impl StreamCheck {
    pub(crate) fn new() -> StreamCheck {
        StreamCheck {
            hasher: Xxh3::new(),
            seen: 0,
            equal: true,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.hasher.reset();
        self.seen = 0;
        self.equal = true;
    }

    pub(crate) fn update(&mut self, expect: &ExpectBody, part: &[u8]) {
        match expect {
            ExpectBody::Any => {}
            ExpectBody::Hash(_) => self.hasher.update(part),
            ExpectBody::Exact(bytes) => {
                let rest = usize::try_from(self.seen)
                    .ok()
                    .and_then(|seen| bytes.get(seen..));
                self.equal &= rest.is_some_and(|rest| rest.starts_with(part));
            }
        }
        self.seen += part.len() as u64;
    }

    pub(crate) fn length(&self) -> u64 {
        self.seen
    }

    pub(crate) fn accepted(&self, expect: &ExpectBody) -> bool {
        match expect {
            ExpectBody::Any => true,
            ExpectBody::Hash(hash) => self.hasher.digest() == *hash,
            ExpectBody::Exact(bytes) => self.equal && self.seen == bytes.len() as u64,
        }
    }
}

/// Checks a body that is there in one piece.
pub(crate) fn whole_body_accepted(expect: &ExpectBody, body: &[u8]) -> bool {
    match expect {
        ExpectBody::Any => true,
        ExpectBody::Hash(hash) => xxh3_64(body) == *hash,
        ExpectBody::Exact(bytes) => body == bytes.as_slice(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_without_parameters_ignores_those_of_the_answer() {
        let expect = |media_type: &str| Expect {
            media_type: Some(media_type.into()),
            ..Expect::status(200)
        };
        assert!(
            expect("application/json").accepts_media_type(Some(b"Application/JSON; charset=utf-8"))
        );
        assert!(
            !expect("application/json; charset=utf-8")
                .accepts_media_type(Some(b"application/json"))
        );
        assert!(!expect("application/json").accepts_media_type(None));
        assert!(!expect("application/json").accepts_media_type(Some(b"text/html")));
    }

    #[test]
    fn a_body_in_parts_is_judged_like_a_whole_one() {
        let body = b"0123456789";
        for expect in [
            ExpectBody::Any,
            ExpectBody::Hash(xxh3_64(body)),
            ExpectBody::Exact(body.to_vec()),
        ] {
            let any = expect == ExpectBody::Any;
            for (sent, right) in [
                (&b"0123456789"[..], true),
                (b"0123456780", any),
                (b"01234567890", any),
                (b"01", any),
            ] {
                let mut check = StreamCheck::new();
                sent.chunks(3).for_each(|part| check.update(&expect, part));
                assert_eq!(check.accepted(&expect), right, "{expect:?} {sent:?}");
                assert_eq!(
                    whole_body_accepted(&expect, sent),
                    right,
                    "{expect:?} {sent:?}"
                );
            }
        }
    }
}
