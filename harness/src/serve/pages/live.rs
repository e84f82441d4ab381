//! A campaign while it runs. The page holds what was known when it was made; its script goes on from there.

use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use super::super::App;
use super::super::shelf::{Folder, Progress};
use super::list::in_words;
use super::{Refusal, blocking, link, minute, page};
use crate::checks::Verdict;
use crate::progress;
use crate::publication::{Fallen, Published};
use crate::report::embedded;

#[derive(Template)]
#[template(path = "serve/live.html")]
struct LivePage {
    name: String,
    link: String,
    ended: bool,
    /// How it ended, if it has.
    how: &'static str,
    has_record: bool,
    /// Absent for a moment at the begin, and at the end.
    published: Option<Published>,
    verdicts: String,
    time_left: String,
    /// The same for the script.
    json: String,
}

impl LivePage {
    fn done(&self) -> usize {
        let published = self.published.as_ref();
        published.map_or(0, |published| published.trials_done)
    }

    fn all(&self) -> usize {
        let published = self.published.as_ref();
        published.map_or(0, |published| published.trials_done + published.trials_left)
    }

    /// The length of the bar, which cannot be nothing.
    fn bar(&self) -> usize {
        self.all().max(1)
    }

    fn started(&self) -> String {
        let published = self.published.as_ref();
        published.map_or_else(String::new, |published| minute(&published.started_at))
    }

    fn under_way(&self) -> String {
        let published = self.published.as_ref();
        let trial = published.and_then(|published| published.trial.as_ref());
        trial.map_or_else(String::new, |trial| {
            format!(
                "{}, {}, {}, block {}: {}",
                trial.workload, trial.server, trial.rung, trial.block, trial.phase
            )
        })
    }

    /// Newest first.
    fn fallen(&self) -> impl Iterator<Item = Row<'_>> {
        let published = self.published.iter();
        let fallen = published.flat_map(|published| published.fallen.iter().rev());
        fallen.map(Row)
    }
}

struct Row<'a>(&'a Fallen);

impl Row<'_> {
    fn rate(&self) -> String {
        let rate = self.0.requests_per_second;
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"))
    }

    fn p99(&self) -> String {
        let p99 = self.0.p99_ms;
        p99.map_or_else(|| "-".to_owned(), |p99| format!("{p99:.3}"))
    }

    fn block(&self) -> String {
        match self.0.attempt {
            1 => self.0.block.to_string(),
            attempt => format!("{}, attempt {attempt}", self.0.block),
        }
    }

    fn class(&self) -> &'static str {
        match self.0.verdict {
            Verdict::Valid => "valid",
            Verdict::Failed => "failed",
            Verdict::Misconfigured | Verdict::Invalid => "doubtful",
        }
    }

    fn codes(&self) -> String {
        let codes: Vec<&str> = self.0.tripped.iter().map(|code| code.name()).collect();
        codes.join(", ")
    }
}

pub(in super::super) async fn live(State(app): State<App>, Path(name): Path<String>) -> Response {
    let made = blocking(move || {
        let folder = app.shelf.folder(&name);
        make(&folder.ok_or_else(|| Refusal::no_campaign(&name))?)
    });
    made.await.unwrap_or_else(IntoResponse::into_response)
}

fn make(folder: &Folder) -> Result<Response, Refusal> {
    let has_record = folder.has_record();
    let (published, ended) = match folder.progress() {
        Progress::Running(published) => (published, false),
        Progress::None { left_behind: None } if !has_record => {
            return Err(Refusal::no_campaign(&folder.name));
        }
        Progress::None { left_behind } => (left_behind, true),
    };
    let seconds = published
        .as_ref()
        .and_then(|published| published.seconds_left)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let html = page(&LivePage {
        name: folder.name.clone(),
        link: link(&folder.name),
        ended,
        how: match (has_record, &published) {
            (true, None) => "The campaign has ended.",
            (true, Some(_)) => "The campaign was broken off.",
            (false, _) => "The campaign was broken off before anything was measured.",
        },
        has_record,
        verdicts: published
            .as_ref()
            .map_or_else(String::new, |published| in_words(published.counts)),
        time_left: seconds.map_or_else(String::new, progress::in_words),
        json: embedded(&published).unwrap_or_default(),
        published,
    })?;
    Ok(html.into_response())
}
