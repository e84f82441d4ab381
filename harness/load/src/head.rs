//! The head of an HTTP/1.1 response: status, framing of the body, whether the connection lives on.

use std::mem::MaybeUninit;

/// More headers than this in one response are refused.
const MAX_HEADERS: usize = 100;

/// How the end of a body is known (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Known length; also 0 for HEAD, 204 and 304.
    Length(u64),
    Chunked,
    /// Ends when the server closes.
    UntilClose,
}

/// One response head, borrowed from the receive buffer.
#[derive(Debug)]
pub(crate) struct Head<'b> {
    pub(crate) status: u16,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) content_type: Option<&'b [u8]>,
    /// `Content-Length` as declared, which for HEAD and 304 differs from the framing.
    pub(crate) declared_length: Option<u64>,
    /// Bytes of the head, including the empty line.
    pub(crate) bytes: usize,
}

/// A response that is not HTTP/1.1, in a few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) &'static str);

/// Parses the head at the start of `buffer`; `None` while it is incomplete.
pub(crate) fn parse(buffer: &[u8], answers_head: bool) -> Result<Option<Head<'_>>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, buffer, &mut headers)
        .map_err(|error| Malformed(name(error)))?;
    let httparse::Status::Complete(bytes) = parsed else {
        return Ok(None);
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Malformed("no status line"));
    };
    let fields = Fields::read(response.headers)?;
    let keep_alive = if minor == 1 {
        !fields.close
    } else {
        fields.keep_alive
    };
    Ok(Some(Head {
        status,
        framing: fields.framing(status, answers_head),
        keep_alive,
        content_type: fields.content_type,
        declared_length: fields.length,
        bytes,
    }))
}

/// The few headers that matter.
#[derive(Default)]
struct Fields<'b> {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    content_type: Option<&'b [u8]>,
}

impl<'b> Fields<'b> {
    fn read(headers: &[httparse::Header<'b>]) -> Result<Fields<'b>, Malformed> {
        let mut fields = Fields::default();
        for header in headers {
            // The length is compared first: it rules out nearly every header at once.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.length(header.value)?
                }
                12 if header.name.eq_ignore_ascii_case("content-type") => {
                    fields.content_type = Some(header.value)
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.connection(header.value)
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    fields.coding(header.value)?
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let length = decimal(value).ok_or(Malformed("content-length is not a number"))?;
        if self
            .length
            .replace(length)
            .is_some_and(|earlier| earlier != length)
        {
            return Err(Malformed("two different content-lengths"));
        }
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Malformed> {
        if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Malformed("a transfer-encoding other than chunked"));
        }
        self.chunked = true;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn framing(&self, status: u16, answers_head: bool) -> Framing {
        if answers_head || matches!(status, 100..=199 | 204 | 304) {
            return Framing::Length(0);
        }
        match (self.chunked, self.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilClose,
        }
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

fn name(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "an invalid header name",
        httparse::Error::HeaderValue => "an invalid header value",
        httparse::Error::NewLine => "an invalid line end in the head",
        httparse::Error::Status => "an invalid status line",
        httparse::Error::Token => "an invalid character in the head",
        httparse::Error::TooManyHeaders => "more than 100 headers",
        httparse::Error::Version => "not HTTP/1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(head: &str) -> Result<(Framing, bool), Malformed> {
        let text = format!("{head}\r\n\r\n");
        let head = parse(text.as_bytes(), false)?.expect("complete");
        assert_eq!(head.bytes, text.len());
        Ok((head.framing, head.keep_alive))
    }

    #[test]
    fn the_framing_follows_rfc_9112() {
        let cases = [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 7",
                Framing::Length(7),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\ncontent-length: 7",
                Framing::Length(7),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 7",
                Framing::Chunked,
                true,
            ),
            ("HTTP/1.1 200 OK", Framing::UntilClose, true),
            (
                "HTTP/1.1 204 No Content\r\nContent-Length: 7",
                Framing::Length(0),
                true,
            ),
            (
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 7",
                Framing::Length(0),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close",
                Framing::Length(0),
                false,
            ),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 0",
                Framing::Length(0),
                false,
            ),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive",
                Framing::Length(0),
                true,
            ),
        ];
        for (head, expected, keep_alive) in cases {
            assert_eq!(framing(head), Ok((expected, keep_alive)), "{head}");
        }
    }

    #[test]
    fn the_answer_to_head_has_no_body_but_its_declared_length() {
        let head = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true)
            .unwrap()
            .unwrap();
        assert_eq!(
            (head.framing, head.declared_length),
            (Framing::Length(0), Some(9))
        );
    }

    #[test]
    fn what_cannot_be_framed_is_refused() {
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Length: -1",
            "HTTP/1.1 200 OK\r\nContent-Length: ",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
            "HTTP/2 200",
            "SSH-2.0-OpenSSH_9.2",
        ] {
            assert!(framing(head).is_err(), "{head}");
        }
    }
}
