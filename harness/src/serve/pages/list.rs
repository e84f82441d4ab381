//! The list of campaigns, with a form to compare two of them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::super::App;
use super::super::shelf::{Listed, Shelf, Standing, Summary};
use super::{Refusal, blocking, link, minute, page};
use crate::publication::VerdictCounts;

#[derive(Template)]
#[template(path = "serve/list.html")]
struct ListPage {
    folder: String,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    link: String,
    what: Result<What, String>,
}

struct What {
    standing: &'static str,
    running: bool,
    workloads: String,
    servers: String,
    preset: String,
    started_at: String,
    started: String,
    verdicts: String,
    has_record: bool,
}

impl ListPage {
    fn comparable(&self) -> Vec<&Row> {
        let has_record = |row: &&Row| row.what.as_ref().is_ok_and(|what| what.has_record);
        self.rows.iter().filter(has_record).collect()
    }
}

impl Row {
    fn of(listed: Listed) -> Row {
        Row {
            link: link(&listed.name),
            name: listed.name,
            what: listed.summary.map(What::of),
        }
    }
}

impl What {
    fn of(summary: Summary) -> What {
        What {
            standing: summary.standing.in_words(),
            running: summary.standing == Standing::Running,
            workloads: summary.workloads.join(", "),
            servers: summary.servers.join(", "),
            preset: summary.preset,
            started: minute(&summary.started_at),
            started_at: summary.started_at,
            verdicts: in_words(summary.counts),
            has_record: summary.has_record,
        }
    }
}

/// `54 valid, 2 INVALID`: what there is none of is left out.
pub(super) fn in_words(counts: VerdictCounts) -> String {
    let VerdictCounts {
        valid,
        failed,
        misconfigured,
        invalid,
    } = counts;
    let named = [
        (valid, "valid"),
        (failed, "FAILED"),
        (misconfigured, "MISCONFIGURED"),
        (invalid, "INVALID"),
    ];
    let some = named.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if some.is_empty() {
        "none yet".to_owned()
    } else {
        some.join(", ")
    }
}

pub(in super::super) async fn list(State(app): State<App>) -> Result<Html<String>, Refusal> {
    let shelf = Arc::clone(&app.shelf);
    blocking(move || of(&shelf, shelf.list())).await
}

/// The page of a list.
///
/// # Errors
/// The template cannot be rendered.
pub(in super::super) fn of(shelf: &Shelf, list: Vec<Listed>) -> Result<Html<String>, Refusal> {
    page(&ListPage {
        folder: shelf.root().display().to_string(),
        rows: list.into_iter().map(Row::of).collect(),
    })
}
