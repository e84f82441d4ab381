//! A session that listens, beside the pool. Its connection is polled here rather than by a task of the driver's, which
//! would drop the notifications.

use std::future::poll_fn;
use std::pin::pin;

use front::{CONNECT_TIMEOUT, Events, Failure, listen_statement, no_answer};
use rust_postgres::failure;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Config, NoTls};

/// Listens until it is dropped.
///
/// # Errors
/// The session could not be opened, or was lost.
pub(crate) async fn listen(config: &Config, channel: &str, events: Events) -> Result<(), Failure> {
    let connected = timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
    let connected = connected.map_err(|_| Failure::ConnectionLost(no_answer()))?;
    let (client, mut connection) = connected.map_err(failure)?;
    let statement = listen_statement(channel);
    let mut listened = pin!(client.batch_execute(&statement));
    let mut asked = true;
    loop {
        tokio::select! {
            done = &mut listened, if asked => {
                done.map_err(failure)?;
                asked = false;
                events.listening();
            }
            message = poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(heard))) => events.send(heard.payload()).await,
                Some(Ok(_notice)) => {}
                Some(Err(error)) => return Err(failure(error)),
                None => return Err(Failure::ConnectionLost("the session was closed".into())),
            },
        }
    }
}
