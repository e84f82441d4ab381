//! Server-sent events: whoever subscribes to a channel, and the one session that listens on it for all of them.
//!
//! A channel is opened for its first subscriber and closed after its last one. The session that listens is the lane's,
//! beside its pool. Each notification is encoded once, and every stream sends the same bytes.
//!
//! No stream has a gap. One that is more than [`channel::EVENTS_ON_THEIR_WAY`] behind is broken off, and when the session is lost
//! all of them end: a client connects again and knows that it may have missed something. So that a burst of notifications
//! breaks off nobody who reads, the session is not read while the slowest stream is half as far behind, for a moment.

mod channel;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio::time::timeout;

use crate::app::App;
use crate::{Failure, Lane};

use channel::{Channel, Phase, Session};
pub use channel::{Events, listen_statement};

/// Subscribers of all channels together; the next one is refused.
const MOST_SUBSCRIBERS: usize = 10_000;

/// How long the sessions may take to close when the server stops.
const CLOSING: Duration = Duration::from_secs(1);

/// What a stream begins with: from here on, nothing is missed.
const LISTENING_COMMENT: Bytes = Bytes::from_static(b": listening\n\n");

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

    /// A place among the subscribers of a channel; with it, if this is the first, the session that is to be kept for it.
    fn join(&self, name: &str) -> Option<(Seat, Option<Session>)> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut channels = self.channels();
        let channels = channels.as_mut()?;
        let known = channels.get_mut(name).and_then(|membership| {
            let receiver = membership.channel.receiver()?;
            membership.subscribers += 1;
            Some((Arc::clone(&membership.channel), receiver, None))
        });
        let (channel, receiver, session) = known.unwrap_or_else(|| {
            let (channel, receiver, session) = Channel::open(self.sessions.subscribe());
            let membership = Membership {
                channel: Arc::clone(&channel),
                subscribers: 1,
            };
            channels.insert(name.to_owned(), membership);
            (channel, receiver, Some(session))
        });
        let seat = Seat {
            channel,
            receiver,
            _place: place,
        };
        Some((seat, session))
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
    let (seat, session) = app.live.join(name).ok_or(Failure::NoMoreSubscribers)?;
    if let Some(session) = session {
        tokio::spawn(keep(Arc::clone(app), Arc::clone(name), session));
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
async fn keep<L: Lane>(app: Arc<App<L>>, name: Arc<str>, session: Session) {
    let Session {
        closing,
        events,
        heard,
    } = session;
    let channel = &closing.0;
    let listen = async {
        // What was heard goes out also after the session has ended.
        let (ended, ()) = tokio::join!(app.lane.listen(&name, events), channel.relay(heard));
        ended.err()
    };
    let failed = tokio::select! {
        failed = listen => failed,
        failure = channel.attend() => Some(failure),
        () = channel.over() => None,
    };
    if let Some(failure) = failed {
        app.note(&failure);
    }
}
