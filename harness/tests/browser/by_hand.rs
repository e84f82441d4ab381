//! What is run by hand, on a campaign of one's own: the pictures of the documentation, and how long pages take.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use harness::results;
use serde_json::{Value, json};

use crate::driver::{Browser, View};
use crate::reading;
use crate::report::Report;
use crate::{campaigns, report};

/// Results folder of the campaign, an absolute path.
const RESULTS_VARIABLE: &str = "LANEBENCH_RESULTS";

/// Larger pictures are not for a repository.
const MOST_PICTURE_BYTES: usize = 300_000;

/// Repeats of a page's loading.
const TIMES: usize = 5;

fn given() -> Value {
    let folder = std::env::var(RESULTS_VARIABLE);
    let folder = folder.unwrap_or_else(|_| panic!("{RESULTS_VARIABLE} names no results folder"));
    let file = Path::new(&folder).join("campaign.json");
    results::read(&file).unwrap_or_else(|error| panic!("{error:#}"));
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
#[ignore = "writes docs/images from the campaign in LANEBENCH_RESULTS"]
fn pictures_for_the_documentation() {
    let Some(Report { browser, .. }) = Report::of(&given()) else {
        return;
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    fs::create_dir_all(&folder).unwrap();
    let phone = View {
        height: 800,
        ..View::PHONE
    };
    let shots = [
        ("report.png", View::DESKTOP, "main"),
        ("report-dark.png", View::DESKTOP.dark(), "main"),
        ("report-phone.png", phone, "main"),
        ("throughput.png", View::DESKTOP, "[data-plot=throughput]"),
        ("percentiles.png", View::DESKTOP, "#percentiles"),
        (
            "stages-dark.png",
            View::DESKTOP.dark(),
            "[data-plot=stages]",
        ),
        ("rows.png", View::DESKTOP, "#rows"),
    ];
    for (name, view, place) in shots {
        browser.look(view);
        if browser.run(SHOW, json!([place])) == false {
            println!("{name}: left out, the campaign has no {place}");
            continue;
        }
        let picture = BASE64_STANDARD.decode(browser.picture()).unwrap();
        println!("{name}: {} bytes", picture.len());
        assert!(picture.len() < MOST_PICTURE_BYTES, "{name} is too large");
        fs::write(folder.join(name), picture).unwrap();
    }
}

/// Scrolls so that an element stands at the top; false if there is none.
const SHOW: &str = "const element = document.querySelector(arguments[0]); \
    if (!element) return false; \
    (element.closest('figure') ?? element).scrollIntoView(); \
    if (arguments[0] === 'main') scrollTo(0, 0); \
    return new Promise(done => setTimeout(() => done(true), 400))";

/// From the navigation: when the first plots were there to be seen, and when the last was drawn.
const TIMES_OF_THE_PAGE: &str = "const [page] = performance.getEntriesByType('navigation'); \
    const paints = performance.getEntriesByType('paint'); \
    return [paints[paints.length - 1]?.startTime ?? 0, page.domContentLoadedEventEnd, \
        Number(document.documentElement.dataset.drawn)].map(Math.round)";

#[test]
#[ignore = "prints how long pages take: smaller than a snapshot, of 2,000 trials, and the one in LANEBENCH_RESULTS"]
fn how_long_pages_take() {
    let mut pages = vec![
        ("made up", campaigns::rich()),
        ("2,000 trials", campaigns::large(2_000)),
    ];
    if std::env::var_os(RESULTS_VARIABLE).is_some() {
        pages.push((RESULTS_VARIABLE, given()));
    }
    for (name, record) in pages {
        let html = report::html(&record);
        println!("{name}: {} bytes", html.len());
        for _ in 0..TIMES {
            // Each time a browser that has seen nothing yet.
            let Some(Report { browser, .. }) = Report::of_page(&html) else {
                return;
            };
            print_times(&browser);
        }
    }
}

fn print_times(browser: &Browser) {
    let drawn = reading::wait_until_drawn(browser);
    let times = browser.run(TIMES_OF_THE_PAGE, json!([]));
    println!(
        "  first paint {} ms, page ready {} ms, all plots {drawn} ms",
        times[0], times[1]
    );
}
