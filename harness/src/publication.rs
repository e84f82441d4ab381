//! What a campaign shows of itself while it runs: `progress.json` in its results folder, and a lock by which a reader
//! tells a campaign that runs from one that was killed.
//!
//! Nothing here may cost the measurement anything: one small file is replaced once a second and between trials, from
//! the thread that handles the load's events anyway, and nothing waits for a disk.

mod published;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use load::{Event, Phase};

use crate::campaign::{Plan, Trial};
use crate::notice;

pub use published::{Fallen, OneSecond, Published, UnderWay, VerdictCounts};

/// In the results folder while the campaign runs.
pub const PROGRESS_FILE: &str = "progress.json";
/// Locked as long as the process that measures lives.
pub const LOCK_FILE: &str = "running.lock";

/// Seconds of the trial under way that are kept: a longer window shows its last ones.
const SECONDS_KEPT: usize = 120;
/// A reader that looks whether the lock is held has it for a moment.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

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
mod tests;
