//! A keep-alive HTTP client that hides nothing: one connection, one request at a time.

use std::collections::HashMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Client {
    socket: TcpStream,
    received: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Status, media type and body.
    pub(crate) fn told(&self) -> (u16, &str, &str) {
        (self.status, self.media_type(), &self.body)
    }

    pub(crate) fn media_type(&self) -> &str {
        &self.headers["content-type"]
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        Client {
            socket: TcpStream::connect(address).await.unwrap(),
            received: Vec::new(),
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path).await;
        self.receive().await
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str) {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        self.socket.write_all(request.as_bytes()).await.unwrap();
    }

    /// Sends a request with a body, and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.socket.write_all(request.as_bytes()).await.unwrap();
        self.receive().await
    }

    pub(crate) async fn receive(&mut self) -> Answer {
        loop {
            if let Some((answer, length)) = parse(&self.received) {
                self.received.drain(..length);
                return answer;
            }
            let read = self.socket.read_buf(&mut self.received).await.unwrap();
            assert_ne!(read, 0, "the server closed the connection");
        }
    }

    /// Whether so many bytes come before the server closes the connection.
    pub(crate) async fn received(&mut self, bytes: usize) -> bool {
        while self.received.len() < bytes {
            if self.closed().await {
                return false;
            }
        }
        true
    }

    /// All that comes until the server closes the connection.
    pub(crate) async fn rest(mut self) -> Vec<u8> {
        while let Ok(1..) = self.socket.read_buf(&mut self.received).await {}
        self.received
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) async fn closed(&mut self) -> bool {
        matches!(
            self.socket.read_buf(&mut self.received).await,
            Ok(0) | Err(_)
        )
    }
}

/// The first complete answer, and its length in bytes.
fn parse(received: &[u8]) -> Option<(Answer, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(body_start) = head.parse(received).unwrap() else {
        return None;
    };
    let headers: HashMap<_, _> = head
        .headers
        .iter()
        .map(|header| {
            (
                header.name.to_ascii_lowercase(),
                String::from_utf8(header.value.to_vec()).unwrap(),
            )
        })
        .collect();
    let received = &received[body_start..];
    let (body, length) = match headers.get("content-length") {
        Some(length) => sized(received, length.parse().unwrap())?,
        None => chunked(received)?,
    };
    Some((
        Answer {
            status: head.code.unwrap(),
            headers,
            body: String::from_utf8(body).unwrap(),
        },
        body_start + length,
    ))
}

fn sized(received: &[u8], length: usize) -> Option<(Vec<u8>, usize)> {
    Some((received.get(..length)?.to_vec(), length))
}

/// A complete body in chunks, and its length with what is around them.
fn chunked(received: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let size = httparse::parse_chunk_size(&received[at..]).unwrap();
        let httparse::Status::Complete((head, size)) = size else {
            return None;
        };
        let start = at + head;
        let end = start + usize::try_from(size).unwrap();
        body.extend_from_slice(received.get(start..end)?);
        at = end + "\r\n".len();
        received.get(end..at)?;
        if size == 0 {
            return Some((body, at));
        }
    }
}
