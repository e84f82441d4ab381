//! `lanebench report`: what a campaign's record says, as a page, a pull request's text and a table of figures.

use std::path::PathBuf;

use anyhow::Result;
use askama::Template;
use clap::Args;

use crate::campaign::Campaign;

/// Apache ECharts, which draws the plots.
pub const ECHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.js"));

/// Flags of `lanebench report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Results folder of a campaign
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
}

/// The whole page, which needs nothing else to be shown.
///
/// # Errors
/// The template cannot be rendered.
pub fn html(campaign: &Campaign) -> Result<String> {
    let workloads: Vec<&str> = campaign
        .plan
        .ladders
        .iter()
        .map(|ladder| ladder.workload.as_str())
        .collect();
    let page = Page {
        title: format!("lanebench: {}", workloads.join(", ")),
    };
    Ok(page.render()?)
}
