//! What one subscriber is answered: a head, then events, each of which must be the next one. Pure.

use load::Chunked;

use super::events::{EventParser, Said};

/// A head longer than this is a mistake.
const LONGEST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;
const MEDIA_TYPE: &[u8] = b"text/event-stream";

/// One subscriber's answer so far.
#[derive(Debug)]
pub(super) struct Stream {
    body: Body,
    parser: EventParser,
    /// The comment that the stream begins with has come.
    pub(super) listening: bool,
    /// Events that have come, each when it had to: also the place of the next one.
    pub(super) received: usize,
}

#[derive(Debug)]
enum Body {
    /// What has come of the head.
    Head(Vec<u8>),
    Chunked(Chunked),
    /// It ends with the connection.
    Plain,
}

/// What a server did wrong with a stream, in words that follow "a subscriber:".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            body: Body::Head(Vec::new()),
            parser: EventParser::default(),
            listening: false,
            received: 0,
        }
    }

    /// Takes the next part of the answer, of which every event must be the next of `sent`.
    ///
    /// # Errors
    /// One is missing, comes twice or is not as it was sent, or this is no stream of events.
    pub(super) fn take(&mut self, part: &[u8], sent: &[String]) -> Result<(), Fault> {
        let Body::Head(head) = &mut self.body else {
            return self.take_body(part, sent);
        };
        head.extend_from_slice(part);
        let head = std::mem::take(head);
        match parse_head(&head)? {
            Some((body, length)) => {
                self.body = body;
                self.take_body(&head[length..], sent)
            }
            None if head.len() > LONGEST_HEAD => Err(Fault("a head without an end".to_owned())),
            None => {
                self.body = Body::Head(head);
                Ok(())
            }
        }
    }

    /// What it means that the connection has ended.
    pub(super) fn ended(&self) -> Fault {
        match self.body {
            Body::Head(_) => Fault("the connection ended without an answer".to_owned()),
            Body::Chunked(_) | Body::Plain => {
                Fault(format!("the stream ended after {} events", self.received))
            }
        }
    }

    fn take_body(&mut self, part: &[u8], sent: &[String]) -> Result<(), Fault> {
        let Stream {
            body,
            parser,
            listening,
            received,
        } = self;
        let mut fault = None;
        let mut hear = |said: Said<'_>| match said {
            Said::Comment(_) => *listening = true,
            Said::Event(data) if fault.is_none() => match wrong(data, *received, sent) {
                None => *received += 1,
                wrong => fault = wrong,
            },
            Said::Event(_) => {}
        };
        match body {
            Body::Chunked(chunked) => {
                let decoded = chunked.decode(part, |data| parser.take(data, &mut hear));
                decoded.map_err(|malformed| Fault(malformed.to_string()))?;
            }
            Body::Head(_) | Body::Plain => parser.take(part, &mut hear),
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

/// Why this is not the event after `received` others, if it is not.
fn wrong(data: &[u8], received: usize, sent: &[String]) -> Option<Fault> {
    if sent.get(received).is_some_and(|due| due.as_bytes() == data) {
        return None;
    }
    let place = |of: usize| of + 1;
    let told = match sent.iter().position(|event| event.as_bytes() == data) {
        Some(earlier) if earlier < received => format!("event {} came twice", place(earlier)),
        Some(later) => format!(
            "event {} is missing: {} came after {received}",
            place(received),
            place(later)
        ),
        None => format!(
            "after {received} events there came one that was never sent: {}",
            String::from_utf8_lossy(&data[..data.len().min(60)])
        ),
    };
    Some(Fault(told))
}

/// How the body comes, and the length of the head; nothing while it is incomplete.
fn parse_head(received: &[u8]) -> Result<Option<(Body, usize)>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let parsed = head.parse(received);
    let parsed = parsed.map_err(|error| Fault(format!("not an answer of HTTP: {error}")))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let value = |name: &str| {
        let mut headers = head.headers.iter();
        headers
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    let status = head.code.unwrap_or_default();
    if status != 200 {
        return Err(Fault(format!("status {status}")));
    }
    let media_type = value("content-type").unwrap_or_default();
    if !media_type.starts_with(MEDIA_TYPE) {
        let told = String::from_utf8_lossy(media_type);
        return Err(Fault(format!("media type `{told}`, not text/event-stream")));
    }
    let chunked = value("transfer-encoding").is_some_and(|coding| coding == b"chunked");
    let body = if chunked {
        Body::Chunked(Chunked::new())
    } else {
        Body::Plain
    };
    Ok(Some((body, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    fn sent() -> Vec<String> {
        ["one", "two\nlines", "three"].map(str::to_owned).to_vec()
    }

    /// What becomes of an answer that comes byte by byte.
    fn bytewise(answer: &str) -> (Stream, Result<(), Fault>) {
        let mut stream = Stream::new();
        for byte in answer.as_bytes() {
            if let Err(fault) = stream.take(&[*byte], &sent()) {
                return (stream, Err(fault));
            }
        }
        (stream, Ok(()))
    }

    fn fault(body: &str) -> String {
        let Err(Fault(told)) = bytewise(&format!("{HEAD}{body}")).1 else {
            panic!("no fault in {body:?}");
        };
        told
    }

    #[test]
    fn all_events_in_order_are_right() {
        let whole = ": listening\n\ndata: one\n\ndata: two\ndata: lines\n\n:\n\ndata: three\n\n";
        let (stream, judged) = bytewise(&format!("{HEAD}{whole}"));
        assert_eq!(judged, Ok(()));
        assert!(stream.listening);
        assert_eq!(stream.received, 3);
        let chunks = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
            5\r\ndata:\r\n6\r\n one\n\n\r\n";
        let (stream, judged) = bytewise(chunks);
        assert_eq!((judged, stream.received), (Ok(()), 1));
        assert_eq!(
            stream.ended(),
            Fault("the stream ended after 1 events".to_owned())
        );
    }

    #[test]
    fn what_is_lost_doubled_out_of_order_or_changed_is_told() {
        assert_eq!(
            fault("data: one\n\ndata: three\n\n"),
            "event 2 is missing: 3 came after 1"
        );
        assert_eq!(fault("data: one\n\ndata: one\n\n"), "event 1 came twice");
        assert_eq!(
            fault("data: two\ndata: lines\n\n"),
            "event 1 is missing: 2 came after 0"
        );
        assert_eq!(
            fault("data: one\n\ndata: twO\n\n"),
            "after 1 events there came one that was never sent: twO"
        );
    }

    #[test]
    fn another_answer_is_no_stream_of_events() {
        let refused = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
        assert_eq!(bytewise(refused).1, Err(Fault("status 503".to_owned())));
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n";
        let told = "media type `text/html`, not text/event-stream".to_owned();
        assert_eq!(bytewise(page).1, Err(Fault(told)));
        assert!(bytewise("SSH-2.0-x\r\n").1.is_err());
        assert!(
            bytewise(&"HTTP/1.1 200 OK\r\nx: y\r\n".repeat(2000))
                .1
                .is_err()
        );
    }
}
