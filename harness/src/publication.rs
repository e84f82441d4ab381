//! What a campaign shows of itself while it runs: `progress.json` in its results folder, and a lock by which a reader
//! tells a campaign that runs from one that was killed.
//!
//! Nothing here may cost the measurement anything: one small file is replaced once a second and between trials, from
//! the thread that handles the load's events anyway, and nothing waits for a disk.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use load::{Event, Live, Phase};
use serde::{Deserialize, Serialize};

use crate::blocks::counting;
use crate::campaign::{Plan, Trial};
use crate::checks::{Code, Verdict, tripped};
use crate::notice;

/// In the results folder while the campaign runs.
pub const PROGRESS_FILE: &str = "progress.json";
/// Locked as long as the process that measures lives.
pub const LOCK_FILE: &str = "running.lock";

/// Seconds of the trial under way that are kept: a longer window shows its last ones.
const SECONDS_KEPT: usize = 120;
/// Trials that are kept: those before are in `campaign.json`.
const TRIALS_KEPT: usize = 100;
/// A reader that looks whether the lock is held has it for a moment.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// The content of `progress.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub workloads: Vec<String>,
    pub servers: Vec<String>,
    pub preset: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// What is being done, in words: `building the servers`, `measuring`.
    pub state: String,
    pub trials_done: usize,
    /// As far as is known now.
    pub trials_left: usize,
    /// Absent until the measuring begins.
    pub seconds_left: Option<f64>,
    /// Verdicts of the trials that count, of the whole campaign.
    pub counts: VerdictCounts,
    pub trial: Option<UnderWay>,
    /// The latest trials, oldest first.
    pub fallen: VecDeque<Fallen>,
}

/// The trial under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    pub workload: String,
    /// As in tables.
    pub server: String,
    /// In words: `8 connections`, `500/s`.
    pub rung: String,
    /// From 1.
    pub block: usize,
    /// In words: `starting the server`, `warm-up`, `window`, `judging`.
    pub phase: String,
    /// Oldest first.
    pub seconds: VecDeque<OneSecond>,
}

/// What the load saw in one second of the trial under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OneSecond {
    /// Its end, from the start of the load.
    pub at: f64,
    /// Whether it is in the window rather than in the warm-up.
    pub measured: bool,
    pub correct: u64,
    pub shed: u64,
    /// Requests that ended otherwise, those that were shed not among them.
    pub failed: u64,
    /// Response times; absent in the warm-up.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// A trial that has been judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallen {
    /// In the order of the campaign, from 1.
    pub number: usize,
    pub workload: String,
    /// As in tables.
    pub server: String,
    /// In words: `8 connections`, `500/s`.
    pub rung: String,
    /// From 1.
    pub block: usize,
    /// From 1.
    pub attempt: usize,
    /// Absent where no window took place.
    pub requests_per_second: Option<f64>,
    pub p99_ms: Option<f64>,
    pub verdict: Verdict,
    pub tripped: Vec<Code>,
}

/// How many trials have which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub valid: usize,
    pub failed: usize,
    pub misconfigured: usize,
    pub invalid: usize,
}

impl VerdictCounts {
    /// Of the latest attempt at each block.
    pub fn of(trials: &[Trial]) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for trial in counting(trials) {
            *match trial.verdict {
                Verdict::Valid => &mut counts.valid,
                Verdict::Failed => &mut counts.failed,
                Verdict::Misconfigured => &mut counts.misconfigured,
                Verdict::Invalid => &mut counts.invalid,
            } += 1;
        }
        counts
    }
}

impl Published {
    fn of(plan: &Plan, started_at: String) -> Published {
        let ladders = plan.ladders.iter();
        Published {
            workloads: ladders.map(|ladder| ladder.workload.clone()).collect(),
            servers: plan.servers.clone(),
            preset: plan.preset.clone(),
            started_at,
            state: "starting".to_owned(),
            trials_done: 0,
            trials_left: 0,
            seconds_left: None,
            counts: VerdictCounts::default(),
            trial: None,
            fallen: VecDeque::new(),
        }
    }

    fn recall(&mut self, trials: &[Trial]) {
        self.trials_done = trials.len();
        self.counts = VerdictCounts::of(trials);
        let first = trials.len().saturating_sub(TRIALS_KEPT);
        let latest = trials.iter().enumerate().skip(first);
        self.fallen = latest
            .map(|(index, trial)| Fallen::of(index + 1, trial))
            .collect();
    }
}

impl Fallen {
    fn of(number: usize, trial: &Trial) -> Fallen {
        let window = trial.window.as_ref();
        let checks = trial.checks.iter().filter(|check| tripped(check));
        Fallen {
            number,
            workload: trial.workload.clone(),
            server: trial.label(),
            rung: trial.rung.to_string(),
            block: trial.block + 1,
            attempt: trial.attempt + 1,
            requests_per_second: window.map(|window| window.requests_per_second),
            p99_ms: window.map(|window| window.response_ns.p99 as f64 / 1e6),
            verdict: trial.verdict,
            tripped: checks.map(|check| check.code).collect(),
        }
    }
}

