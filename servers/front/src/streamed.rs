//! A body that goes out while its rows still arrive.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::app::App;
use crate::work::{Export, Lines};
use crate::{Failure, Lane};

/// Parts that may be on their way to a client: with a slow one, the lane waits for it, and its connection with it.
const PARTS_ON_THEIR_WAY: usize = 2;

/// The work on its own task, which ends with what holds it: a client may go away before there is a part to send.
type Working = JoinSet<Result<(), Failure>>;

/// Begins the work, and gives the body once there is a part of it: until then a failure can still be the answer. A
/// failure after that breaks the body off. Failures are noted here.
///
/// # Errors
/// The work failed before there was a part.
pub(crate) async fn begin<L: Lane>(
    app: &Arc<App<L>>,
    export: impl FnOnce(Lines) -> Export,
) -> Result<Body, Failure> {
    let (sender, mut parts) = mpsc::channel(PARTS_ON_THEIR_WAY);
    let (own, export) = (Arc::clone(app), export(Lines::to(sender)));
    let mut work = Working::new();
    work.spawn(async move {
        let done = own.ask_the_database(export, Ok).await;
        done.inspect_err(|failure| own.note(failure))
    });
    match parts.recv().await {
        Some(first) => Ok(body(first, parts, work)),
        None => ended(work).await.map(|()| Body::empty()),
    }
}

fn body(first: Bytes, parts: mpsc::Receiver<Bytes>, work: Working) -> Body {
    let state = (Some(first), parts, Some(work));
    Body::from_stream(unfold(state, async |(first, mut parts, mut work)| {
        if let Some(first) = first {
            return Some((Ok(first), (None, parts, work)));
        }
        if let Some(part) = parts.recv().await {
            return Some((Ok(part), (None, parts, work)));
        }
        // Only the work's end tells a whole body from one that was broken off.
        let broken_off = ended(work.take()?).await.err()?;
        Some((Err(io::Error::other(broken_off)), (None, parts, work)))
    }))
}

async fn ended(mut work: Working) -> Result<(), Failure> {
    match work.join_next().await {
        Some(Ok(done)) => done,
        Some(Err(panicked)) => Err(Failure::Database(panicked.into())),
        None => Ok(()),
    }
}
