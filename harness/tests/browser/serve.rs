//! The pages of `lanebench serve`: the list, a report, a campaign while it runs, two campaigns side by side.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::campaign::Trial;
use harness::publication::{Publication, UnderWay};
use load::{Event, Live, Phase};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::{Browser, View};
use crate::reading::KINDS;
use crate::record::Record;
use crate::report::assert_every_number;
use crate::support::TestDatabase;
use crate::support::campaigns::lanebench;
use crate::{campaigns, page, reading};

/// Longer than anything takes to show; a test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(30);

/// A program that serves pages on a port of its choice.
struct Served {
    child: Child,
    /// Without a slash at its end.
    url: String,
}

impl Served {
    fn by(command: &mut Command) -> Served {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let begin = said.len();
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended: {said}");
            if let Some((_, rest)) = said[begin..].split_once("http://") {
                break format!("http://{}", rest.split('/').next().unwrap());
            }
        };
        // It is to go on talking.
        thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
        Served { child, url }
    }

    fn folder(results: &Path) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
        Served::by(
            command
                .arg("serve")
                .arg(results)
                .args(["--listen", "127.0.0.1:0"]),
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // As Ctrl-C does: a campaign ends its servers. It has ten seconds for it.
        let pid = Pid::from_raw(self.child.id().try_into().unwrap_or(0));
        let _ = kill(pid, Signal::SIGINT);
        let end = Instant::now() + LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(results: &Path, name: &str, record: &Value) {
    let folder = results.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("campaign.json"), record.to_string()).unwrap();
}

fn begin(folder: &Path, record: &Value) -> Publication {
    let plan = serde_json::from_value(record["plan"].clone()).unwrap();
    Publication::begin(folder, &plan, "2026-03-01T12:34:56Z".to_owned()).unwrap()
}

/// Waits until an expression is true in the page.
#[track_caller]
fn wait_for(browser: &Browser, expression: &str) {
    let end = Instant::now() + LIMIT;
    while browser.value(expression) != true {
        assert!(Instant::now() < end, "not in time: {expression}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn assert_good(browser: &Browser) {
    page::assert_fits(browser);
    page::assert_accessible(browser);
    page::assert_quiet(browser);
}

#[test]
fn the_list_changes_by_itself_and_leads_to_a_comparison_of_the_two_that_were_picked() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let results = TempDir::new().unwrap();
    write(results.path(), "before", &campaigns::rich());
    write(results.path(), "after", &campaigns::rich());
    write(
        results.path(),
        campaigns::HOSTILE.replace('/', "|").as_str(),
        &campaigns::hostile(),
    );
    fs::create_dir(results.path().join("broken")).unwrap();
    fs::write(results.path().join("broken/campaign.json"), "{").unwrap();
    let served = Served::folder(results.path());
    browser.open(&format!("{}/", served.url));
    assert_eq!(
        browser.value("document.querySelectorAll('#campaigns tr').length"),
        4
    );
    browser.run("window.same = true", json!([]));
    let running = begin(&results.path().join("running"), &campaigns::rich());
    wait_for(
        &browser,
        "document.querySelector('#campaigns a[href$=\"/running/live\"]') !== null",
    );
    drop(running);
    wait_for(
        &browser,
        "document.querySelector('#campaigns a[href*=\"/running\"]') === null",
    );
    assert_eq!(
        browser.value("window.same === true && typeof window.hacked"),
        "undefined"
    );
    assert_good(&browser);

    browser.run(
        "document.getElementById('a').value = 'before'; document.getElementById('b').value = 'after'; \
         document.querySelector('form button').click()",
        json!([]),
    );
    wait_for(
        &browser,
        "location.pathname === '/compare' && document.querySelectorAll('main table').length > 0",
    );
    let text = browser.value("document.querySelector('main').textContent");
    let text = text.as_str().unwrap();
    for expected in [
        "before",
        "after",
        "deadpool",
        "r2d2 (defaults)",
        "pipelined",
        "equivalent",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_good(&browser);
}

#[test]
fn a_served_report_is_the_whole_report() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let results = TempDir::new().unwrap();
    let record = campaigns::rich();
    write(results.path(), "one", &record);
    let served = Served::folder(results.path());
    browser.open(&format!("{}/campaigns/one", served.url));
    assert_every_number(&reading::page(&browser), Record(&record));
    assert_good(&browser);
}

/// What the load engine says at the end of each second of a trial.
fn second(at: u64) -> Event {
    Event::Second(Live {
        elapsed: Duration::from_secs(at),
        remaining: Duration::ZERO,
        phase: Phase::Window,
        correct: 1_000 + at,
        failed: 5,
        shed: 3,
        p50: Some(Duration::from_millis(at)),
        p99: Some(Duration::from_millis(2 * at)),
    })
}

#[test]
fn a_running_campaign_is_seen_second_by_second_and_verdict_by_verdict() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let results = TempDir::new().unwrap();
    let record = campaigns::rich();
    let trials: Vec<Trial> = serde_json::from_value(record["trials"].clone()).unwrap();
    let folder = results.path().join("running");
    let served = Served::folder(results.path());
    let mut publication = begin(&folder, &record);
    browser.open(&format!("{}/campaigns/running/live", served.url));
    browser.run("window.same = true", json!([]));
    publication.state(campaigns::HOSTILE);
    wait_for(
        &browser,
        "document.getElementById('state').textContent.includes('window.hacked')",
    );

    publication.reckon(trials.len(), Duration::from_secs(90));
    publication.trial_starts(UnderWay {
        workload: "point-read".to_owned(),
        server: campaigns::HOSTILE.to_owned(),
        rung: "8 connections".to_owned(),
        block: 1,
        phase: "starting the server".to_owned(),
        seconds: Default::default(),
    });
    for at in 1..=3 {
        publication.load_event(second(at), Some(Duration::from_secs(89 - at)));
        wait_for(
            &browser,
            &format!(
                "document.getElementById('second').textContent.includes('{} correct')",
                1_000 + at
            ),
        );
    }
    let drawn = browser.value(
        "[...document.querySelectorAll('#seconds .canvas')].map(e => echarts.getInstanceByDom(e).getOption().series \
         .map(series => [series.name, series.data.map(item => (item.value ?? item)[1])]))",
    );
    let expected = json!([
        [["p50", [1.0, 2.0, 3.0]], ["p99", [2.0, 4.0, 6.0]]],
        [
            ["correct", [1_001, 1_002, 1_003]],
            ["shed", [3, 3, 3]],
            ["failed", [2, 2, 2]]
        ],
    ]);
    assert_eq!(as_floats(&drawn), as_floats(&expected));

    // The record is saved after each trial, before its verdict is said.
    write(results.path(), "running", &record);
    publication.trial_ended(&trials[..1], Duration::from_secs(80));
    wait_for(
        &browser,
        "document.querySelectorAll('#fallen tr').length === 1",
    );
    let said = browser.value("document.getElementById('fallen').textContent + document.getElementById('left').textContent");
    for expected in ["deadpool", "1 connection", "valid", "1 m 20 s"] {
        assert!(
            said.as_str().unwrap().contains(expected),
            "{expected}: {said}"
        );
    }
    assert_good(&browser);
    drop(publication);
    wait_for(&browser, "!document.getElementById('ended').hidden");
    assert_eq!(
        browser.value("window.same === true && typeof window.hacked"),
        "undefined"
    );
    assert_eq!(
        browser.value("document.getElementById('report').getAttribute('href')"),
        "/campaigns/running"
    );
    page::assert_quiet(&browser);
}

