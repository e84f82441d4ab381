//! The page of one campaign.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use harness::campaign::Campaign;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::{Browser, View};
use crate::reading::{KINDS, Page};
use crate::record::Record;
use crate::{campaigns, numbers, page, plots, reading};

/// A report must stay this small to be sent around.
const MOST_BYTES: usize = 6_000_000;

/// The page of a record, open in a browser, with the file it is in.
pub(crate) struct Report {
    pub(crate) browser: Browser,
    bytes: usize,
    _folder: TempDir,
}

impl Report {
    pub(crate) fn of(record: &Value) -> Option<Report> {
        Report::of_page(&html(record))
    }

    pub(crate) fn of_page(html: &str) -> Option<Report> {
        let browser = Browser::start()?;
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("report.html");
        fs::write(&file, html).unwrap();
        browser.open(&format!("file://{}", file.display()));
        reading::wait_until_drawn(&browser);
        Some(Report {
            browser,
            bytes: html.len(),
            _folder: folder,
        })
    }
}

pub(crate) fn html(record: &Value) -> String {
    // By way of text, as a file is read: a number may not be the same after it.
    let campaign: Campaign = serde_json::from_str(&record.to_string()).unwrap();
    harness::report::html(&campaign).unwrap()
}

#[test]
fn the_page_is_quiet_and_asks_nobody_for_anything() {
    let Some(report) = Report::of(&campaigns::rich()) else {
        return;
    };
    page::assert_quiet(&report.browser);
}

#[test]
fn everybody_can_read_the_page() {
    let Some(report) = Report::of(&campaigns::rich()) else {
        return;
    };
    // What is folded away is to be read as well; one of each kind is like all of them, and takes less long.
    report.browser.run(
        "for (const kind of ['figure details', 'details.trials', '#environment ~ details']) { \
            document.querySelector(kind).open = true; \
         }",
        json!([]),
    );
    page::assert_fits(&report.browser);
    page::assert_accessible(&report.browser);
}

#[test]
fn the_page_is_dark_where_the_reader_wants_it_dark_and_so_are_its_plots() {
    let Some(Report { browser, .. }) = Report::of(&campaigns::rich()) else {
        return;
    };
    let colors = |view: View| {
        browser.look(view);
        let colors = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, \
            document.querySelector('figure.plot svg text').getAttribute('fill')].join('; ')";
        browser.value(colors).as_str().unwrap().to_owned()
    };
    let light = colors(View::DESKTOP);
    let dark = colors(View::DESKTOP.dark());
    for (light, dark) in light.split("; ").zip(dark.split("; ")) {
        assert_ne!(light, dark);
    }
    assert_eq!(colors(View::DESKTOP), light);
    // Paper is white, whatever the screen is.
    let printed = colors(View::DESKTOP.printed());
    assert_eq!(colors(View::DESKTOP.dark().printed()), printed);
    assert!(printed.starts_with("rgb(255, 255, 255)"), "{printed}");
}

#[test]
fn every_plot_has_its_series_its_axes_and_the_same_as_a_table() {
    let Some(Report { browser, .. }) = Report::of(&campaigns::rich()) else {
        return;
    };
    let page = reading::page(&browser);
    let mut kinds: Vec<&str> = page.plots.iter().map(|plot| plot.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, KINDS);
    for plot in &page.plots {
        let what = &plot.title;
        assert!(
            !plot.x.name.is_empty() && !plot.y.name.is_empty(),
            "{what}: axes without names"
        );
        assert!(plot.label.contains(what), "{what}: nothing to be read out");
        assert!(
            !plot.series.is_empty() && plot.series.iter().all(|series| !series.points.is_empty()),
            "{what}: no data"
        );
        assert!(
            plot.series
                .iter()
                .all(|series| plot.legend.contains(&series.name)),
            "{what}: a series without its name"
        );
        assert!(
            plot.shapes > 10 && plot.height > 100.0,
            "{what}: nothing is drawn"
        );
        assert!(
            plot.table.is_some() || plot.kind == "timeline",
            "{what}: no table"
        );
    }
}

