//! One request and its answer, from the worker's side: send, receive, judge, count.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::answer::Answer;
use crate::clock::{self, Nanos};
use crate::connection::State;
use crate::expect::{Answered, ExpectBody, Judgement, judge};
use crate::head::Malformed;
use crate::measure::Exchange;
use crate::outcome::{ErrorKind, Failure};
use crate::record::{Ending, Record};
use crate::request::Request;
use crate::schedule::Phase;
use crate::worker::{Free, Message, Worker};

/// Most reads from one connection in a row: an answer without an end must not keep the thread from
/// the other connections, nor from the end of the run.
const READS: usize = 16;

impl Worker<'_> {
    /// Sends the next request on a free connection. Returns the instant of the send.
    pub(crate) fn start_exchange(&mut self, free: Free, intended: Nanos) -> Nanos {
        let order = &self.shared.table.order;
        let index = self.pacer.take();
        // The remainder is below the order's length, so it fits.
        let request = order[(index % order.len() as u64) as usize];
        let encoded = &self.shared.encoded[request as usize];
        let connection = &mut self.connections[free.slot as usize];
        if encoded.is_numbered() {
            connection.number = self.shared.first_unique + index;
            self.next_unique = connection.number + 1;
        }
        self.ledger.sent(encoded.row);
        connection.reader.begin();
        connection.written = 0;
        connection.state = State::Busy;
        let sent = clock::now();
        let exchange = Exchange {
            request,
            intended,
            free: free.since,
            sent,
            first_byte: 0,
        };
        connection.exchange = exchange;
        self.in_flight.sent(sent, &self.phases);
        self.write(free.slot);
        let phase = self.phases.phase(intended);
        self.tally.counts(phase).scheduled += 1;
        if phase == Phase::Window {
            self.interval.record_sent(&exchange);
        }
        sent
    }

    /// Sends what is left of the request; the rest follows when the socket takes more.
    fn write(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let bytes = self.shared.encoded[connection.exchange.request as usize]
            .with_number(connection.number, &mut self.scratch);
        while connection.written < bytes.len() {
            match connection.send(&bytes[connection.written..]) {
                Ok(count) => connection.written += count,
                Err(Errno::INTR) => {}
                // If the peer is gone it may have answered before, which reading finds out: not here, since
                // the buffer may still hold an answer to verify, but when epoll reports the end.
                Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET) => return,
                Err(errno) => return self.fail(slot, ErrorKind::Send(errno.raw_os_error())),
            }
        }
    }

    /// The socket of a busy connection is readable, writable again, or broken.
    pub(crate) fn on_ready(&mut self, slot: u32, flags: EventFlags) {
        let connection = &self.connections[slot as usize];
        let bytes = &self.shared.encoded[connection.exchange.request as usize].bytes;
        if flags.contains(EventFlags::OUT) && connection.written < bytes.len() {
            self.write(slot);
        }
        let broken = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if (broken || flags.contains(EventFlags::IN))
            && self.connections[slot as usize].state == State::Busy
        {
            self.read(slot, broken);
        }
    }

    /// Receives until the answer is complete or nothing more is there. `broken`: the server has closed
    /// its side, so that a short read is not yet the end.
    fn read(&mut self, slot: u32, broken: bool) {
        for _ in 0..READS {
            let connection = &mut self.connections[slot as usize];
            let request = connection.exchange.request as usize;
            let (received, room) = match connection.receive() {
                Ok(counts) => counts,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(errno) => return self.fail(slot, ErrorKind::Receive(errno.raw_os_error())),
            };
            let now = clock::now();
            if received == 0 {
                return self.on_closed(slot, now);
            }
            if connection.exchange.first_byte == 0 {
                connection.exchange.first_byte = now;
            }
            match connection.reader.received(
                received,
                &self.shared.table.requests[request],
                self.shared.encoded[request].is_head,
            ) {
                Ok(Some(answer)) => return self.complete(slot, &answer, now, !broken),
                Err(Malformed(reason)) => return self.fail(slot, ErrorKind::Malformed(reason)),
                // Less than there was room for: the socket is empty, and more will be a new event.
                Ok(None) if received < room && !broken => return,
                Ok(None) => {}
            }
        }
        // There is more, and epoll will not say so again.
        let generation = self.connections[slot as usize].generation;
        let flags = if broken {
            EventFlags::IN | EventFlags::RDHUP
        } else {
            EventFlags::IN
        };
        self.unread.push((slot, generation, flags));
    }

    fn on_closed(&mut self, slot: u32, now: Nanos) {
        let reader = &mut self.connections[slot as usize].reader;
        match reader.closed() {
            Some(answer) => self.complete(slot, &answer, now, false),
            None if reader.is_started() => self.fail(slot, ErrorKind::ClosedWithinAnswer),
            None => self.fail(slot, ErrorKind::ClosedBeforeAnswer),
        }
    }

    /// Takes a complete answer. The next request goes out first; the body is verified while the server
    /// works on it.
    fn complete(&mut self, slot: u32, answer: &Answer, now: Nanos, reusable: bool) {
        self.in_flight.ended(now, &self.phases);
        let connection = &mut self.connections[slot as usize];
        connection.answered();
        let exchange = connection.exchange;
        let request = exchange.request as usize;
        let encoded = &self.shared.encoded[request];
        let all_sent = connection.written == encoded.bytes.len();
        let reusable = reusable && answer.reusable && all_sent;
        if reusable {
            self.release(slot, now);
            self.dispatch(now);
        }
        let expect = self.shared.table.requests[request].chosen(answer.accepted);
        let facts = self.connections[slot as usize].reader.facts(answer, expect);
        let judgement = judge(expect, facts);
        self.book(
            slot,
            &exchange,
            Ending::Judged(judgement),
            answer.status,
            now,
        );
        match (judgement, answer.accepted) {
            (Judgement::Correct, Some(number)) => self.ledger.correct(encoded.row, number),
            _ => self.keep(slot, &exchange, answer, judgement, facts),
        }
        if !reusable {
            self.reopen(slot, now, false);
        }
    }

    /// Books the end of the request on this connection, whatever end it was.
    pub(crate) fn end_exchange(&mut self, slot: u32, ending: Ending, status: u16, now: Nanos) {
        let exchange = self.connections[slot as usize].exchange;
        self.in_flight.ended(now, &self.phases);
        self.book(slot, &exchange, ending, status, now);
    }

    fn book(&mut self, slot: u32, exchange: &Exchange, ending: Ending, status: u16, now: Nanos) {
        let phase = self.phases.phase(exchange.intended);
        self.tally.ended(phase, ending);
        self.tally.wire_ns += self.phases.within_window(exchange.sent, now);
        if ending == Ending::Judged(Judgement::Correct) {
            self.interval.correct += 1;
            if self.phases.window_start <= now && now < self.phases.window_end {
                self.interval.correct_in_window += 1;
            }
            if phase == Phase::Window {
                self.interval.record_correct(exchange, now);
            }
        } else {
            self.interval.failed += 1;
            self.interval.shed += u64::from(ending == Ending::Judged(Judgement::Shed));
            if phase == Phase::Window && matches!(ending, Ending::Timeout | Ending::Unfinished) {
                self.censored
                    .saturating_record(now.saturating_sub(exchange.intended));
            }
        }
        if let Some(keeper) = &mut self.place.records {
            // Connections are counted in u32, over all workers.
            let connection = self.place.first_connection as u32 + slot;
            let record = Record {
                exchange: *exchange,
                done: now,
                connection,
                status,
                phase,
                ending,
            };
            if let Some(records) = keeper.keep(record) {
                self.tell(Message::Records {
                    worker: self.place.index,
                    records,
                });
            }
        }
    }

    /// The request on this connection got no usable answer.
    fn fail(&mut self, slot: u32, kind: ErrorKind) {
        let now = clock::now();
        let ending = if kind == ErrorKind::Timeout {
            Ending::Timeout
        } else {
            Ending::Transport
        };
        self.end_exchange(slot, ending, 0, now);
        let connection = &self.connections[slot as usize];
        let exchange = connection.exchange;
        let phase = self.phases.phase(exchange.intended);
        self.tally.failure(phase, kind, || Failure {
            request: exchange.request,
            phase,
            kind,
            status: None,
            expected: "a complete HTTP/1.1 answer".to_owned(),
            got: connection.reader.received_prefix().to_vec(),
        });
        self.reopen(slot, now, true);
    }

    pub(crate) fn check_timeout(&mut self, slot: u32, now: Nanos) {
        let sent = self.connections[slot as usize].exchange.sent;
        if now.saturating_sub(sent) >= self.shared.request_timeout {
            self.fail(slot, ErrorKind::Timeout);
        }
    }

    fn keep(
        &mut self,
        slot: u32,
        exchange: &Exchange,
        answer: &Answer,
        judgement: Judgement,
        facts: Answered,
    ) {
        let phase = self.phases.phase(exchange.intended);
        let request = &self.shared.table.requests[exchange.request as usize];
        let reader = &self.connections[slot as usize].reader;
        self.tally
            .failure(phase, ErrorKind::Answer(judgement), || Failure {
                request: exchange.request,
                phase,
                kind: ErrorKind::Answer(judgement),
                status: Some(answer.status),
                expected: describe(request, answer.accepted, judgement, facts),
                got: reader.body_prefix(answer).to_vec(),
            });
    }
}

/// What would have been right, in words.
fn describe(
    request: &Request,
    accepted: Option<usize>,
    judgement: Judgement,
    facts: Answered,
) -> String {
    let Some(expect) = request.chosen(accepted) else {
        let statuses = request.accepted().flat_map(|expect| &expect.statuses);
        return format!("status {:?}", statuses.collect::<Vec<_>>());
    };
    match judgement {
        Judgement::Correct | Judgement::Shed | Judgement::HttpError(_) => String::new(),
        Judgement::WrongMediaType => format!(
            "media type {}",
            expect.media_type.as_deref().unwrap_or("any")
        ),
        Judgement::WrongLength => {
            format!("{} bytes, got {}", expect.length.unwrap_or(0), facts.length)
        }
        Judgement::WrongBody => match &expect.body {
            ExpectBody::Any => String::new(),
            ExpectBody::Hash(hash) => format!("a body with xxh3 {hash:016x}"),
            ExpectBody::Exact(bytes) => {
                let start = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).into_owned();
                format!("{} bytes: {start}", bytes.len())
            }
        },
    }
}
