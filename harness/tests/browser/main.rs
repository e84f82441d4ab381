//! The pages that people look at, in a real browser: Chromium and chromedriver of this machine. Where there are none the
//! tests say so; `LANEBENCH_TEST_BROWSER=required` makes that a failure.

#![allow(clippy::unwrap_used)]

mod axe;
mod by_hand;
mod campaigns;
mod driver;
mod numbers;
mod page;
mod plot_tables;
mod plots;
mod reading;
mod record;
mod report;
mod serve;
#[path = "../support/mod.rs"]
mod support;
mod throughput;
mod tool;