/// 1 and 1.0 are one number here, and two in JSON.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.iter().map(as_floats).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_real_campaign_is_followed_to_its_end_and_every_number_of_its_report_is_its_records() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let _turn = crate::support::turn();
    let database = TestDatabase::fresh();
    let results = TempDir::new().unwrap();
    let folder = results.path().join("real");
    let arguments = "run ten-ms --preset smoke --window 3 -s deadpool,r2d2 --closed 1,8 --rates 100 --pool 4 --serve 127.0.0.1:0";
    let served = Served::by(
        lanebench(&database.url, arguments)
            .arg("--out")
            .arg(&folder),
    );
    browser.open(&format!("{}/campaigns/real/live", served.url));
    browser.run("window.same = true", json!([]));
    wait_for_long(
        &browser,
        "/second \\d+.*: \\d+ correct/i.test(document.getElementById('second').textContent)",
    );
    wait_for_long(
        &browser,
        "document.querySelectorAll('#fallen tr').length >= 2",
    );
    wait_for_long(&browser, "!document.getElementById('ended').hidden");
    assert_eq!(browser.value("window.same"), true);
    page::assert_quiet(&browser);

    let record: Value =
        serde_json::from_slice(&fs::read(folder.join("campaign.json")).unwrap()).unwrap();
    assert_eq!(record["trials"].as_array().unwrap().len(), 6);
    let left_behind = format!("file://{}", folder.join("report.html").display());
    for url in [format!("{}/campaigns/real", served.url), left_behind] {
        browser.open(&url);
        let page = reading::page(&browser);
        assert_every_number(&page, Record(&record));
        let drawn: BTreeSet<&str> = page.plots.iter().map(|plot| plot.kind.as_str()).collect();
        assert_eq!(drawn, BTreeSet::from(KINDS), "{url}");
        page::assert_quiet(&browser);
    }
    browser.look(View::PHONE);
    assert_good(&browser);
}

/// Servers may have to be built first.
#[track_caller]
fn wait_for_long(browser: &Browser, expression: &str) {
    let end = Instant::now() + Duration::from_secs(600);
    while Instant::now() < end && browser.value(expression) != true {
        thread::sleep(Duration::from_millis(100));
    }
    wait_for(browser, expression);
}
