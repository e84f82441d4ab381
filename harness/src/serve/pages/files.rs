//! Files of a campaign to take away, and the files that the pages need themselves.

use std::io::Read;

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use percent_encoding::utf8_percent_encode;

use super::super::App;
use super::super::shelf::Folder;
use super::{Refusal, UNRESERVED, blocking, link, no_such_page};
use crate::report::ECHARTS;

/// What may be downloaded, with its media type, in the order of the page.
const FILES: [(&str, &str); 4] = [
    ("report.html", "text/html; charset=utf-8"),
    ("report.md", "text/markdown; charset=utf-8"),
    ("summary.csv", "text/csv; charset=utf-8"),
    ("campaign.json", "application/json"),
];
/// Interval logs, by the end of their name.
const LOG: (&str, &str) = (".hlog", "text/plain; charset=utf-8");

/// A file to take away.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Download {
    pub(super) name: String,
    pub(super) link: String,
}

fn media_type(file: &str) -> Option<&'static str> {
    let fixed = FILES.iter().find(|(name, _)| file == *name);
    let (end, of_logs) = LOG;
    let is_log = file.strip_suffix(end).is_some_and(|name| !name.is_empty());
    fixed
        .map(|(_, media_type)| *media_type)
        .or(is_log.then_some(of_logs))
}

/// Those that are there; the interval logs are too many to name.
pub(super) fn downloads(folder: &Folder) -> Vec<Download> {
    let there = FILES.iter().filter(|(name, _)| folder.file(name).is_ok());
    there
        .map(|(name, _)| Download {
            name: (*name).to_owned(),
            link: format!("{}/files/{name}", link(&folder.name)),
        })
        .collect()
}

pub(in super::super) async fn download(
    State(app): State<App>,
    Path((name, file)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let read = blocking(move || {
        let folder = app.shelf.folder(&name);
        let folder = folder.ok_or_else(|| Refusal::no_campaign(&name))?;
        let none = || Refusal::not_found(format!("There is no file “{file}” to take away."));
        let media_type = media_type(&file).ok_or_else(none)?;
        let mut content = Vec::new();
        let mut opened = folder.file(&file).map_err(|_| none())?;
        opened.read_to_end(&mut content).map_err(|_| none())?;
        Ok((file, media_type, content))
    });
    let (file, media_type, content) = read.await?;
    // Never shown in place: a file is whoever's wrote it.
    let disposition = format!(
        "attachment; filename*=UTF-8''{}",
        utf8_percent_encode(&file, UNRESERVED)
    );
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, content).into_response())
}

pub(in super::super) async fn asset(Path(file): Path<String>) -> Response {
    let content = match file.as_str() {
        "echarts.js" => ECHARTS,
        "plots.js" => include_str!("../../../templates/plots.js"),
        "live.js" => include_str!("../../../templates/serve/live.js"),
        "list.js" => include_str!("../../../templates/serve/list.js"),
        _ => return no_such_page().await.into_response(),
    };
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        // Another build of the program may have others.
        (CACHE_CONTROL, "max-age=60"),
    ];
    (headers, content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_campaign_have_a_media_type() {
        for file in ["campaign.json", "report.html", "point-read-sqlx.hlog"] {
            assert!(media_type(file).is_some(), "{file}");
        }
        for file in [
            "progress.json",
            "running.lock",
            ".hlog",
            "campaign.json.unfinished",
            "",
        ] {
            assert!(media_type(file).is_none(), "{file}");
        }
    }
}
