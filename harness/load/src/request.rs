//! What is sent: requests, encoded once into bytes, and the order they are sent in.

use std::ops::Range;

use crate::LoadError;
use crate::expect::Expect;
use crate::ledger;
use crate::unique::{self, MARKER, Unique, write_number};

/// One HTTP/1.1 request and what its answer must be.
#[derive(Debug, Clone)]
pub struct Request {
    /// For example `GET`.
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// Extra headers. `Host` and `Content-Length` are added unless they are here.
    pub headers: Vec<(String, String)>,
    /// Sent as it is, with its length.
    pub body: Vec<u8>,
    /// What an answer must be.
    pub expect: Expect,
    /// Other answers that are as good. An answer is judged by the first accepted one, `expect` before
    /// these, that has its status.
    pub or: Vec<Expect>,
    /// Makes every send differ.
    pub unique: Option<Unique>,
}

impl Request {
    /// A GET of `path` that accepts any answer with status 200.
    pub fn get(path: impl Into<String>) -> Request {
        Request {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            expect: Expect::status(200),
            or: Vec::new(),
            unique: None,
        }
    }

    /// The accepted answers: `expect`, then `or`.
    pub fn accepted(&self) -> impl Iterator<Item = &Expect> {
        std::iter::once(&self.expect).chain(&self.or)
    }

    /// The number of the accepted answer that one with this status is judged by.
    pub(crate) fn choose(&self, status: u16) -> Option<usize> {
        self.accepted()
            .position(|expect| expect.statuses.contains(&status))
    }

    /// The accepted answer with this number.
    pub(crate) fn chosen(&self, number: Option<usize>) -> Option<&Expect> {
        match number? {
            0 => Some(&self.expect),
            number => self.or.get(number - 1),
        }
    }
}

/// The distinct requests of a run and the sequence they are sent in.
#[derive(Debug)]
pub struct RequestTable {
    pub(crate) requests: Vec<Request>,
    pub(crate) order: Vec<u32>,
}

impl RequestTable {
    /// `order` holds indices into `requests`; the run's n-th request is `order[n % order.len()]`.
    ///
    /// # Errors
    /// `LoadError::Invalid` for an empty table, an index out of range, or a request that would not
    /// be HTTP (a path without `/`, a line break in a header, ...) or has no place for its number.
    pub fn new(requests: Vec<Request>, order: Vec<u32>) -> Result<RequestTable, LoadError> {
        if requests.is_empty() || order.is_empty() {
            return Err(invalid(
                "a request table needs at least one request and one index",
            ));
        }
        if let Some(index) = order
            .iter()
            .find(|&&index| index as usize >= requests.len())
        {
            let message = format!(
                "request index {index} in the order, but there are {} requests",
                requests.len()
            );
            return Err(LoadError::Invalid(message));
        }
        requests.iter().try_for_each(validate)?;
        if u32::try_from(requests.iter().map(ledger::width).sum::<usize>()).is_err() {
            return Err(invalid(
                "more than 2^32 requests and accepted answers in one table",
            ));
        }
        Ok(RequestTable { requests, order })
    }

    /// A table that sends its requests in turn.
    ///
    /// # Errors
    /// As `new`.
    pub fn in_turn(requests: Vec<Request>) -> Result<RequestTable, LoadError> {
        let count = u32::try_from(requests.len())
            .map_err(|_| invalid("more than 2^32 requests in one table"))?;
        RequestTable::new(requests, (0..count).collect())
    }

    /// The distinct requests.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The order they are sent in.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

/// A request as it goes over the wire.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Box<[u8]>,
    /// Where the number goes, if it has one. Boxed to keep the usual case small.
    number: Option<Box<Range<usize>>>,
    /// Its place in a `Ledger`.
    pub(crate) row: u32,
    /// The answer to HEAD has no body, whatever its headers say.
    pub(crate) is_head: bool,
}

impl Encoded {
    pub(crate) fn is_numbered(&self) -> bool {
        self.number.is_some()
    }

    /// The bytes to send; those of a numbered request are put together in `scratch`.
    pub(crate) fn with_number<'b>(&'b self, number: u64, scratch: &'b mut Vec<u8>) -> &'b [u8] {
        let Some(field) = &self.number else {
            return &self.bytes;
        };
        scratch.clear();
        scratch.extend_from_slice(&self.bytes);
        write_number(&mut scratch[Range::clone(field)], number);
        scratch
    }
}

/// Every request of the table.
pub(crate) fn encode_all(table: &RequestTable, host: &str) -> Vec<Encoded> {
    let mut row = 0;
    let encoded = table.requests.iter().map(|request| {
        let encoded = encode(request, host, row);
        // The table is small enough for the sum of all.
        row += ledger::width(request) as u32;
        encoded
    });
    encoded.collect()
}

