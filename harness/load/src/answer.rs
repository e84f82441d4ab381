//! Reading one answer from a connection: from received bytes to the facts a judgement rests on.
//!
//! The reader owns the receive buffer. A body that fits is left there in one piece, so that it can be
//! verified after the next request has been sent; a longer, chunked or close-delimited body is
//! verified while it streams, in constant memory.

use std::ops::Range;

use crate::chunked::Chunked;
use crate::expect::{Answered, Expect, ExpectBody, StreamCheck, whole_body_accepted};
use crate::head::{self, Framing, Malformed};
use crate::request::Request;

/// Size of the receive buffer, and with it of the longest accepted head.
const BUFFER_BYTES: usize = 64 * 1024;
/// How much of a streamed body is kept for the report of a failure.
const PREFIX_BYTES: usize = 256;

/// Where in the answer the next byte belongs.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Head,
    /// The body fits the buffer and ends at this offset.
    Whole {
        body: usize,
        end: usize,
    },
    Length {
        left: u64,
    },
    Chunked(Chunked),
    UntilClose,
}

/// A complete answer whose body may not have been verified yet.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reusable: bool,
    /// Which of the request's accepted answers has this status.
    pub(crate) accepted: Option<usize>,
    media_type_accepted: bool,
    /// For HEAD, the length its answer declares.
    declared_length: Option<u64>,
    /// Where the body is, unless it was verified while it streamed.
    whole: Option<Range<usize>>,
}

/// Reads the answers of one connection, one after the other.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    buffer: Box<[u8]>,
    filled: usize,
    stage: Stage,
    status: u16,
    keep_alive: bool,
    accepted: Option<usize>,
    media_type_accepted: bool,
    declared_length: Option<u64>,
    /// Made at the first streamed body of the connection.
    stream: Option<Box<StreamCheck>>,
    prefix: Vec<u8>,
}

impl AnswerReader {
    pub(crate) fn new() -> AnswerReader {
        AnswerReader {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            filled: 0,
            stage: Stage::Head,
            status: 0,
            keep_alive: false,
            accepted: None,
            media_type_accepted: true,
            declared_length: None,
            stream: None,
            prefix: Vec::new(),
        }
    }

    /// Forgets the last answer and everything received. The last whole body stays readable until
    /// something is received.
    pub(crate) fn begin(&mut self) {
        self.filled = 0;
        self.stage = Stage::Head;
    }

    /// Whether any byte of the current answer has come.
    pub(crate) fn is_started(&self) -> bool {
        self.filled > 0 || !matches!(self.stage, Stage::Head)
    }

    /// Where to receive into. Never empty after `begin` or a `received` that asked for more.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Takes in the `count` bytes just put into `spare`. `None` means more are needed.
    pub(crate) fn received(
        &mut self,
        count: usize,
        request: &Request,
        answers_head: bool,
    ) -> Result<Option<Answer>, Malformed> {
        self.filled += count;
        if matches!(self.stage, Stage::Head) && !self.read_head(request, answers_head)? {
            return Ok(None);
        }
        match self.stage {
            Stage::Head => Ok(None),
            Stage::Whole { body, end } => {
                if self.filled > end {
                    return Err(Malformed("more bytes than the answer's length"));
                }
                Ok((self.filled == end).then(|| self.answer(Some(body..end))))
            }
            Stage::Length { .. } | Stage::Chunked(_) | Stage::UntilClose => {
                self.stream_body(body_of(request.chosen(self.accepted)))
            }
        }
    }

    /// The server closed its side: the end of a close-delimited answer, otherwise of the hope for one.
    pub(crate) fn closed(&mut self) -> Option<Answer> {
        matches!(self.stage, Stage::UntilClose).then(|| self.answer(None))
    }

    /// The facts of `answer`. A body that did not stream is verified here, against the accepted answer
    /// that was chosen.
    pub(crate) fn facts(&self, answer: &Answer, expect: Option<&Expect>) -> Answered {
        let expect_body = body_of(expect);
        let (length, body_accepted) = match (&answer.whole, &self.stream) {
            (Some(range), _) => {
                let body = &self.buffer[range.clone()];
                (body.len() as u64, whole_body_accepted(expect_body, body))
            }
            (None, Some(stream)) => (stream.length(), stream.accepted(expect_body)),
            (None, None) => (0, whole_body_accepted(expect_body, &[])),
        };
        Answered {
            status: answer.status,
            media_type_accepted: answer.media_type_accepted,
            length: answer.declared_length.unwrap_or(length),
            // An answer to HEAD has no body to compare.
            body_accepted: body_accepted || answer.declared_length.is_some(),
        }
    }

