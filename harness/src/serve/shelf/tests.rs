use std::os::unix::fs::symlink;

use rustix::fs::{FileType, mknodat};
use serde_json::{Value, json};

use super::*;
use crate::campaign::Plan;
use crate::made_up;
use crate::publication::Publication;

fn record() -> Value {
    made_up::campaign(&["deadpool"], &[made_up::closed(8)], 2, &|_, _, _| 1e4)
}

fn plan() -> Plan {
    serde_json::from_value(record()["plan"].clone()).unwrap()
}

fn write(root: &Path, name: &str, record: &[u8]) {
    fs::create_dir_all(root.join(name)).unwrap();
    fs::write(root.join(name).join(CAMPAIGN_FILE), record).unwrap();
}

fn standings(shelf: &Shelf) -> Vec<(String, Result<Standing, String>)> {
    let listed = shelf.list().into_iter();
    listed
        .map(|listed| (listed.name, listed.summary.map(|summary| summary.standing)))
        .collect()
}

#[test]
fn a_running_campaign_is_told_from_one_that_was_killed_by_its_lock() {
    let temp = tempfile::tempdir().unwrap();
    let shelf = Shelf::of(temp.path());
    let mut running = record();
    running["state"] = json!("running");
    write(temp.path(), "killed", running.to_string().as_bytes());
    let live = temp.path().join("live");
    let publication = Publication::begin(&live, &plan(), "2026-02-01T00:00:00Z".into()).unwrap();
    let unsaved = temp.path().join("unsaved");
    fs::create_dir(&unsaved).unwrap();
    fs::copy(live.join(PROGRESS_FILE), unsaved.join(PROGRESS_FILE)).unwrap();
    fs::write(unsaved.join(LOCK_FILE), "").unwrap();
    let seen = standings(&shelf);
    let expected = [
        ("live", Standing::Running),
        ("unsaved", Standing::BrokenOff),
        ("killed", Standing::BrokenOff),
    ];
    assert_eq!(
        seen,
        expected.map(|(name, standing)| (name.into(), Ok(standing)))
    );
    drop(publication);
    assert_eq!(standings(&shelf).len(), 2);
}

#[test]
fn a_record_is_read_again_when_it_has_changed() {
    let temp = tempfile::tempdir().unwrap();
    let shelf = Shelf::of(temp.path());
    let mut record = record();
    write(temp.path(), "today", record.to_string().as_bytes());
    assert_eq!(standings(&shelf)[0].1, Ok(Standing::Complete));
    record["state"] = json!("interrupted");
    write(temp.path(), "today", record.to_string().as_bytes());
    assert_eq!(standings(&shelf)[0].1, Ok(Standing::Interrupted));
    write(temp.path(), "today", b"{\"schema\"");
    let error = standings(&shelf)[0].1.clone().unwrap_err();
    assert!(
        error.starts_with("today/campaign.json is not the record"),
        "{error}"
    );
    assert!(!error.contains('\n'));
}

#[test]
fn there_is_no_way_out_of_the_results_folder() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("results");
    write(temp.path(), "outside", record().to_string().as_bytes());
    write(&root, "inside", record().to_string().as_bytes());
    symlink(temp.path().join("outside"), root.join("linked")).unwrap();
    fs::create_dir(root.join("hollow")).unwrap();
    let record = temp.path().join("outside").join(CAMPAIGN_FILE);
    symlink(&record, root.join("hollow").join(CAMPAIGN_FILE)).unwrap();
    let shelf = Shelf::of(&root);
    for name in [
        "",
        ".",
        "..",
        "../outside",
        "linked",
        "inside/..",
        "inside\0",
        "/etc",
    ] {
        assert!(shelf.folder(name).is_none(), "{name:?}");
    }
    assert!(shelf.folder(temp.path().to_str().unwrap()).is_none());
    let inside = shelf.folder("inside").unwrap();
    for name in [
        "..",
        "../inside/campaign.json",
        "/etc/passwd",
        "",
        "campaign.json\0",
    ] {
        assert!(inside.file(name).is_err(), "{name:?}");
    }
    assert!(matches!(inside.campaign(), Ok(Some(_))));
    let error = shelf.folder("hollow").unwrap().campaign().unwrap_err();
    assert!(error.contains("symbolic link"), "{error}");
}

#[test]
fn a_folder_or_a_pipe_in_the_place_of_a_record_holds_nobody_up() {
    let temp = tempfile::tempdir().unwrap();
    let shelf = Shelf::of(temp.path());
    fs::create_dir_all(temp.path().join("folder/campaign.json")).unwrap();
    fs::create_dir(temp.path().join("pipe")).unwrap();
    let pipe = temp.path().join("pipe").join(CAMPAIGN_FILE);
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::write(temp.path().join("notes.txt"), "").unwrap();
    fs::create_dir(temp.path().join("empty")).unwrap();
    let seen = standings(&shelf);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(
        seen.iter().all(|(_, standing)| standing.is_err()),
        "{seen:?}"
    );
}
