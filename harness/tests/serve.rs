//! `lanebench serve` as a browser, and as somebody with worse intentions, meets it: over a socket, on results folders
//! that nobody measured.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::campaign::{Plan, State};
use harness::publication::Publication;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

mod support;

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../src/made_up.rs"]
mod made_up;

// For the made-up records.
use harness::campaign;
use made_up::closed;

/// Longer than anything takes; a test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(20);

fn record() -> Value {
    made_up::campaign(&["deadpool", "sqlx"], &[closed(8)], 3, &|server, _, _| {
        1e4 + 1e3 * server as f64
    })
}

fn write(folder: &Path, name: &str, record: &str) {
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("campaign.json"), record).unwrap();
}

fn begin(folder: &Path) -> Publication {
    let plan: Plan = serde_json::from_value(record()["plan"].clone()).unwrap();
    Publication::begin(folder, &plan, "2026-03-01T12:34:56Z".to_owned()).unwrap()
}

/// The program, serving on a free port.
struct Served {
    folder: TempDir,
    child: Child,
    address: SocketAddr,
    /// Open, so that it can go on talking.
    _stderr: BufReader<ChildStderr>,
}

impl Served {
    /// An empty folder.
    fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        fs::create_dir(&results).unwrap();
        let command = lanebench(&[results.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        Served::by(command, folder)
    }

    fn by(mut command: Command, folder: TempDir) -> Served {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .unwrap_or_else(|| panic!("{line}"));
        let address = address.split('/').next().unwrap().parse().unwrap();
        Served {
            folder,
            child,
            address,
            _stderr: stderr,
        }
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    fn get(&self, target: &str) -> Answer {
        self.ask(&format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ))
    }

    fn ask(&self, request: &str) -> Answer {
        let mut stream = self.connect(request);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn events(&self, target: &str) -> Events {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        Events(BufReader::new(self.connect(&request)))
    }

    /// Ends it as Ctrl-C does; how long that took.
    fn end(mut self) -> (Option<i32>, Duration) {
        let asked = Instant::now();
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let status = self.child.wait().unwrap().code();
        (status, asked.elapsed())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    /// In lower case.
    head: String,
    body: String,
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event's name and data.
    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "the stream has ended"
            );
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim().clone_into(&mut name);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    /// Whether the other side ends it, in time.
    fn ends(&mut self) -> bool {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).is_ok()
    }
}

fn lanebench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
    command.arg("serve").args(arguments).stdin(Stdio::null());
    command
}

