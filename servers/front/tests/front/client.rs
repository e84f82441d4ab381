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
    let length: usize = headers["content-length"].parse().unwrap();
    let body = received.get(body_start..body_start + length)?;
    let body = String::from_utf8(body.to_vec()).unwrap();
    Some((
        Answer {
            status: head.code.unwrap(),
            headers,
            body,
        },
        body_start + length,
    ))
}
