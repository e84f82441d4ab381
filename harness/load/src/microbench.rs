//! The engine's own work for one request, piece by piece, for `cargo bench -p load`. Not part of the
//! interface: it exists because the pieces are private.

use std::hint::black_box;

use crate::answer::AnswerReader;
use crate::clock;
use crate::expect::{Expect, ExpectBody, body_hash, judge};
use crate::measure::{Exchange, Interval};
use crate::request::Request;
use crate::schedule::{Arrivals, Stripe};
use crate::timetable::{Cursor, Timetable};
use crate::{LoadError, head};

/// A piece of work, repeated as often as it is told.
pub type Case = (&'static str, Box<dyn FnMut(u64)>);

/// What a typical server sends before 1 KiB of JSON.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1024\r\n\
    server: example\r\ndate: Mon, 30 Nov 2026 12:00:00 GMT\r\nconnection: keep-alive\r\n\r\n";

/// All cases.
///
/// # Errors
/// None that the cases' fixed figures could cause.
pub fn cases() -> Result<Vec<Case>, LoadError> {
    let body = vec![b'x'; 1024];
    let expect = |body: ExpectBody| Expect {
        media_type: Some("application/json".to_owned()),
        body,
        ..Expect::status(200)
    };
    Ok(vec![
        ("clock", repeat(clock::now)),
        (
            "parse a head of 5 headers",
            repeat(|| head::parse(HEAD.as_bytes(), false).is_ok()),
        ),
        (
            "read an answer of 1 KiB, unverified",
            answer(&body, Expect::status(200)),
        ),
        (
            "read an answer of 1 KiB, hashed",
            answer(&body, expect(ExpectBody::Hash(body_hash(&body)))),
        ),
        (
            "read an answer of 1 KiB, compared",
            answer(&body, expect(ExpectBody::Exact(body.clone()))),
        ),
        ("record a request in 5 histograms", record()?),
        ("next instant, uniform", schedule(Arrivals::Uniform)),
        (
            "next instant, Poisson",
            schedule(Arrivals::Poisson { seed: 1 }),
        ),
    ])
}

fn repeat<T>(work: impl Fn() -> T + 'static) -> Box<dyn FnMut(u64)> {
    Box::new(move |times| {
        for _ in 0..times {
            black_box(work());
        }
    })
}

fn answer(body: &[u8], expect: Expect) -> Box<dyn FnMut(u64)> {
    let wire = [HEAD.as_bytes(), body].concat();
    let request = Request {
        expect,
        ..Request::get("/")
    };
    let mut reader = AnswerReader::new();
    Box::new(move |times| {
        for _ in 0..times {
            reader.begin();
            reader.spare()[..wire.len()].copy_from_slice(black_box(&wire));
            if let Ok(Some(answer)) = reader.received(wire.len(), &request, false) {
                let expect = request.chosen(answer.accepted);
                black_box(judge(expect, reader.facts(&answer, expect)));
            }
        }
    })
}

fn record() -> Result<Box<dyn FnMut(u64)>, LoadError> {
    let mut interval = Interval::new()?;
    Ok(Box::new(move |times| {
        for number in 0..times {
            let spread = number % 1000 * 100;
            let exchange = Exchange {
                request: 0,
                intended: 1000,
                free: 1000,
                sent: 1000 + spread,
                first_byte: 50_000 + 2 * spread,
            };
            interval.record_sent(black_box(&exchange));
            interval.record_correct(&exchange, 60_000 + 3 * spread);
        }
    }))
}

fn schedule(arrivals: Arrivals) -> Box<dyn FnMut(u64)> {
    let timetable = Timetable::new(10_000.0, arrivals, 0, clock::SECOND);
    let start = Cursor::new(
        timetable,
        Stripe {
            first: 0,
            stride: 1,
        },
    );
    let mut cursor = start;
    Box::new(move |times| {
        for _ in 0..times {
            if black_box(cursor.offset()).is_none() {
                cursor = start;
            }
            cursor.advance();
        }
    })
}
