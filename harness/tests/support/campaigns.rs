//! Whole campaigns by the program `lanebench`: begun, interrupted, read.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::campaign::Campaign;
use harness::results;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// `lanebench …` on a database: a URL, or `local`. What is added may be the value of the last flag.
pub(crate) fn lanebench(database: &str, arguments: &str) -> Command {
    let (subcommand, arguments) = arguments.split_once(' ').unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
    command
        .args([subcommand, "--database", database])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null());
    command
}

/// Runs it to its end, with its results in a folder.
pub(crate) fn run_into(mut command: Command, results: &Path) -> Output {
    command.arg("--out").arg(results).output().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn campaign_in(folder: &Path) -> Campaign {
    results::read(&folder.join("campaign.json")).unwrap()
}

/// Starts it and ends it as Ctrl-C does, in the middle of a trial, once it has saved so many.
#[track_caller]
pub(crate) fn interrupt_after(mut command: Command, results: &Path, trials: usize) {
    let mut child = command
        .arg("--out")
        .arg(results)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(600);
    while saved(results) < trials {
        assert!(
            Instant::now() < end && child.try_wait().unwrap().is_none(),
            "it ended before it had {trials} trials"
        );
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(300));
    interrupt(&mut child);
}

fn saved(results: &Path) -> usize {
    results::read(&results.join("campaign.json")).map_or(0, |campaign| campaign.trials.len())
}

#[track_caller]
fn interrupt(child: &mut Child) {
    let asked = Instant::now();
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(10));
}
