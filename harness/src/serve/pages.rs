//! The pages: what each is made from, and what is said where there is none.

pub(super) mod compare;
pub(super) mod files;
pub(super) mod list;
pub(super) mod live;
pub(super) mod report;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::task::spawn_blocking;

/// What stays as it is in a part of an address.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why there is no page, in one line.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    pub(super) fn no_campaign(name: &str) -> Refusal {
        Refusal {
            status: StatusCode::NOT_FOUND,
            why: format!("There is no campaign “{name}” here."),
        }
    }

    fn not_found(why: String) -> Refusal {
        Refusal {
            status: StatusCode::NOT_FOUND,
            why,
        }
    }

    /// A record that cannot be read, or says what cannot be.
    fn unusable(why: String) -> Refusal {
        Refusal {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            why,
        }
    }

    fn bad_request(why: &str) -> Refusal {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            why: why.to_owned(),
        }
    }

    /// A template that cannot be rendered: a mistake of ours.
    fn ours(error: &askama::Error) -> Refusal {
        Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            why: format!("The page cannot be made: {error}"),
        }
    }
}

#[derive(Template)]
#[template(path = "serve/refusal.html")]
struct RefusalPage<'a> {
    title: &'a str,
    why: &'a str,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let page = RefusalPage {
            title: match self.status {
                StatusCode::NOT_FOUND => "There is nothing here",
                StatusCode::UNPROCESSABLE_ENTITY => "This cannot be shown",
                _ => "This cannot be done",
            },
            why: &self.why,
        };
        match page.render() {
            Ok(page) => (self.status, Html(page)).into_response(),
            Err(_) => (self.status, self.why).into_response(),
        }
    }
}

pub(super) async fn no_such_page() -> Refusal {
    Refusal::not_found("There is no such page.".to_owned())
}

/// Runs what reads files or takes a while beside the thread that serves.
///
/// # Errors
/// Those of `work`. A record that was changed by hand may say what no campaign can; what that breaks is its page alone.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Refusal::unusable(
            "The record contradicts itself: it was changed since it was written.".to_owned(),
        ))
    })
}

fn page(template: &impl Template) -> Result<Html<String>, Refusal> {
    template
        .render()
        .map(Html)
        .map_err(|error| Refusal::ours(&error))
}

/// The address of a campaign's report, by the name of its folder.
pub(super) fn link(name: &str) -> String {
    format!("/campaigns/{}", utf8_percent_encode(name, UNRESERVED))
}

/// To the minute, for people; as it is where it is no instant.
fn minute(instant: &str) -> String {
    let parsed: Result<jiff::Timestamp, _> = instant.parse();
    parsed.map_or_else(
        |_| instant.to_owned(),
        |instant| instant.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_an_address_of_its_own() {
        for (name, expected) in [
            (
                "2026-01-01T00-00-00-point-read",
                "/campaigns/2026-01-01T00-00-00-point-read",
            ),
            ("a b+c", "/campaigns/a%20b%2Bc"),
            ("<b>\"'&#?%", "/campaigns/%3Cb%3E%22%27%26%23%3F%25"),
            ("ähm", "/campaigns/%C3%A4hm"),
        ] {
            assert_eq!(link(name), expected);
        }
    }
}
