//! Server-sent events, taken apart as they arrive: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

/// What a stream says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// A line that begins with a colon, without it. It has no meaning but that the server is there.
    Comment(&'a [u8]),
    /// The data of an event, its lines joined by line feeds.
    Event(&'a [u8]),
}

/// A parser of one stream, in any parts.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    /// The line that has begun.
    line: Vec<u8>,
    /// The lines of data so far, a line feed after each.
    data: Vec<u8>,
    /// The last byte was a CR: a LF would belong to it.
    after_return: bool,
}

impl EventParser {
    /// Takes the next part of a stream, and tells `hear` what it says.
    pub(super) fn take(&mut self, part: &[u8], mut hear: impl FnMut(Said<'_>)) {
        for &byte in part {
            let belongs_to_the_return = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                b'\n' if belongs_to_the_return => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line(&mut hear);
                }
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self, hear: &mut impl FnMut(Said<'_>)) {
        let line = self.line.as_slice();
        if line.is_empty() {
            if let Some((_last_line_feed, data)) = self.data.split_last() {
                hear(Said::Event(data));
            }
            self.data.clear();
        } else if let Some(comment) = line.strip_prefix(b":") {
            hear(Said::Comment(comment));
        } else if let Some(value) = value_of_data(line) {
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        }
        self.line.clear();
    }
}

/// The value of a line whose field is `data`, without the one space that may be before it.
fn value_of_data(line: &[u8]) -> Option<&[u8]> {
    let value = match line.strip_prefix(b"data")? {
        [] => &[],
        [b':', b' ', value @ ..] | [b':', value @ ..] => value,
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(parts: &[&[u8]]) -> Vec<String> {
        let mut parser = EventParser::default();
        let mut heard = Vec::new();
        for part in parts {
            parser.take(part, |said| {
                heard.push(match said {
                    Said::Comment(text) => format!(":{}", String::from_utf8_lossy(text)),
                    Said::Event(data) => String::from_utf8_lossy(data).into_owned(),
                });
            });
        }
        heard
    }

    const STREAM: &str = ": listening\n\ndata: one\n\ndata:two\r\ndata:  lines\r\n\r\nevent: x\rid: 7\rdata\r\r:\n\n\
        datax: no\n\ndata: \u{20ac}\n\ndata: unfinished\n";
    const SAYS: [&str; 6] = [": listening", "one", "two\n lines", "", ":", "\u{20ac}"];

    #[test]
    fn comments_events_and_every_end_of_line_are_understood() {
        assert_eq!(heard(&[STREAM.as_bytes()]), SAYS);
    }

    #[test]
    fn a_stream_may_be_split_at_any_byte() {
        let stream = STREAM.as_bytes();
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let parts = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(heard(&parts), SAYS, "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_event_without_data_is_none() {
        assert_eq!(heard(&[b"\n\nevent: x\n\nid: 1\n\n"]), [""; 0]);
    }
}
