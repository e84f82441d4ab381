//! A session that listens, beside the pool.

use front::{CONNECT_TIMEOUT, Events, Failure, no_answer};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::timeout;

use crate::lane::failure;

/// Listens until it is dropped.
///
/// # Errors
/// The session could not be opened, or was lost.
pub(crate) async fn listen(
    options: PgConnectOptions,
    channel: &str,
    events: Events,
) -> Result<(), Failure> {
    let connecting = timeout(CONNECT_TIMEOUT, connect(options)).await;
    let connected = connecting.map_err(|_| Failure::ConnectionLost(no_answer()))?;
    let mut listener = connected.map_err(failure)?;
    listener.listen(channel).await.map_err(failure)?;
    events.listening();
    // None is a session that was lost. To ask again would open another one, and tell nobody what was missed.
    while let Some(heard) = listener.try_recv().await.map_err(failure)? {
        events.send(heard.payload()).await;
    }
    Err(Failure::ConnectionLost("the session was lost".into()))
}

/// A listener takes its session from a pool, here one of its own.
async fn connect(options: PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options)
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    Ok(listener)
}