    /// The beginning of the answer's body, for the report of a failure.
    pub(crate) fn body_prefix(&self, answer: &Answer) -> &[u8] {
        let body = match &answer.whole {
            Some(range) => &self.buffer[range.clone()],
            None => &self.prefix,
        };
        &body[..body.len().min(PREFIX_BYTES)]
    }

    /// What was received of an answer that could not be read.
    pub(crate) fn received_prefix(&self) -> &[u8] {
        &self.buffer[..self.filled.min(PREFIX_BYTES)]
    }

    /// Reads a final head, skipping interim (1xx) ones. False while it is incomplete.
    fn read_head(&mut self, request: &Request, answers_head: bool) -> Result<bool, Malformed> {
        loop {
            let Some(head) = head::parse(&self.buffer[..self.filled], answers_head)? else {
                if self.filled == self.buffer.len() {
                    return Err(Malformed("a head longer than 64 KiB"));
                }
                return Ok(false);
            };
            if head.status == 101 {
                return Err(Malformed(
                    "status 101: the server switched to another protocol",
                ));
            }
            let end = head.bytes;
            if (100..200).contains(&head.status) {
                self.buffer.copy_within(end..self.filled, 0);
                self.filled -= end;
                continue;
            }
            self.status = head.status;
            self.keep_alive = head.keep_alive && head.framing != Framing::UntilClose;
            self.accepted = request.choose(head.status);
            self.media_type_accepted = request
                .chosen(self.accepted)
                .is_some_and(|expect| expect.accepts_media_type(head.content_type));
            self.declared_length = if answers_head {
                Some(head.declared_length.unwrap_or(0))
            } else {
                None
            };
            let framing = head.framing;
            self.enter_body(framing, end);
            return Ok(true);
        }
    }

    fn enter_body(&mut self, framing: Framing, head_bytes: usize) {
        let room = (self.buffer.len() - head_bytes) as u64;
        if let Framing::Length(length) = framing
            && length <= room
        {
            // `length` is below the buffer's size, so it fits.
            let end = head_bytes + length as usize;
            self.stage = Stage::Whole {
                body: head_bytes,
                end,
            };
            return;
        }
        self.stage = match framing {
            Framing::Length(left) => Stage::Length { left },
            Framing::Chunked => Stage::Chunked(Chunked::new()),
            Framing::UntilClose => Stage::UntilClose,
        };
        self.stream
            .get_or_insert_with(|| Box::new(StreamCheck::new()))
            .reset();
        self.prefix.clear();
        self.buffer.copy_within(head_bytes..self.filled, 0);
        self.filled -= head_bytes;
    }

    /// Uses up everything received as part of a streamed body.
    fn stream_body(&mut self, expect: &ExpectBody) -> Result<Option<Answer>, Malformed> {
        let Some(stream) = self.stream.as_deref_mut() else {
            return Err(Malformed("a body without a head"));
        };
        let received = &self.buffer[..self.filled];
        let prefix = &mut self.prefix;
        let mut take = |part: &[u8]| {
            let missing = PREFIX_BYTES.saturating_sub(prefix.len()).min(part.len());
            prefix.extend_from_slice(&part[..missing]);
            stream.update(expect, part);
        };
        let (used, done) = match &mut self.stage {
            Stage::Length { left } => {
                let used = received
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                take(&received[..used]);
                *left -= used as u64;
                (used, *left == 0)
            }
            Stage::Chunked(decoder) => {
                let used = decoder.decode(received, take)?;
                (used, decoder.is_done())
            }
            Stage::UntilClose | Stage::Head | Stage::Whole { .. } => {
                take(received);
                (received.len(), false)
            }
        };
        if used < self.filled {
            return Err(Malformed("more bytes than the answer's length"));
        }
        self.filled = 0;
        Ok(done.then(|| self.answer(None)))
    }

    fn answer(&self, whole: Option<Range<usize>>) -> Answer {
        Answer {
            status: self.status,
            reusable: self.keep_alive,
            accepted: self.accepted,
            media_type_accepted: self.media_type_accepted,
            declared_length: self.declared_length,
            whole,
        }
    }
}

/// What the body is checked against: nothing if the status is wrong already.
fn body_of(expect: Option<&Expect>) -> &ExpectBody {
    expect.map_or(&ExpectBody::Any, |expect| &expect.body)
}

#[cfg(test)]
mod tests;
