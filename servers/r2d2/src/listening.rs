//! A session that listens, beside the pool, on a thread of its own.

use std::thread;
use std::time::Duration;

use front::{Events, Failure, OpenError, listen_statement};
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Config, NoTls};
use rust_postgres::{config, failure};
use tokio::sync::oneshot;

/// How often the thread looks whether anybody wants to hear more.
const WANTED_CHECK: Duration = Duration::from_millis(100);

/// Where such a session connects to.
#[derive(Debug)]
pub(crate) struct Listening(Config);

impl Listening {
    pub(crate) fn new(flags: &front::Config, lane: &str) -> Result<Listening, OpenError> {
        Ok(Listening(config(flags, lane)?.into()))
    }

    /// Listens until nobody wants to hear more. The thread goes on for a moment when this is dropped.
    ///
    /// # Errors
    /// The session could not be opened, or was lost.
    pub(crate) async fn listen(&self, channel: &str, events: Events) -> Result<(), Failure> {
        let (config, statement) = (self.0.clone(), listen_statement(channel));
        let (tell, told) = oneshot::channel();
        let started = thread::Builder::new()
            .name("listen".to_owned())
            .spawn(move || drop(tell.send(listen(&config, &statement, &events))));
        started.map_err(|error| Failure::Database(error.into()))?;
        told.await
            .unwrap_or_else(|panicked| Err(Failure::Database(panicked.into())))
    }
}

fn listen(config: &Config, statement: &str, events: &Events) -> Result<(), Failure> {
    let mut client = config.connect(NoTls).map_err(failure)?;
    client.batch_execute(statement).map_err(failure)?;
    events.listening();
    while events.wanted() {
        hear(&mut client, events)?;
        // Nothing was heard, be it that there is no session any more.
        if client.is_closed() {
            return Err(Failure::ConnectionLost("the session was lost".into()));
        }
    }
    Ok(())
}

/// Sends on what is heard, until nothing has been for a while.
fn hear(client: &mut Client, events: &Events) -> Result<(), Failure> {
    let mut notifications = client.notifications();
    let mut heard = notifications.timeout_iter(WANTED_CHECK);
    while let Some(heard) = heard.next().map_err(failure)? {
        events.send_blocking(heard.payload());
        if !events.wanted() {
            break;
        }
    }
    Ok(())
}
