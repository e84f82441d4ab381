//! A body that goes out while its rows still arrive.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::app::App;
use crate::work::{Export, Lines};
use crate::{Failure, Front, Lane};

/// Parts that may be on their way to a client: with a slow one, the lane waits for it, and its connection with it.
const PARTS_ON_THEIR_WAY: usize = 2;

/// Begins the work, and gives the body once there is a part of it: until then a failure can still be the answer. A
/// failure after that breaks the body off. Failures are noted here.
///
/// # Errors
/// The work failed before there was a part.
pub(crate) async fn begin<L: Lane>(
    app: &Arc<App<L>>,
    export: impl FnOnce(Lines) -> Export,
) -> Result<Body, Failure> {
    let (sender, parts) = mpsc::channel(PARTS_ON_THEIR_WAY);
    let (own, export) = (Arc::clone(app), export(Lines::to(sender)));
    let work = async move {
        let done = own.ask_the_database(export, Ok).await;
        done.inspect_err(|failure| own.note(failure))
    };
    let work: Working = match L::FRONT {
        Front::Tasks => Box::pin(on_its_own_task(work)),
        // Its thread is the one that blocks: it goes on with the work whenever the client has room for more.
        Front::ThreadPerConnection => Box::pin(work),
    };
    let mut rows = Rows {
        parts,
        work: Some(work),
        failure: None,
    };
    match rows.next().await {
        Some(first) => Ok(body(first?, rows)),
        None => Ok(Body::empty()),
    }
}

fn body(first: Bytes, rows: Rows) -> Body {
    Body::from_stream(unfold((Some(first), rows), async |(first, mut rows)| {
        if let Some(first) = first {
            return Some((Ok(first), (None, rows)));
        }
        let part = rows.next().await?;
        Some((part.map_err(io::Error::other), (None, rows)))
    }))
}

/// The task ends with what holds it: a client may go away before there is a part to send.
fn on_its_own_task(
    work: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> impl Future<Output = Result<(), Failure>> + Send {
    let mut task = JoinSet::new();
    task.spawn(work);
    async move {
        match task.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(panicked)) => Err(Failure::Database(panicked.into())),
            None => Ok(()),
        }
    }
}

type Working = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Work, and the parts it has sent.
struct Rows {
    parts: mpsc::Receiver<Bytes>,
    /// None once it has ended. Only its end tells a whole body from one that was broken off.
    work: Option<Working>,
    failure: Option<Failure>,
}

impl Rows {
    /// The next part, or after the last one why the work failed, if it has.
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        if let Some(work) = &mut self.work
            && let Poll::Ready(ended) = work.as_mut().poll(context)
        {
            self.work = None;
            self.failure = ended.err();
        }
        match (ready!(self.parts.poll_recv(context)), &self.work) {
            (Some(part), _) => Poll::Ready(Some(Ok(part))),
            (None, Some(_)) => Poll::Pending,
            (None, None) => Poll::Ready(self.failure.take().map(Err)),
        }
    }
}
