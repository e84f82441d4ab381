//! What is sent: requests, encoded once into bytes, and the order they are sent in.

use crate::LoadError;
use crate::expect::Expect;

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
    /// What is checked on every answer.
    pub expect: Expect,
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
    /// be HTTP (a path without `/`, a line break in a header, ...).
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
    /// The answer to HEAD has no body, whatever its headers say.
    pub(crate) is_head: bool,
}

pub(crate) fn encode(request: &Request, host: &str) -> Encoded {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let has = |name: &str| {
        request
            .headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    if !has("host") {
        text.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in &request.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let always_has_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if (always_has_body || !request.body.is_empty()) && !has("content-length") {
        text.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&request.body);
    Encoded {
        bytes: bytes.into_boxed_slice(),
        is_head: request.method == "HEAD",
    }
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
        if name.eq_ignore_ascii_case("content-length")
            && value.trim() != request.body.len().to_string()
        {
            let message = format!(
                "Content-Length {value} does not fit a body of {} bytes",
                request.body.len()
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
        let encoded = encode(&request, "localhost:80");
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
