//! The comparison of two campaigns that the reader picked.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use percent_encoding::utf8_percent_encode;
use stats::Interval;

use super::super::App;
use super::super::shelf::Folder;
use super::{Refusal, UNRESERVED, blocking, link, page};
use crate::campaign::Campaign;
use crate::compare::{self, ComparedRow, Comparison};
use crate::metric::Metric;

#[derive(Template)]
#[template(path = "serve/compare.html")]
struct ComparePage {
    a: Side,
    b: Side,
    /// The address with A and B in each other's place.
    swapped: String,
    comparison: Comparison,
}

struct Side {
    name: String,
    link: String,
}

impl Side {
    fn of(folder: &Folder) -> Side {
        Side {
            name: folder.name.clone(),
            link: link(&folder.name),
        }
    }
}

const NO_FIGURE: &str = "-";

impl ComparePage {
    fn figure(&self, metric: &Metric, value: &Option<f64>) -> String {
        value.map_or_else(|| NO_FIGURE.to_owned(), |value| metric.show(value))
    }

    fn ratio(&self, row: &ComparedRow) -> String {
        row.ratio
            .map_or_else(|| NO_FIGURE.to_owned(), |ratio| format!("{ratio:.3}"))
    }

    fn interval(&self, row: &ComparedRow) -> String {
        let ends = |Interval { low, high }| format!("{low:.3} to {high:.3}");
        row.interval.map_or_else(|| NO_FIGURE.to_owned(), ends)
    }

    fn probability(&self, row: &ComparedRow) -> String {
        match row.adjusted_p_value {
            None => NO_FIGURE.to_owned(),
            Some(p_value) if p_value < 0.001 => "<0.001".to_owned(),
            Some(p_value) => format!("{p_value:.3}"),
        }
    }

    fn class(&self, row: &ComparedRow) -> &'static str {
        match (row.faster || row.equivalent, row.slower) {
            (true, _) => " valid",
            (_, true) => " failed",
            _ => "",
        }
    }
}

pub(in super::super) async fn compare(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Response {
    let made = blocking(move || {
        let (a, b) = chosen(query.as_deref().unwrap_or_default())?;
        let folder = |name: String| {
            let folder = app.shelf.folder(&name);
            folder.ok_or_else(|| Refusal::no_campaign(&name))
        };
        let (a, b) = (folder(a)?, folder(b)?);
        let (of_a, of_b) = (record(&a)?, record(&b)?);
        let sides = ((a.name.as_ref(), &of_a), (b.name.as_ref(), &of_b));
        let comparison = compare::campaigns(sides.0, sides.1)
            .map_err(|error| Refusal::unusable(format!("{error:#}")))?;
        let part = |folder: &Folder| utf8_percent_encode(&folder.name, UNRESERVED).to_string();
        let html = page(&ComparePage {
            swapped: format!("/compare?a={}&b={}", part(&b), part(&a)),
            a: Side::of(&a),
            b: Side::of(&b),
            comparison,
        })?;
        Ok(html.into_response())
    });
    made.await.unwrap_or_else(IntoResponse::into_response)
}

fn record(folder: &Folder) -> Result<Campaign, Refusal> {
    let campaign = folder.campaign().map_err(Refusal::unusable)?;
    campaign.ok_or_else(|| {
        Refusal::not_found(format!(
            "The campaign “{}” has nothing measured yet.",
            folder.name
        ))
    })
}

/// The two names of `a=…&b=…`.
fn chosen(query: &str) -> Result<(String, String), Refusal> {
    let value = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find_map(|(key, value)| (key == wanted).then(|| value.into_owned()))
    };
    match (value("a"), value("b")) {
        (Some(a), Some(b)) if a == b => {
            Err(Refusal::bad_request("Choose two different campaigns."))
        }
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(Refusal::bad_request(
            "Choose two campaigns in the list: /compare?a=…&b=…",
        )),
    }
}
