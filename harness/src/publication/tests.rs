use std::collections::VecDeque;

use load::Live;
use serde_json::json;

use super::*;
use crate::checks::Code;
use crate::made_up;

fn plan() -> Plan {
    let plan = made_up::plan(&["deadpool", "sqlx"], &[made_up::closed(8)], 3);
    serde_json::from_value(plan).unwrap()
}

fn begin(folder: &Path) -> Publication {
    Publication::begin(folder, &plan(), "2026-01-01T00:00:00Z".to_owned()).unwrap()
}

fn published(folder: &Path) -> Published {
    serde_json::from_slice(&fs::read(folder.join(PROGRESS_FILE)).unwrap()).unwrap()
}

fn under_way() -> UnderWay {
    UnderWay {
        workload: "point-read".to_owned(),
        server: "sqlx".to_owned(),
        rung: "8 connections".to_owned(),
        block: 1,
        phase: "starting the server".to_owned(),
        seconds: VecDeque::new(),
    }
}

fn second(at: u64, phase: Phase) -> Event {
    Event::Second(Live {
        phase,
        elapsed: Duration::from_secs(at),
        remaining: Duration::ZERO,
        correct: 100 * at,
        failed: 0,
        shed: 0,
        p50: Some(Duration::from_millis(2)),
        p99: None,
    })
}

#[test]
fn a_campaign_that_measures_nothing_leaves_no_folder_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("results/today");
    let publication = begin(&folder);
    fs::write(folder.join("point-read-sqlx.hlog"), "").unwrap();
    drop(publication);
    assert!(!temp.path().join("results").exists());
}

#[test]
fn what_was_measured_stays_and_only_the_progress_goes() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("today");
    let publication = begin(&folder);
    for name in ["campaign.json", "point-read-sqlx.hlog"] {
        fs::write(folder.join(name), "{}").unwrap();
    }
    drop(publication);
    let left = fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn a_folder_that_was_there_before_stays() {
    let temp = tempfile::tempdir().unwrap();
    drop(begin(temp.path()));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn the_lock_is_held_as_long_as_the_campaign_runs_and_one_campaign_has_it() {
    let temp = tempfile::tempdir().unwrap();
    let publication = begin(temp.path());
    let lock = File::open(temp.path().join(LOCK_FILE)).unwrap();
    assert!(is_held(&lock));
    let second = Publication::begin(temp.path(), &plan(), String::new());
    let error = second.expect_err("locked").to_string();
    assert!(error.contains("another lanebench measures"), "{error}");
    drop(publication);
    assert!(!is_held(&lock));
}

#[test]
fn a_reader_sees_the_trial_under_way_second_by_second_and_then_its_verdict() {
    let temp = tempfile::tempdir().unwrap();
    let mut publication = begin(temp.path());
    publication.state("measuring");
    publication.reckon(6, Duration::from_secs(30));
    publication.trial_starts(under_way());
    publication.load_event(second(1, Phase::Warmup), None);
    let seen = published(temp.path()).trial.unwrap();
    assert_eq!((seen.phase.as_str(), seen.seconds.len()), ("warm-up", 1));
    publication.load_event(Event::WindowStart, None);
    for at in 2..=200 {
        publication.load_event(second(at, Phase::Window), Some(Duration::from_secs(20)));
    }
    let seen = published(temp.path());
    assert_eq!(seen.seconds_left, Some(20.0));
    let seen = seen.trial.unwrap();
    assert_eq!(seen.phase, "window");
    assert_eq!((seen.seconds.len(), seen.seconds[0].at), (120, 81.0));
    assert_eq!(seen.seconds[119].p50_ms, Some(2.0));

    let mut trial = made_up::trial(&["deadpool", "sqlx"], 1, &made_up::closed(8), 1_000.0);
    trial["verdict"] = json!("failed");
    trial["checks"] = json!([
        { "code": "HTTP", "outcome": "tripped", "verdict": "failed", "figure": "3 answers of status 500" },
        { "code": "BODY", "outcome": "passed", "verdict": "valid", "figure": "all" },
    ]);
    let trial: Trial = serde_json::from_value(trial).unwrap();
    publication.trial_ended(&[trial], Duration::from_secs(19));
    let seen = published(temp.path());
    assert_eq!((seen.trials_done, seen.trials_left), (1, 5));
    assert_eq!((seen.counts.failed, seen.trial), (1, None));
    assert_eq!(seen.fallen[0].tripped, [Code::Http]);
    assert_eq!(seen.fallen[0].number, 1);
}

#[test]
fn the_file_stays_small_however_many_trials_there_are() {
    let temp = tempfile::tempdir().unwrap();
    let mut publication = begin(temp.path());
    let servers = ["deadpool", "sqlx"];
    let trial = made_up::trial(&servers, 1, &made_up::closed(8), 1_000.0);
    let trial: Trial = serde_json::from_value(trial).unwrap();
    let trials: Vec<Trial> = (0..2_000)
        .map(|block| Trial {
            block,
            ..trial.clone()
        })
        .collect();
    publication.trial_ended(&trials, Duration::ZERO);
    let seen = published(temp.path());
    assert_eq!((seen.counts.valid, seen.fallen.len()), (2_000, 100));
    assert_eq!(seen.fallen[0].number, 1_901);
    assert!(fs::metadata(temp.path().join(PROGRESS_FILE)).unwrap().len() < 30_000);
}
