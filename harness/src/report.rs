//! `lanebench report`: what a campaign's record says, as a page, a pull request's text and a table of figures.

mod costs;
mod facts;
mod figure;
mod latency;
mod page;
mod scene;
mod tables;
mod throughput;
mod timeline;

use std::path::PathBuf;

use anyhow::Result;
use askama::Template;
use clap::Args;

use crate::campaign::Campaign;

/// Apache ECharts, which draws the plots.
pub const ECHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.js"));

/// What draws the plots of a page with it.
pub const PLOTS: &str = include_str!("../templates/plots.js");

/// Flags of `lanebench report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Results folder of a campaign
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
}

/// The whole page, which needs nothing else to be shown.
///
/// # Errors
/// The template cannot be rendered.
pub fn html(campaign: &Campaign) -> Result<String> {
    Ok(page::Page::of(campaign)?.render()?)
}
