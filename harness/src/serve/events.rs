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
use super::pages::{self, Refusal, blocking, link};
use super::shelf::{Folder, Listed, Progress, Shelf};
use crate::publication::Published;

/// A campaign says something new once a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The list is longer to look through, and changes seldom.
const LOOK_AT_LIST_EVERY: Duration = Duration::from_secs(2);

/// `progress`, with the content of `progress.json`, whenever that changes, and once more with what the record says when the
/// campaign has ended; at last `ended`, with the address of its report.
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
        folder: Arc::new(folder),
        ended: app.ended,
        last: None,
        stage: Stage::Running,
    };
    sse(stream::unfold(watched, WatchedCampaign::next))
}

/// `changed` whenever the list does, with its page as a JSON string. Who would ask for the page by itself could get a later
/// list than the one that was told, and would never hear that it is as before again.
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
    folder: Arc<Folder>,
    ended: watch::Receiver<bool>,
    last: Option<Published>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// It runs no more, and that is all there is left to say.
    Ending,
    Over,
}

impl WatchedCampaign {
    async fn next(mut self) -> Option<(Event, WatchedCampaign)> {
        while self.stage == Stage::Running {
            match self.folder.progress() {
                Progress::Running(published) => {
                    if published.is_some() && published != self.last {
                        return self.say(published?);
                    }
                }
                Progress::None { .. } => {
                    self.stage = Stage::Ending;
                    // The last verdict falls just before the end, and the next look may come after that.
                    if let Some(published) = self.outcome().await {
                        return self.say(published);
                    }
                    break;
                }
            }
            if !waited(LOOK_EVERY, &mut self.ended).await {
                return None;
            }
        }
        if self.stage == Stage::Over {
            return None;
        }
        self.stage = Stage::Over;
        let report = self.folder.has_record().then(|| link(&self.folder.name));
        let page = json!({ "report": report });
        let event = Event::default().event("ended").data(page.to_string());
        Some((event, self))
    }

    fn say(mut self, published: Published) -> Option<(Event, WatchedCampaign)> {
        let text = serde_json::to_string(&published).ok()?;
        self.last = Some(published);
        Some((Event::default().event("progress").data(text), self))
    }

    /// How a campaign that was watched has ended, by its record; `None` if it has none.
    async fn outcome(&self) -> Option<Published> {
        let last = self.last.clone()?;
        let folder = Arc::clone(&self.folder);
        let read = blocking(move || Ok(folder.campaign().ok().flatten()));
        Some(last.closed_by(&read.await.ok()??))
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
            let last = self.last.take();
            // A record that has changed is read.
            let look = move || {
                let now = shelf.list();
                let page = match last.as_ref() == Some(&now) {
                    true => None,
                    false => Some(pages::list::of(&shelf, now.clone())?.0),
                };
                Ok((now, page))
            };
            let (now, page) = blocking(look).await.ok()?;
            self.last = Some(now);
            if let Some(page) = page {
                let page = serde_json::to_string(&page).ok()?;
                return Some((Event::default().event("changed").data(page), self));
            }
            if !waited(LOOK_AT_LIST_EVERY, &mut self.ended).await {
                return None;
            }
        }
    }
}
