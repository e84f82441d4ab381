//! Server-sent events: whoever subscribes to a channel, and the one session that listens on it for all of them.
//!
//! A channel is opened for its first subscriber and closed after its last one. The session that listens is the lane's,
//! beside its pool. Each notification is encoded once, and every stream sends the same bytes.
//!
//! No stream has a gap. One that is more than [`EVENTS_ON_THEIR_WAY`] behind is broken off, and when the session is lost
//! all of them end: a client connects again and knows that it may have missed something.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::lane::no_answer;
use crate::{CONNECT_TIMEOUT, Failure, Lane};

/// Subscribers of all channels together; the next one is refused.
const MOST_SUBSCRIBERS: usize = 10_000;

/// Events that a subscriber may be behind.
const EVENTS_ON_THEIR_WAY: usize = 1024;

/// To connect and to LISTEN, each of which a lane bounds by itself where it can.
const OPENING: Duration = CONNECT_TIMEOUT.saturating_mul(2);

/// How often something is sent when nothing happens, so that clients that have vanished are noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long the sessions may take to close when the server stops.
const CLOSING: Duration = Duration::from_secs(1);

/// What a stream begins with: from here on, nothing is missed.
const LISTENING_COMMENT: Bytes = Bytes::from_static(b": listening\n\n");
const HEARTBEAT_COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The channels of one server.
#[derive(Debug)]
pub(crate) struct Live {
    /// None once the server stops.
    channels: Mutex<Option<HashMap<String, Membership>>>,
    places: Arc<Semaphore>,
    /// Each session that listens has a receiver of it.
    sessions: watch::Sender<()>,
}

#[derive(Debug)]
struct Membership {
    channel: Arc<Channel>,
    subscribers: usize,
}

#[derive(Debug)]
struct Channel {
    phase: watch::Sender<Phase>,
    /// None once it is over.
    sender: Mutex<Option<broadcast::Sender<Bytes>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Listening,
    Over,
}

/// Where a lane puts what it hears. When it is dropped, all streams of the channel end.
#[derive(Debug)]
pub struct Events {
    channel: Arc<Channel>,
    _session: watch::Receiver<()>,
}

impl Events {
    /// LISTEN has been answered, and every notification from here on will be sent.
    pub fn listening(&self) {
        self.channel.phase.send_if_modified(|phase| {
            let opens = *phase == Phase::Opening;
            if opens {
                *phase = Phase::Listening;
            }
            opens
        });
    }

    /// Sends a notification to every subscriber.
    pub fn send(&self, payload: &str) {
        self.channel.send(encode(payload));
    }

    /// Whether there is still a subscriber.
    pub fn wanted(&self) -> bool {
        *self.channel.phase.borrow() != Phase::Over
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.channel.close();
    }
}

/// The statement that begins to listen.
pub fn listen_statement(channel: &str) -> String {
    format!("LISTEN \"{}\"", channel.replace('"', "\"\""))
}

/// An event whose data is `payload`. Its lines are sent as such: a subscriber puts them together again, with line feeds.
fn encode(payload: &str) -> Bytes {
    let mut event = String::with_capacity(payload.len() + "data: \n\n".len());
    for line in payload.replace("\r\n", "\n").split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

impl Channel {
    fn opening() -> (Channel, broadcast::Receiver<Bytes>) {
        let (sender, receiver) = broadcast::channel(EVENTS_ON_THEIR_WAY);
        let channel = Channel {
            phase: watch::Sender::new(Phase::Opening),
            sender: Mutex::new(Some(sender)),
        };
        (channel, receiver)
    }

    fn sender(&self) -> MutexGuard<'_, Option<broadcast::Sender<Bytes>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of all that is sent from now on, unless the channel is over.
    fn receiver(&self) -> Option<broadcast::Receiver<Bytes>> {
        self.sender().as_ref().map(broadcast::Sender::subscribe)
    }

    fn send(&self, event: Bytes) {
        if let Some(sender) = &*self.sender() {
            // It only fails when the last subscriber has just left.
            let _ = sender.send(event);
        }
    }

    /// Ends the streams, after what has been sent, and tells whoever listens.
    fn close(&self) {
        *self.sender() = None;
        self.phase.send_replace(Phase::Over);
    }

    /// The phase after `Opening`.
    async fn opened(&self) -> Phase {
        let mut phase = self.phase.subscribe();
        let opened = phase.wait_for(|phase| *phase != Phase::Opening).await;
        opened.map_or(Phase::Over, |phase| *phase)
    }

    async fn over(&self) {
        let mut phase = self.phase.subscribe();
        // It fails if the sender is gone, which it is not: it is ours.
        let _ = phase.wait_for(|phase| *phase == Phase::Over).await;
    }

    /// Sends heartbeats. Ends only if the channel does not open in time.
    async fn attend(&self) -> Failure {
        if timeout(OPENING, self.opened()).await.is_err() {
            return Failure::ConnectionLost(no_answer());
        }
        loop {
            sleep(HEARTBEAT).await;
            self.send(HEARTBEAT_COMMENT);
        }
    }
}

impl Default for Live {
    fn default() -> Live {
        Live {
            channels: Mutex::new(Some(HashMap::new())),
            places: Arc::new(Semaphore::new(MOST_SUBSCRIBERS)),
            sessions: watch::Sender::new(()),
        }
    }
}

type Channels = Option<HashMap<String, Membership>>;

impl Live {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribers(&self) -> usize {
        MOST_SUBSCRIBERS.saturating_sub(self.places.available_permits())
    }

    /// Ends every stream, and lets nobody subscribe any more.
    pub(crate) fn end(&self) {
        let channels = self.channels().take();
        for membership in channels.into_iter().flat_map(HashMap::into_values) {
            membership.channel.close();
        }
    }

    /// Waits until no session listens any more, or long enough.
    pub(crate) async fn closed(&self) {
        let _ = timeout(CLOSING, self.sessions.closed()).await;
    }

    /// A place among the subscribers of a channel; with it, if this is the first, what is to listen for it.
    fn join(&self, name: &str) -> Option<(Seat, Option<Events>)> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut channels = self.channels();
        let channels = channels.as_mut()?;
        let known = channels.get_mut(name).and_then(|membership| {
            let receiver = membership.channel.receiver()?;
            membership.subscribers += 1;
            Some((Arc::clone(&membership.channel), receiver, None))
        });
        let (channel, receiver, events) = known.unwrap_or_else(|| {
            let (channel, receiver) = Channel::opening();
            let channel = Arc::new(channel);
            let membership = Membership {
                channel: Arc::clone(&channel),
                subscribers: 1,
            };
            channels.insert(name.to_owned(), membership);
            let events = Events {
                channel: Arc::clone(&channel),
                _session: self.sessions.subscribe(),
            };
            (channel, receiver, Some(events))
        });
        let seat = Seat {
            channel,
            receiver,
            _place: place,
        };
        Some((seat, events))
    }

    /// The last one to leave closes the channel, under the lock: nobody joins one that is about to close.
    fn leave(&self, name: &str, channel: &Arc<Channel>) {
        let mut channels = self.channels();
        let Some(channels) = channels.as_mut() else {
            return;
        };
        let Some(membership) = channels.get_mut(name) else {
            return;
        };
        // It may have been over before, and another one opened in its place.
        if !Arc::ptr_eq(&membership.channel, channel) {
            return;
        }
        membership.subscribers -= 1;
        if membership.subscribers == 0 {
            channels.remove(name);
            channel.close();
        }
    }
}

