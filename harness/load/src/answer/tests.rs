//! Answers in every framing, cut into every kind of parts.

use super::*;
use crate::expect::{Judgement, body_hash, judge};
use proptest::prelude::*;

/// Feeds `wire` in parts and judges the answer; `None` if it never completed.
fn read(
    reader: &mut AnswerReader,
    wire: &[u8],
    part: usize,
    expect: &Expect,
    is_head: bool,
) -> Result<Option<Judgement>, Malformed> {
    let request = Request {
        expect: expect.clone(),
        ..Request::get("/")
    };
    read_for(reader, wire, part, &request, is_head)
}

/// As `read`, for a request with several accepted answers.
fn read_for(
    reader: &mut AnswerReader,
    wire: &[u8],
    part: usize,
    request: &Request,
    is_head: bool,
) -> Result<Option<Judgement>, Malformed> {
    let judged = |reader: &AnswerReader, answer: Answer| {
        let expect = request.chosen(answer.accepted);
        judge(expect, reader.facts(&answer, expect))
    };
    reader.begin();
    let mut rest = wire;
    while !rest.is_empty() {
        let count = part.min(rest.len()).min(reader.spare().len());
        reader.spare()[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        if let Some(answer) = reader.received(count, request, is_head)? {
            return Ok(Some(judged(reader, answer)));
        }
    }
    let last = reader.closed();
    Ok(last.map(|answer| judged(reader, answer)))
}

fn judgement(wire: &str, expect: &Expect) -> Result<Option<Judgement>, Malformed> {
    let whole = read(
        &mut AnswerReader::new(),
        wire.as_bytes(),
        wire.len(),
        expect,
        false,
    );
    let bytewise = read(&mut AnswerReader::new(), wire.as_bytes(), 1, expect, false);
    assert!(
        whole == bytewise || whole.is_err(),
        "{whole:?} {bytewise:?}"
    );
    whole
}

#[test]
fn every_framing_is_read_to_its_end() {
    let expect = Expect::exact("hello");
    for wire in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        assert_eq!(
            judgement(wire, &expect),
            Ok(Some(Judgement::Correct)),
            "{wire}"
        );
    }
    let empty = Expect {
        statuses: vec![204, 304],
        ..Expect::exact("")
    };
    assert_eq!(
        judgement("HTTP/1.1 204 No Content\r\n\r\n", &empty),
        Ok(Some(Judgement::Correct))
    );
    assert_eq!(
        judgement(
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            &empty
        ),
        Ok(Some(Judgement::Correct))
    );
}

#[test]
fn an_answer_to_head_is_judged_by_its_declared_length() {
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let expect = Expect {
        length: Some(5),
        ..Expect::exact("hello")
    };
    assert_eq!(
        read(&mut AnswerReader::new(), wire, 9, &expect, true),
        Ok(Some(Judgement::Correct))
    );
    let expect = Expect {
        length: Some(6),
        ..Expect::status(200)
    };
    assert_eq!(
        read(&mut AnswerReader::new(), wire, 9, &expect, true),
        Ok(Some(Judgement::WrongLength))
    );
}

#[test]
fn each_kind_of_wrong_answer_has_its_own_name() {
    let expect = Expect {
        media_type: Some("text/plain".into()),
        length: Some(5),
        ..Expect::exact("hello")
    };
    let cases = [
        ("503 No\r\nContent-Length: 0\r\n\r\n", Judgement::Shed),
        (
            "404 No\r\nContent-Length: 0\r\n\r\n",
            Judgement::HttpError(404),
        ),
        (
            "200 OK\r\nContent-Length: 5\r\n\r\nhello",
            Judgement::WrongMediaType,
        ),
        (
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nhell",
            Judgement::WrongLength,
        ),
        (
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhellO",
            Judgement::WrongBody,
        ),
        (
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
            Judgement::Correct,
        ),
    ];
    for (wire, expected) in cases {
        assert_eq!(
            judgement(&format!("HTTP/1.1 {wire}"), &expect),
            Ok(Some(expected)),
            "{wire}"
        );
    }
}

#[test]
fn surplus_bytes_an_endless_head_and_garbage_are_refused() {
    let expect = Expect::status(200);
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(20).repeat(1000));
    let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(70_000));
    let surplus_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX";
    for wire in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        surplus_chunk,
        &endless,
        &long,
        "garbage\r\n\r\n",
    ] {
        assert!(
            read(
                &mut AnswerReader::new(),
                wire.as_bytes(),
                1000,
                &expect,
                false
            )
            .is_err()
        );
    }
}

proptest! {
    #[test]
    fn bodies_of_any_length_in_any_split_and_framing_are_verified(
        length in prop_oneof![0usize..2000, 60_000usize..200_000],
        part in 1usize..30_000,
        framing in 0..3,
        corrupt in any::<Option<prop::sample::Index>>(),
    ) {
        let body: Vec<u8> = (0..length).map(|index| (index * 7 % 251) as u8).collect();
        let expects = [ExpectBody::Exact(body.clone()), ExpectBody::Hash(body_hash(&body))];
        let mut sent = body;
        let corrupt = corrupt.filter(|_| length > 0);
        if let Some(index) = corrupt {
            sent[index.index(length)] ^= 1;
        }
        let mut wire = match framing {
            0 => format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes(),
            1 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        };
        if framing == 1 {
            for chunk in sent.chunks(5000) {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
        } else {
            wire.extend_from_slice(&sent);
        }
        let mut reader = AnswerReader::new();
        for body in expects {
            let expect = Expect { body, ..Expect::status(200) };
            let wanted = if corrupt.is_some() { Judgement::WrongBody } else { Judgement::Correct };
            prop_assert_eq!(read(&mut reader, &wire, part, &expect, false), Ok(Some(wanted)));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        wire in prop::collection::vec(any::<u8>(), 0..300),
        part in 1usize..50,
        valid_start in any::<bool>(),
    ) {
        let mut wire = wire;
        if valid_start {
            wire.splice(0..0, *b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        }
        let _ = read(&mut AnswerReader::new(), &wire, part, &Expect::exact("x"), false);
    }
}