#[test]
fn every_plot_is_on_paper() {
    let Some(Report { browser, .. }) = Report::of(&campaigns::rich()) else {
        return;
    };
    browser.look(View::DESKTOP.printed());
    let hidden = browser.value(
        "[...document.querySelectorAll('figure.plot svg')].filter(e => !e.checkVisibility() || \
         e.getBoundingClientRect().width > document.documentElement.clientWidth).length",
    );
    assert_eq!(hidden, 0);
    assert!(
        browser
            .value("document.querySelectorAll('figure.plot svg').length")
            .as_u64()
            > Some(5)
    );
}

#[test]
fn every_number_is_the_one_in_the_record() {
    let record = campaigns::rich();
    let Some(Report { browser, .. }) = Report::of(&record) else {
        return;
    };
    let (page, record) = (reading::page(&browser), Record(&record));
    assert_every_number(&page, record);
}

pub(crate) fn assert_every_number(page: &Page, record: Record<'_>) {
    numbers::assert_trials(page, record);
    numbers::assert_rows(page, record);
    numbers::assert_environment(page, record);
    plots::assert_plots(page, record);
}

#[test]
fn a_number_that_is_not_the_one_in_the_record_is_noticed() {
    let record = campaigns::rich();
    let Some(Report { browser, .. }) = Report::of(&record) else {
        return;
    };
    let page = reading::page(&browser);
    let others = [
        "/environment/memory_bytes",
        "/plan/pool",
        "/pgbench/0/statements_per_second",
        "/trials/9/checks/0/figure",
        "/trials/9/window/requests_per_second",
        "/trials/9/window/response_ns/p99_9",
        "/trials/9/window/service_ns/p99",
        "/trials/9/window/counts/timeout",
        "/trials/9/window/server/rss_bytes",
        "/trials/9/window/load/2/shed",
        "/trials/9/window/response_percentiles/3/ns",
        "/trials/9/window/stages/database/mean",
    ];
    for pointer in others {
        let mut other = record.clone();
        let value = other.pointer_mut(pointer).unwrap();
        *value = match (value.as_u64(), value.as_f64()) {
            (Some(whole), _) => json!(whole + whole / 8 + 1),
            (_, Some(figure)) => json!(figure * 1.125),
            _ => json!("something else"),
        };
        let checked = catch_unwind(AssertUnwindSafe(|| {
            assert_every_number(&page, Record(&other))
        }));
        assert!(checked.is_err(), "{pointer}");
    }
}

#[test]
fn names_meant_to_do_harm_are_text_and_nothing_more() {
    let record = campaigns::hostile();
    let Some(Report { browser, .. }) = Report::of(&record) else {
        return;
    };
    // Everything that may be under the pointer has been under it.
    browser.run(
        "for (const canvas of document.querySelectorAll('figure.plot .canvas')) { \
            const chart = echarts.getInstanceByDom(canvas); \
            chart.getOption().series.forEach((_, seriesIndex) => chart.dispatchAction({ type: 'showTip', seriesIndex, dataIndex: 0 })); \
         }",
        json!([]),
    );
    assert_eq!(browser.value("typeof window.hacked"), "undefined");
    assert_eq!(
        browser.value("document.querySelectorAll('main img').length"),
        0
    );
    page::assert_quiet(&browser);
    let page = reading::page(&browser);
    numbers::assert_trials(&page, Record(&record));
    numbers::assert_environment(&page, Record(&record));
    let plots = page.plots.iter();
    let named = plots
        .filter(|plot| plot.title.contains(campaigns::HOSTILE))
        .count();
    assert_eq!(named, page.plots.len());
}

#[test]
fn the_page_of_a_large_campaign_is_small_and_has_every_trial() {
    let record = campaigns::large(2_000);
    let Some(report) = Report::of(&record) else {
        return;
    };
    assert!(report.bytes < MOST_BYTES, "{} bytes", report.bytes);
    let page = reading::page(&report.browser);
    let tables = page.tables.iter();
    let trials = tables.filter(|table| table.caption.ends_with(": trials"));
    assert_eq!(trials.map(|table| table.rows.len()).sum::<usize>(), 2_000);
    page::assert_quiet(&report.browser);
}
