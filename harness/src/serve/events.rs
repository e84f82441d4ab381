//! Server-sent events: a campaign while it runs, and word that the list has changed.
//!
//! Files are looked at for as long as somebody watches: a few system calls, twice a second for each.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::App;
use super::pages::{Refusal, blocking, link};
use super::shelf::{Folder, Listed, Progress, Shelf};

/// A campaign says something new once a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The list is longer to look through, and changes seldom.
const LOOK_AT_LIST_EVERY: Duration = Duration::from_secs(2);

/// `progress`, with the content of `progress.json`, whenever that changes; at last `ended`, with the campaign's page.
pub(super) async fn campaign(State(app): State<App>, Path(name): Path<String>) -> Response {
    let shelf = Arc::clone(&app.shelf);
    let known = name.clone();
    let folder = blocking(move || {
        shelf
            .folder(&known)
            .ok_or_else(|| Refusal::no_campaign(&known))
    });
    let folder = match folder.await {
        Ok(folder) => folder,
        Err(refusal) => return refusal.into_response(),
    };
    let watched = WatchedCampaign {
        folder,
        ended: app.ended,
        last: None,
        over: false,
    };
    sse(stream::unfold(watched, WatchedCampaign::next))
}

/// `changed` whenever the list does; what it is now is on its page.
pub(super) async fn list(State(app): State<App>) -> Response {
    let watched = WatchedList {
        shelf: app.shelf,
        ended: app.ended,
        last: None,
    };
    sse(stream::unfold(watched, WatchedList::next))
}

fn sse(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = futures_util::StreamExt::map(events, Ok::<_, Infallible>);
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

/// Whether the time is over, rather than the program.
async fn waited(time: Duration, ended: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        () = sleep(time) => true,
        _ = ended.wait_for(|ended| *ended) => false,
    }
}

struct WatchedCampaign {
    /// Held open: a folder that is put in its place meanwhile is another campaign.
    folder: Folder,
    ended: watch::Receiver<bool>,
    last: Option<String>,
    over: bool,
}

impl WatchedCampaign {
    async fn next(mut self) -> Option<(Event, WatchedCampaign)> {
        if self.over {
            return None;
        }
        loop {
            match self.folder.progress() {
                Progress::Running(None) => {}
                Progress::Running(Some(published)) => {
                    let text = serde_json::to_string(&published).ok()?;
                    if self.last.as_ref() != Some(&text) {
                        let event = Event::default().event("progress").data(&text);
                        self.last = Some(text);
                        return Some((event, self));
                    }
                }
                Progress::None { .. } => {
                    self.over = true;
                    let page = json!({ "report": self.folder.has_record().then(|| link(&self.folder.name)) });
                    let event = Event::default().event("ended").data(page.to_string());
                    return Some((event, self));
                }
            }
            if !waited(LOOK_EVERY, &mut self.ended).await {
                return None;
            }
        }
    }
}

struct WatchedList {
    shelf: Arc<Shelf>,
    ended: watch::Receiver<bool>,
    last: Option<Vec<Listed>>,
}

impl WatchedList {
    async fn next(mut self) -> Option<(Event, WatchedList)> {
        loop {
            let shelf = Arc::clone(&self.shelf);
            // A record that has changed is read.
            let now = blocking(move || Ok(shelf.list())).await.ok()?;
            if self.last.as_ref() != Some(&now) {
                self.last = Some(now);
                return Some((Event::default().event("changed").data("{}"), self));
            }
            if !waited(LOOK_AT_LIST_EVERY, &mut self.ended).await {
                return None;
            }
        }
    }
}