#[track_caller]
fn refused(arguments: &[&str], wanted: &str) {
    let output = lanebench(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(wanted), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn campaigns_are_listed_newest_first_and_each_has_its_report() {
    let served = Served::start();
    let mut old = record();
    old["started_at"] = json!("2025-01-01T00:00:00Z");
    write(&served.results(), "old", &old.to_string());
    write(&served.results(), "new", &record().to_string());
    let list = served.get("/");
    assert_eq!(list.status, 200);
    let place = |name: &str| {
        list.body
            .find(&format!("href=\"/campaigns/{name}\""))
            .unwrap()
    };
    assert!(place("new") < place("old"));
    for wanted in [
        "point-read",
        "deadpool, sqlx",
        "snapshot",
        "complete",
        "6 valid",
        "2025-01-01 00:00 UTC",
    ] {
        assert!(list.body.contains(wanted), "{wanted}: {}", list.body);
    }
    let report = served.get("/campaigns/new");
    assert_eq!(report.status, 200);
    assert!(report.body.contains("All campaigns") && report.body.trim_end().ends_with("</html>"));
    assert!(!report.body.contains("watch it live"));
    assert_eq!(served.get("/healthz").body, "ok\n");
}

#[test]
fn nothing_outside_of_the_results_folder_is_read() {
    let served = Served::start();
    let secret = served.folder.path().join("secret");
    write(served.folder.path(), "secret", &record().to_string());
    fs::write(secret.join("report.md"), "secret").unwrap();
    write(&served.results(), "inside", &record().to_string());
    symlink(&secret, served.results().join("linked")).unwrap();
    symlink(
        secret.join("report.md"),
        served.results().join("inside/report.md"),
    )
    .unwrap();
    for target in [
        "/campaigns/..",
        "/campaigns/../secret",
        "/campaigns/..%2Fsecret",
        "/campaigns/%2e%2e%2fsecret",
        "/campaigns/%2E%2E",
        "/campaigns/.",
        "/campaigns/linked",
        "/campaigns/linked/live",
        "/campaigns/linked/events",
        "/campaigns/linked/files/campaign.json",
        "/campaigns/inside/files/report.md",
        "/campaigns/inside/files/..%2F..%2Fsecret%2Freport.md",
        "/campaigns/inside/files/..%2Fcampaign.json",
        "/campaigns/inside/files/%2Fetc%2Fpasswd",
        "/campaigns/inside/files/x%00.hlog",
        "/campaigns/inside/files/running.lock",
        "/campaigns/inside%00",
        "/campaigns/%2Fetc",
        "/campaigns//live",
        "/campaigns/inside/files/",
        "/assets/..%2Fbase.html",
        "/compare?a=..%2Fsecret&b=inside",
        "/compare?a=linked&b=inside",
    ] {
        let answer = served.get(target);
        assert_eq!(answer.status, 404, "{target}: {}", answer.body);
        assert!(!answer.body.contains("c0ffee"), "{target}");
    }
    assert_eq!(served.get("/campaigns/%ff").status, 400);
    let taken = served.get("/campaigns/inside/files/campaign.json");
    assert_eq!(taken.status, 200);
    assert!(taken.head.contains("content-disposition: attachment"));
    assert!(!served.get("/").body.contains("linked"));
}

#[test]
fn hostile_names_are_escaped_and_their_links_lead_to_them() {
    let served = Served::start();
    let names = [
        "<script>alert(1)<",
        "\"><img src=x onerror=alert(1)>",
        "it's & so on",
        "a#b?c%41d",
        "ähm 東京 🦀",
        "back\\slash",
        "{{ 7 * 7 }}",
        "line\nbreak",
    ];
    for name in names {
        let mut hostile = record();
        let workload = json!("</script><script>alert(2)</script>");
        hostile["plan"]["ladders"][0]["workload"] = workload.clone();
        for trial in hostile["trials"].as_array_mut().unwrap() {
            trial["workload"] = workload.clone();
        }
        hostile["plan"]["preset"] = json!("<b>bold</b>");
        write(&served.results(), name, &hostile.to_string());
    }
    let list = served.get("/").body;
    for poison in ["<script>alert", "<img", "<b>bold"] {
        assert!(!list.contains(poison), "{poison}");
    }
    let links: Vec<&str> = list
        .split("<a href=\"/campaigns/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(links.len(), names.len());
    for link in links {
        let live = served.get(&format!("/campaigns/{link}/live"));
        assert_eq!(live.status, 200, "{link}");
        for poison in ["<script>alert", "<img"] {
            assert!(!live.body.contains(poison), "{link}: {poison}");
        }
        assert_eq!(
            served.get(&format!("/campaigns/{link}")).status,
            200,
            "{link}"
        );
    }
}

#[test]
fn a_record_that_cannot_be_read_gets_one_clear_line() {
    let served = Served::start();
    let whole = record().to_string();
    let mut newer = record();
    newer["schema"] = json!(campaign::SCHEMA + 1);
    let mut edited = record();
    edited["trials"][0]["window"]["seconds"] = json!("three");
    for (name, text, wanted) in [
        (
            "truncated",
            &whole[..whole.len() / 2],
            "is not the record of a campaign",
        ),
        ("empty", "", "is not the record of a campaign"),
        ("newer", &newer.to_string(), "this lanebench reads"),
        (
            "edited",
            &edited.to_string(),
            "is not the record of a campaign",
        ),
    ] {
        write(&served.results(), name, text);
        let page = served.get(&format!("/campaigns/{name}"));
        assert_eq!(page.status, 422, "{name}");
        assert!(page.body.contains(wanted), "{name}: {}", page.body);
        assert!(page.body.contains("All campaigns") && page.body.trim_end().ends_with("</html>"));
        let list = served.get("/").body;
        let row = list.split("<tr").find(|row| row.contains(name)).unwrap();
        assert!(row.contains(wanted), "{row}");
        write(&served.results(), "whole", &whole);
        let compared = served.get(&format!("/compare?a=whole&b={name}"));
        assert_eq!(compared.status, 422, "{name}");
        assert!(compared.body.contains(wanted), "{name}");
    }
}

#[test]
fn a_campaign_is_followed_to_its_end() {
    let served = Served::start();
    let today = served.results().join("today");
    let mut list = served.events("/events");
    assert_eq!(list.next().0, "changed");
    let mut publication = begin(&today);
    let (name, page) = list.next();
    assert_eq!(name, "changed");
    // What has changed comes with the word of it.
    assert!(page.as_str().unwrap().contains("running: watch it"));
    assert!(served.get("/").body.contains("running: watch it"));
    let report = served.get("/campaigns/today");
    assert_eq!(report.status, 303);
    assert!(report.head.contains("location: /campaigns/today/live"));
    let live = served.get("/campaigns/today/live");
    assert!(live.body.contains("EventSource") || live.body.contains("/assets/live.js"));

    let mut events = served.events("/campaigns/today/events");
    let (name, progress) = events.next();
    assert_eq!(
        (name.as_str(), &progress["state"]),
        ("progress", &json!("starting"))
    );
    publication.state("building </script> the servers");
    let (_, progress) = events.next();
    assert_eq!(progress["state"], "building </script> the servers");
    let live = served.get("/campaigns/today/live").body;
    assert!(
        live.contains("building \\u003c/script> the servers"),
        "{live}"
    );
    assert!(
        live.contains("building &#60;/script&#62; the servers"),
        "{live}"
    );

    write(&served.results(), "today", &record().to_string());
    assert!(
        served
            .get("/campaigns/today")
            .body
            .contains("watch it live")
    );
    drop(publication);
    let (name, progress) = events.next();
    assert_eq!(
        (name.as_str(), &progress["state"]),
        ("progress", &json!("complete"))
    );
    assert_eq!(progress["fallen"].as_array().unwrap().len(), 6);
    let ended = events.next();
    assert_eq!(
        ended,
        ("ended".to_owned(), json!({ "report": "/campaigns/today" }))
    );
    assert!(events.ends());
    let live = served.get("/campaigns/today/live").body;
    assert!(live.contains("The campaign has ended.") && !live.contains("live.js"));
}

#[test]
fn a_campaign_that_was_killed_does_not_pass_for_a_running_one() {
    let served = Served::start();
    let today = served.results().join("today");
    let publication = begin(&today);
    let killed = served.results().join("killed");
    fs::create_dir(&killed).unwrap();
    for file in ["progress.json", "running.lock"] {
        fs::copy(today.join(file), killed.join(file)).unwrap();
    }
    let list = served.get("/").body;
    let row = |name: &str| list.split("<tr").find(|row| row.contains(name)).unwrap();
    assert!(row("killed").contains("broken off"), "{}", row("killed"));
    assert!(row("today").contains("running"), "{}", row("today"));
    let mut events = served.events("/campaigns/killed/events");
    assert_eq!(
        events.next(),
        ("ended".to_owned(), json!({ "report": null }))
    );
    assert!(
        served
            .get("/campaigns/killed")
            .body
            .contains("broken off before anything was measured")
    );
    drop(publication);
}

#[test]
fn another_sites_page_cannot_read_it_through_a_name_of_its_own() {
    let served = Served::start();
    for (host, status) in [
        ("Host: localhost:1234\r\n", 200),
        ("Host: 127.0.0.1\r\n", 200),
        ("Host: [::1]:80\r\n", 200),
        ("Host: evil.example\r\n", 421),
        ("Host: localhost.evil.example\r\n", 421),
        ("Host: localhost\r\nHost: evil.example\r\n", 421),
    ] {
        let answer = served.ask(&format!(
            "GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
        ));
        assert_eq!(answer.status, status, "{host}");
    }
    let page = served.get("/");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    assert!(!page.head.contains("access-control"), "{}", page.head);
    let post =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(served.ask(post).status, 405);
}

#[test]
fn two_campaigns_are_compared_by_the_names_that_were_picked() {
    let served = Served::start();
    write(&served.results(), "before & after", &record().to_string());
    write(&served.results(), "b", &record().to_string());
    let page = served.get("/compare?a=before+%26+after&b=b");
    assert_eq!(page.status, 200, "{}", page.body);
    for wanted in [
        "before &#38; after",
        "deadpool",
        "requests per second",
        "point-read",
    ] {
        assert!(page.body.contains(wanted), "{wanted}: {}", page.body);
    }
    let other = made_up::campaign(&["r2d2"], &[closed(8)], 2, &|_, _, _| 1e4);
    write(&served.results(), "other", &other.to_string());
    let refused = served.get("/compare?a=other&b=b");
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("in common"), "{}", refused.body);
    for target in ["/compare", "/compare?a=b", "/compare?a=b&b=b"] {
        assert_eq!(served.get(target).status, 400, "{target}");
    }
}

#[test]
fn ctrl_c_ends_it_although_somebody_watches() {
    let served = Served::start();
    let publication = begin(&served.results().join("today"));
    let mut events = served.events("/campaigns/today/events");
    let mut list = served.events("/events");
    assert_eq!(
        (events.next().0.as_str(), list.next().0.as_str()),
        ("progress", "changed")
    );
    let _silent = TcpStream::connect(served.address).unwrap();
    let (status, took) = served.end();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(events.ends() && list.ends());
    drop(publication);
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    refused(
        &["/no/such/folder"],
        "/no/such/folder: there is no such folder",
    );
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = address.port();
    let arguments = [
        folder.path().to_str().unwrap(),
        "--listen",
        &address.to_string(),
    ];
    refused(
        &arguments,
        &format!("port {port} is taken; name another, such as --listen 127.0.0.1:"),
    );
    let output = lanebench(&["--listen", "8080"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("give an address and a port"), "{said}");
}

#[test]
fn a_folder_that_goes_away_is_an_empty_list() {
    let served = Served::start();
    fs::remove_dir(served.results()).unwrap();
    let list = served.get("/");
    assert_eq!(list.status, 200);
    assert!(list.body.contains("None yet."));
}

#[test]
fn a_run_is_watched_while_it_measures_and_its_report_is_served_until_ctrl_c() {
    let _turn = support::turn();
    let database = support::TestDatabase::fresh();
    let folder = tempfile::tempdir().unwrap();
    let arguments = "run hello -s deadpool --preset smoke --closed 4 --scale 0.001 --window 3";
    let mut command = support::campaigns::lanebench(&database.url, arguments);
    let today = folder.path().join("results/today");
    command
        .args(["--serve", "127.0.0.1:0", "--out"])
        .arg(&today);
    command.stdout(Stdio::null());
    let served = Served::by(command, folder);
    let listed = (0..1_000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        served.get("/").body.contains("/campaigns/today")
    });
    assert!(listed);
    let mut events = served.events("/campaigns/today/events");
    let mut seen = Vec::new();
    let ended = loop {
        match events.next() {
            (name, progress) if name == "progress" => seen.push(progress),
            (_, ended) => break ended,
        }
    };
    assert_eq!(ended["report"], "/campaigns/today");
    let measured = |progress: &&Value| {
        let seconds = progress["trial"]["seconds"].as_array();
        seconds.is_some_and(|seconds| {
            let last = seconds.last();
            last.is_some_and(|second| {
                second["measured"] == true && second["correct"].as_u64() > Some(0)
            })
        })
    };
    assert!(seen.iter().any(|progress| measured(&progress)), "{seen:?}");
    assert!(
        seen.iter()
            .any(|progress| progress["fallen"][0]["server"] == "deadpool")
    );
    assert_eq!(
        support::campaigns::campaign_in(&today).state,
        State::Complete
    );
    let report = served.get("/campaigns/today");
    assert!(report.status == 200 && report.body.trim_end().ends_with("</html>"));
    for left in ["progress.json", "running.lock", "progress.json.unfinished"] {
        assert!(!today.join(left).exists(), "{left}");
    }
    let (status, _) = served.end();
    assert!(matches!(status, Some(0 | 1)), "{status:?}");
}
