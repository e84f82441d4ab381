//! `lanebench report`: what a campaign's record says, as a page, a pull request's text and a table of figures.

mod costs;
mod csv;
mod facts;
mod figure;
mod latency;
mod markdown;
mod page;
mod scene;
mod tables;
mod throughput;
mod timeline;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use askama::Template;
use clap::Args;
use serde::Serialize;

pub use csv::csv;
pub use markdown::markdown;

use crate::campaign::Campaign;
use crate::{results, stdout};

/// Apache ECharts, which draws the plots.
pub const ECHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.js"));

/// What draws the plots of a page with it.
pub const PLOTS: &str = include_str!("../templates/plots.js");

/// In the results folder.
const FILES: [&str; 3] = ["report.html", "report.md", "summary.csv"];

/// Flags of `lanebench report`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Results folder of a campaign, or the campaign.json in it
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
}

const EXAMPLES: &str = "\
Writes into the results folder:
  report.html   the page to look at: one file, needs no network
  report.md     for a pull request
  summary.csv   a row for each trial and metric

A run writes them by itself; this writes them again, by this version of lanebench.

Example:
  lanebench report results/today";

/// Writes the reports of a campaign and says where they are.
///
/// # Errors
/// The record cannot be read; nothing is written then. Or the folder cannot be written to.
pub fn run(args: &ReportArgs) -> Result<()> {
    let campaign = results::of_results(&args.results)?;
    let folder = if args.results.is_dir() {
        args.results.as_path()
    } else {
        args.results.parent().unwrap_or(Path::new("."))
    };
    write(folder, &campaign)?;
    let paths = FILES.map(|name| format!("{}\n", folder.join(name).display()));
    stdout::say(&paths.concat());
    Ok(())
}

/// Writes report.html, report.md and summary.csv into a folder, each in one step; none if one of them cannot be made.
///
/// # Errors
/// One line that names the file.
pub fn write(folder: &Path, campaign: &Campaign) -> Result<()> {
    let made = |name: &str| format!("{} cannot be made", folder.join(name).display());
    let [page, text, table] = FILES;
    let contents = [
        (page, html(campaign).with_context(|| made(page))?),
        (text, markdown(campaign)),
        (table, csv(campaign).with_context(|| made(table))?),
    ];
    for (name, content) in contents {
        results::replace(&folder.join(name), content.as_bytes())?;
    }
    Ok(())
}

/// JSON that may stand within a `<script>`: nothing in it can end that.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn embedded(json: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string(json)?.replace('<', r"\u003c"))
}

/// The whole page, which needs nothing else to be shown.
///
/// # Errors
/// The template cannot be rendered.
pub fn html(campaign: &Campaign) -> Result<String> {
    Ok(page::Page::of(campaign)?.render()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_within_a_page_cannot_end_the_script_around_it() {
        let embedded = embedded(&"</script><!--").unwrap();
        assert!(!embedded.contains('<'), "{embedded}");
        let back: String = serde_json::from_str(&embedded).unwrap();
        assert_eq!(back, "</script><!--");
    }
}
