//! A client that hides nothing: one connection, and what the server does with it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::header::{CONNECTION, CONTENT_LENGTH};

use super::PATIENCE;

pub(super) struct Client {
    pub(super) socket: TcpStream,
    received: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(given, _)| given.eq_ignore_ascii_case(name.as_str()))
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn closes(&self) -> bool {
        self.header(CONNECTION) == Some("close")
    }
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            socket,
            received: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn ask(&mut self, path: &str) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n"));
    }

    pub(super) fn get(&mut self, path: &str) -> Answer {
        self.ask(path);
        self.receive()
    }

    pub(super) fn receive(&mut self) -> Answer {
        self.try_receive().expect("the connection was closed")
    }

    /// None when the server closed the connection instead.
    pub(super) fn try_receive(&mut self) -> Option<Answer> {
        loop {
            if let Some((answer, length)) = parse(&self.received) {
                self.received.drain(..length);
                return Some(answer);
            }
            let mut chunk = [0; 16 * 1024];
            match self.socket.read(&mut chunk) {
                Ok(0) => return None,
                Ok(read) => self.received.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(super) fn is_closed(&mut self) -> bool {
        self.try_receive().is_none()
    }

    pub(super) fn is_silent_for(&mut self, duration: Duration) -> bool {
        self.socket.set_read_timeout(Some(duration)).unwrap();
        let silent = matches!(self.socket.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }
}

/// The first complete answer, which has a length or is chunked, and its length in bytes.
fn parse(received: &[u8]) -> Option<(Answer, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(received).unwrap() else {
        return None;
    };
    let mut answer = Answer {
        status: head.code.unwrap(),
        headers: head
            .headers
            .iter()
            .map(|header| {
                let value = String::from_utf8(header.value.to_vec()).unwrap();
                (header.name.to_owned(), value)
            })
            .collect(),
        body: String::new(),
    };
    if answer.status == 100 {
        return Some((answer, start));
    }
    let Some(length) = answer.header(CONTENT_LENGTH) else {
        let (body, end) = unchunk(received, start)?;
        answer.body = body;
        return Some((answer, end));
    };
    let end = start + length.parse::<usize>().unwrap();
    answer.body = String::from_utf8(received.get(start..end)?.to_vec()).unwrap();
    Some((answer, end))
}

fn unchunk(received: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut body = Vec::new();
    loop {
        let (line, size) = match httparse::parse_chunk_size(&received[at..]).unwrap() {
            httparse::Status::Complete((line, size)) => (line, usize::try_from(size).unwrap()),
            httparse::Status::Partial => return None,
        };
        let chunk = received.get(at + line..at + line + size + 2)?;
        body.extend_from_slice(&chunk[..size]);
        at += line + size + 2;
        if size == 0 {
            return Some((String::from_utf8(body).unwrap(), at));
        }
    }
}