#[derive(Debug)]
struct Seat {
    channel: Arc<Channel>,
    receiver: broadcast::Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
}

/// One subscriber of a channel.
struct Subscriber<L: Lane> {
    app: Arc<App<L>>,
    name: Arc<str>,
    seat: Seat,
}

impl<L: Lane> Drop for Subscriber<L> {
    fn drop(&mut self) {
        self.app.live.leave(&self.name, &self.seat.channel);
    }
}

impl<L: Lane> Subscriber<L> {
    /// The next event; after the last one, none.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.seat.receiver.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => {
                let why = format!("a subscriber is {missed} events too far behind");
                Some(Err(io::Error::other(why)))
            }
            Err(RecvError::Closed) => None,
        }
    }
}

/// Subscribes to a channel, and gives the body once the channel is listened on. A session's failure is noted here.
///
/// # Errors
/// There are as many subscribers as there may be, the server stops, or the channel cannot be listened on.
pub(crate) async fn subscribe<L: Lane>(
    app: &Arc<App<L>>,
    name: &Arc<str>,
) -> Result<Body, Failure> {
    let (seat, events) = app.live.join(name).ok_or(Failure::NoMoreSubscribers)?;
    if let Some(events) = events {
        tokio::spawn(keep(Arc::clone(app), Arc::clone(name), events));
    }
    let subscriber = Subscriber {
        app: Arc::clone(app),
        name: Arc::clone(name),
        seat,
    };
    match subscriber.seat.channel.opened().await {
        Phase::Listening => Ok(body(subscriber)),
        Phase::Opening | Phase::Over => Err(Failure::ConnectionLost("nothing listens".into())),
    }
}

fn body<L: Lane>(subscriber: Subscriber<L>) -> Body {
    let begun = (Some(LISTENING_COMMENT), subscriber);
    Body::from_stream(unfold(begun, async |(first, mut subscriber)| {
        let part = match first {
            Some(first) => Ok(first),
            None => subscriber.next().await?,
        };
        Some((part, (None, subscriber)))
    }))
}

/// Has the lane listen until nobody wants it any more, or it fails.
async fn keep<L: Lane>(app: Arc<App<L>>, name: Arc<str>, events: Events) {
    let channel = Arc::clone(&events.channel);
    let failed = tokio::select! {
        ended = app.lane.listen(&name, events) => ended.err(),
        failure = channel.attend() => Some(failure),
        () = channel.over() => None,
    };
    if let Some(failure) = failed {
        app.note(&failure);
    }
    channel.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_payload_is_a_line_of_data() {
        let cases = [
            ("", "data: \n\n"),
            ("7 x", "data: 7 x\n\n"),
            ("a\nb\r\nc\rd", "data: a\ndata: b\ndata: c\ndata: d\n\n"),
            ("a\n", "data: a\ndata: \n\n"),
        ];
        for (payload, event) in cases {
            assert_eq!(encode(payload), event.as_bytes());
        }
    }

    #[test]
    fn the_name_of_a_channel_cannot_end_its_quotes() {
        assert_eq!(listen_statement("a\"b"), "LISTEN \"a\"\"b\"");
    }
}