fn encode(request: &Request, host: &str, row: u32) -> Encoded {
    let (path, in_path) = numbered(request.path.as_bytes(), request.unique);
    let (body, in_body) = numbered(&request.body, request.unique);
    let has = |name: &str| {
        request
            .headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let mut bytes = format!("{} ", request.method).into_bytes();
    let path_start = bytes.len();
    bytes.extend_from_slice(&path);
    let mut head = " HTTP/1.1\r\n".to_owned();
    if !has("host") {
        head.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let always_has_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if (always_has_body || !body.is_empty()) && !has("content-length") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    bytes.extend_from_slice(head.as_bytes());
    let body_start = bytes.len();
    bytes.extend_from_slice(&body);
    let moved = |field: Range<usize>, by: usize| Box::new(field.start + by..field.end + by);
    Encoded {
        bytes: bytes.into_boxed_slice(),
        number: in_path
            .map(|field| moved(field, path_start))
            .or_else(|| in_body.map(|field| moved(field, body_start))),
        row,
        is_head: request.method == "HEAD",
    }
}

/// The text with room for the number instead of the marker, and where that is.
fn numbered(text: &[u8], unique: Option<Unique>) -> (Vec<u8>, Option<Range<usize>>) {
    let mut text = text.to_vec();
    let Some(unique) = unique else {
        return (text, None);
    };
    let marker = text
        .windows(MARKER.len())
        .position(|window| window == MARKER.as_bytes());
    let field = marker.map(|start| {
        text.splice(start..start + MARKER.len(), unique.placeholder().bytes());
        start..start + usize::from(unique.digits)
    });
    (text, field)
}

fn validate(request: &Request) -> Result<(), LoadError> {
    if !is_token(&request.method) || request.method == "CONNECT" {
        return Err(LoadError::Invalid(format!(
            "not a method that can be sent: {:?}",
            request.method
        )));
    }
    let in_target = |byte: u8| byte > b' ' && byte != 0x7f;
    if !request.path.starts_with('/') || !request.path.bytes().all(in_target) {
        let message = format!(
            "the path {:?} must start with / and hold no space or control character",
            request.path
        );
        return Err(LoadError::Invalid(message));
    }
    unique::validate(request)?;
    let (body, _) = numbered(&request.body, request.unique);
    for (name, value) in &request.headers {
        let in_value = |byte: u8| (byte >= b' ' && byte != 0x7f) || byte == b'\t';
        if !is_token(name) || !value.bytes().all(in_value) {
            return Err(LoadError::Invalid(format!(
                "not a header: {name:?}: {value:?}"
            )));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(invalid(
                "Transfer-Encoding cannot be set: bodies are sent with their Content-Length",
            ));
        }
        if name.eq_ignore_ascii_case("content-length") && value.trim() != body.len().to_string() {
            let message = format!(
                "Content-Length {value} does not fit a body of {} bytes",
                body.len()
            );
            return Err(LoadError::Invalid(message));
        }
    }
    Ok(())
}

/// The characters RFC 9110, section 5.6.2 allows in names.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn invalid(message: &str) -> LoadError {
    LoadError::Invalid(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_encoded_with_host_and_length() {
        let request = Request {
            method: "POST".into(),
            headers: vec![("X-A".into(), "1".into())],
            body: b"hi".to_vec(),
            ..Request::get("/a?b=1")
        };
        let encoded = encode(&request, "localhost:80", 0);
        assert_eq!(
            &*encoded.bytes,
            b"POST /a?b=1 HTTP/1.1\r\nHost: localhost:80\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nhi"
        );
    }

    #[test]
    fn what_is_not_http_is_refused() {
        let header = |name: &str, value: &str| Request {
            headers: vec![(name.into(), value.into())],
            ..Request::get("/")
        };
        let bad = [
            Request::get("no-slash"),
            Request::get("/a b"),
            Request::get("/a\r\nX: y"),
            Request {
                method: "GE T".into(),
                ..Request::get("/")
            },
            header("a b", "c"),
            header("a", "b\r\nc: d"),
            header("Content-Length", "7"),
            header("transfer-encoding", "chunked"),
        ];
        for request in bad {
            assert!(
                RequestTable::in_turn(vec![request.clone()]).is_err(),
                "{request:?}"
            );
        }
        assert!(RequestTable::new(vec![Request::get("/")], vec![1]).is_err());
        assert!(RequestTable::in_turn(vec![]).is_err());
    }
}
