//! The report of one campaign, made from its record each time, with a strip that leads on from it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::super::App;
use super::super::guard::REPORT_POLICY;
use super::super::shelf::{Folder, Progress};
use super::files::{Download, downloads};
use super::{Refusal, blocking, link};
use crate::report;

#[derive(Template)]
#[template(path = "serve/strip.html")]
struct Strip {
    live: Option<String>,
    files: Vec<Download>,
}

/// What the pages of the app add comes after it.
const BEGIN_OF_HEADER: &str = "<header>";

pub(in super::super) async fn report(State(app): State<App>, Path(name): Path<String>) -> Response {
    let made = blocking(move || {
        let folder = app.shelf.folder(&name);
        make(&folder.ok_or_else(|| Refusal::no_campaign(&name))?)
    });
    made.await.unwrap_or_else(IntoResponse::into_response)
}

fn make(folder: &Folder) -> Result<Response, Refusal> {
    let progress = folder.progress();
    let Some(campaign) = folder.campaign().map_err(Refusal::unusable)? else {
        return without_record(folder, &progress);
    };
    let html = report::html(&campaign)
        .map_err(|error| Refusal::unusable(format!("{}: {error:#}", folder.name)))?;
    let running = matches!(progress, Progress::Running(_));
    let strip = Strip {
        live: running.then(|| format!("{}/live", link(&folder.name))),
        files: downloads(folder),
    };
    let strip = strip.render().map_err(|error| Refusal::ours(&error))?;
    let page = Html(with_strip(&html, &strip));
    Ok(([(CONTENT_SECURITY_POLICY, REPORT_POLICY)], page).into_response())
}

/// Nothing has been measured: yet, or ever.
fn without_record(folder: &Folder, progress: &Progress) -> Result<Response, Refusal> {
    match progress {
        Progress::Running(_) => {
            Ok(Redirect::to(&format!("{}/live", link(&folder.name))).into_response())
        }
        Progress::None {
            left_behind: Some(_),
        } => Err(Refusal::not_found(format!(
            "The campaign “{}” was broken off before anything was measured.",
            folder.name
        ))),
        Progress::None { left_behind: None } => Err(Refusal::no_campaign(&folder.name)),
    }
}

fn with_strip(html: &str, strip: &str) -> String {
    match html.split_once(BEGIN_OF_HEADER) {
        Some((before, after)) => format!("{before}{BEGIN_OF_HEADER}{strip}{after}"),
        None => html.to_owned(),
    }
}