impl OneSecond {
    fn of(live: &Live) -> OneSecond {
        let milliseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        OneSecond {
            at: live.elapsed.as_secs_f64(),
            measured: live.phase == Phase::Window,
            correct: live.correct,
            shed: live.shed,
            failed: live.failed.saturating_sub(live.shed),
            p50_ms: milliseconds(live.p50),
            p99_ms: milliseconds(live.p99),
        }
    }
}

/// The writer. Dropping it removes what it wrote, and the folder if nothing was measured into it.
#[derive(Debug)]
pub struct Publication {
    folder: PathBuf,
    /// Folders that were made for it, the innermost first.
    made: Vec<PathBuf>,
    /// Held, not read.
    _lock: File,
    published: Published,
    complained: bool,
}

impl Publication {
    /// Makes the folder, and locks it.
    ///
    /// # Errors
    /// The folder cannot be written to, or somebody else measures into it.
    pub fn begin(folder: &Path, plan: &Plan, started_at: String) -> Result<Publication> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made = folder.ancestors().take_while(missing);
        let made = made.map(Path::to_owned).collect();
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the results folder {}", folder.display()))?;
        let lock = lock(folder)?;
        let mut publication = Publication {
            folder: folder.to_owned(),
            made,
            _lock: lock,
            published: Published::of(plan, started_at),
            complained: false,
        };
        publication.write();
        Ok(publication)
    }

    /// What a campaign that is gone on with has already.
    pub fn recall(&mut self, trials: &[Trial]) {
        self.published.recall(trials);
    }

    /// What is being done now.
    pub fn state(&mut self, words: &str) {
        words.clone_into(&mut self.published.state);
        self.published.trial = None;
        self.write();
    }

    /// A campaign that goes on until it is precise learns on its way how long it takes. Shown with the next trial.
    pub fn reckon(&mut self, trials_left: usize, time_left: Duration) {
        self.published.trials_left = trials_left;
        self.published.seconds_left = Some(time_left.as_secs_f64());
    }

    pub fn trial_starts(&mut self, trial: UnderWay) {
        self.published.trial = Some(trial);
        self.write();
    }

    /// What the load engine reports. Nothing is written at the start of a window: its figures are read at that instant.
    pub fn load_event(&mut self, event: Event, time_left: Option<Duration>) {
        if let Some(time_left) = time_left {
            self.published.seconds_left = Some(time_left.as_secs_f64());
        }
        let Some(trial) = &mut self.published.trial else {
            return;
        };
        match event {
            Event::WindowStart => "window".clone_into(&mut trial.phase),
            Event::WindowEnd => {
                "judging".clone_into(&mut trial.phase);
                self.write();
            }
            Event::Second(live) => {
                if live.phase == Phase::Warmup {
                    "warm-up".clone_into(&mut trial.phase);
                }
                if trial.seconds.len() == SECONDS_KEPT {
                    trial.seconds.pop_front();
                }
                trial.seconds.push_back(OneSecond::of(&live));
                self.write();
            }
        }
    }

    /// The last of `trials` has been judged.
    pub fn trial_ended(&mut self, trials: &[Trial], time_left: Duration) {
        let left = self.published.trials_left.saturating_sub(1);
        self.published.recall(trials);
        self.published.trial = None;
        self.reckon(left, time_left);
        self.write();
    }

    /// In one step, so that a reader never meets half of it. What cannot be written is no reason to end the campaign.
    fn write(&mut self) {
        let unfinished = self.folder.join("progress.json.unfinished");
        let written = serde_json::to_vec(&self.published)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&unfinished, text))
            .and_then(|()| fs::rename(&unfinished, self.folder.join(PROGRESS_FILE)));
        if let Err(error) = written
            && !self.complained
        {
            self.complained = true;
            notice::say(&format!(
                "cannot show the progress in {}: {error}",
                self.folder.display()
            ));
        }
    }

    /// Interval logs of trials that were never saved say nothing by themselves.
    fn remove_leavings(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| {
            let path = entry.path();
            path.extension()
                .is_some_and(|extension| extension == "hlog")
        }) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        // What is there no more needs no removal, and what cannot be removed is told by the lock.
        let _ = fs::remove_file(self.folder.join(PROGRESS_FILE));
        let _ = fs::remove_file(self.folder.join(LOCK_FILE));
        if !self.made.is_empty() && !self.folder.join("campaign.json").exists() {
            self.remove_leavings();
            for folder in &self.made {
                // Not if somebody put something there.
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let end = Instant::now() + LOCK_LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => bail!(
                "{}: another lanebench measures into this folder; wait for it, or name another",
                folder.display()
            ),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            // A file system without locks: the campaign will pass for one that was broken off, which hurts nobody.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
}

/// Whether the process that holds this lock lives. `lock` is the open lock file of a results folder.
pub fn is_held(lock: &File) -> bool {
    // Shared, so that readers do not take one another for the campaign.
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        // Dropping the file would unlock it too, but later.
        Ok(()) => {
            let _ = lock.unlock();
            false
        }
        Err(TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
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
}
