//! One channel: what its session has heard on its way to the streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::lane::no_answer;
use crate::{CONNECT_TIMEOUT, Failure};

/// Events that a subscriber may be behind.
pub(super) const EVENTS_ON_THEIR_WAY: usize = 1024;

/// Events that have been heard and not been sent on.
const EVENTS_HEARD: usize = 64;

/// How long everybody waits for the slowest subscriber, once, until it has caught up.
const PATIENCE: Duration = Duration::from_millis(100);
const CATCHING_UP_CHECK: Duration = Duration::from_millis(1);

/// To connect and to LISTEN, each of which a lane bounds by itself where it can.
const OPENING: Duration = CONNECT_TIMEOUT.saturating_mul(2);

/// How often something is sent when nothing happens, so that clients that have vanished are noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

const HEARTBEAT_COMMENT: Bytes = Bytes::from_static(b":\n\n");

#[derive(Debug)]
pub(super) struct Channel {
    phase: watch::Sender<Phase>,
    /// None once it is over.
    sender: Mutex<Option<broadcast::Sender<Bytes>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Listening,
    Over,
}

/// Where a lane puts what it hears. All streams of the channel end once it has been dropped.
#[derive(Debug)]
pub struct Events {
    channel: Arc<Channel>,
    heard: mpsc::Sender<Bytes>,
    _counted: watch::Receiver<()>,
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

    /// Sends a notification to every subscriber. It waits while those before it are too many.
    pub async fn send(&self, payload: &str) {
        // It fails when nobody wants it any more.
        let _ = self.heard.send(encode(payload)).await;
    }

    /// The same, on a thread that belongs to no runtime.
    pub fn send_blocking(&self, payload: &str) {
        let _ = self.heard.blocking_send(encode(payload));
    }

    /// Whether there is still a subscriber.
    pub fn wanted(&self) -> bool {
        *self.channel.phase.borrow() != Phase::Over
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

/// What keeps a channel: a lane's session, and what sends on what it hears.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) closing: Closing,
    pub(super) events: Events,
    pub(super) heard: mpsc::Receiver<Bytes>,
}

/// Closes the channel when it is dropped, for whatever reason.
#[derive(Debug)]
pub(super) struct Closing(pub(super) Arc<Channel>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Channel {
    /// A channel with its first receiver, and the session that is to be kept for it, which holds `counted`.
    pub(super) fn open(
        counted: watch::Receiver<()>,
    ) -> (Arc<Channel>, broadcast::Receiver<Bytes>, Session) {
        let (sender, receiver) = broadcast::channel(EVENTS_ON_THEIR_WAY);
        let channel = Arc::new(Channel {
            phase: watch::Sender::new(Phase::Opening),
            sender: Mutex::new(Some(sender)),
        });
        let (sender, heard) = mpsc::channel(EVENTS_HEARD);
        let session = Session {
            closing: Closing(Arc::clone(&channel)),
            events: Events {
                channel: Arc::clone(&channel),
                heard: sender,
                _counted: counted,
            },
            heard,
        };
        (channel, receiver, session)
    }

    fn sender(&self) -> MutexGuard<'_, Option<broadcast::Sender<Bytes>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of all that is sent from now on, unless the channel is over.
    pub(super) fn receiver(&self) -> Option<broadcast::Receiver<Bytes>> {
        self.sender().as_ref().map(broadcast::Sender::subscribe)
    }

    fn send(&self, event: Bytes) {
        if let Some(sender) = &*self.sender() {
            // It only fails when the last subscriber has just left.
            let _ = sender.send(event);
        }
    }

    /// Events that the slowest subscriber is behind.
    fn backlog(&self) -> usize {
        self.sender().as_ref().map_or(0, broadcast::Sender::len)
    }

    /// Sends on what is heard, until the session has ended.
    pub(super) async fn relay(&self, mut heard: mpsc::Receiver<Bytes>) {
        let behind = || self.backlog() >= EVENTS_ON_THEIR_WAY / 2;
        let mut patient = true;
        while let Some(event) = heard.recv().await {
            self.send(event);
            if !behind() {
                patient = true;
            } else if patient {
                let catching_up = async {
                    while behind() {
                        sleep(CATCHING_UP_CHECK).await;
                    }
                };
                patient = timeout(PATIENCE, catching_up).await.is_ok();
            }
        }
    }

    /// Ends the streams, after what has been sent, and tells whoever listens.
    pub(super) fn close(&self) {
        *self.sender() = None;
        self.phase.send_replace(Phase::Over);
    }

    /// The phase after `Opening`.
    pub(super) async fn opened(&self) -> Phase {
        let mut phase = self.phase.subscribe();
        let opened = phase.wait_for(|phase| *phase != Phase::Opening).await;
        opened.map_or(Phase::Over, |phase| *phase)
    }

    pub(super) async fn over(&self) {
        let mut phase = self.phase.subscribe();
        // It fails if the sender is gone, which it is not: it is ours.
        let _ = phase.wait_for(|phase| *phase == Phase::Over).await;
    }

    /// Sends heartbeats. Ends only if the channel does not open in time.
    pub(super) async fn attend(&self) -> Failure {
        if timeout(OPENING, self.opened()).await.is_err() {
            return Failure::ConnectionLost(no_answer());
        }
        loop {
            sleep(HEARTBEAT).await;
            self.send(HEARTBEAT_COMMENT);
        }
    }
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
