//! The results folder as readers see it: its campaigns by name, and nothing else.
//!
//! Names come from anywhere. One is never joined to a path: a folder is opened beneath the results folder and a file
//! beneath that, each as one component and never through a symbolic link, so that there is no way out.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::campaign::{Campaign, State};
use crate::publication::{LOCK_FILE, PROGRESS_FILE, Published, VerdictCounts, is_held};
use crate::results;

const CAMPAIGN_FILE: &str = "campaign.json";

/// How a campaign stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Running,
    Complete,
    /// By Ctrl-C; it can be gone on with.
    Interrupted,
    /// Its process is gone and did not say so.
    BrokenOff,
}

impl Standing {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Complete => "complete",
            Standing::Interrupted => "interrupted",
            Standing::BrokenOff => "broken off",
        }
    }
}

/// What the list says of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) standing: Standing,
    pub(super) workloads: Vec<String>,
    pub(super) servers: Vec<String>,
    pub(super) preset: String,
    pub(super) started_at: String,
    pub(super) counts: VerdictCounts,
    /// Whether there is a record to report from, and to compare.
    pub(super) has_record: bool,
}

impl Summary {
    fn of_progress(published: Published, standing: Standing, has_record: bool) -> Summary {
        Summary {
            standing,
            workloads: published.workloads,
            servers: published.servers,
            preset: published.preset,
            started_at: published.started_at,
            counts: published.counts,
            has_record,
        }
    }

    fn of_record(campaign: Campaign) -> Summary {
        let standing = match campaign.state {
            State::Complete => Standing::Complete,
            State::Interrupted => Standing::Interrupted,
            // Nobody holds its lock.
            State::Running => Standing::BrokenOff,
        };
        let ladders = campaign.plan.ladders.into_iter();
        Summary {
            standing,
            workloads: ladders.map(|ladder| ladder.workload).collect(),
            servers: campaign.plan.servers,
            preset: campaign.plan.preset,
            started_at: campaign.started_at,
            counts: VerdictCounts::of(&campaign.trials),
            has_record: true,
        }
    }
}

/// A results folder in the list; or why nothing can be said of it, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) summary: Result<Summary, String>,
}

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Stamp> {
        let meta = file.metadata()?;
        Ok(Stamp {
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

type Known = HashMap<String, (Stamp, Result<Summary, String>)>;

/// The results folder.
#[derive(Debug)]
pub(super) struct Shelf {
    root: PathBuf,
    /// Records are long: one is read again for the list only when it has changed.
    known: Mutex<Known>,
}

impl Shelf {
    pub(super) fn of(root: &Path) -> Shelf {
        Shelf {
            root: root.to_owned(),
            known: Mutex::default(),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a campaign; `None` if there is none of that name.
    pub(super) fn folder(&self, name: &str) -> Option<Folder> {
        if !is_one_component(name) {
            return None;
        }
        let directory = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        // The results folder itself may be a link: whoever started us named it.
        let root = openat(CWD, &self.root, directory, Mode::empty()).ok()?;
        let descriptor = openat(root, name, directory | OFlags::NOFOLLOW, Mode::empty()).ok()?;
        Some(Folder {
            name: name.to_owned(),
            descriptor,
        })
    }

    /// Every campaign, newest first; those of which nothing can be said come last.
    pub(super) fn list(&self) -> Vec<Listed> {
        // A folder that is not there yet has nothing in it.
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut listed: Vec<Listed> = names.filter_map(|name| self.listed(name)).collect();
        self.forget_all_but(&listed);
        let age = |listed: &Listed| {
            listed
                .summary
                .clone()
                .ok()
                .map(|summary| summary.started_at)
        };
        listed.sort_by(|a, b| age(b).cmp(&age(a)).then_with(|| a.name.cmp(&b.name)));
        listed
    }

    fn listed(&self, name: String) -> Option<Listed> {
        let folder = self.folder(&name)?;
        let summary = match folder.progress() {
            Progress::Running(Some(published)) => Ok(Summary::of_progress(
                published,
                Standing::Running,
                folder.has_record(),
            )),
            // About to begin, or to end.
            Progress::Running(None) => self.record(&folder)?.map(|summary| Summary {
                standing: Standing::Running,
                ..summary
            }),
            Progress::None { left_behind } => match (self.record(&folder), left_behind) {
                (Some(summary), _) => summary,
                (None, Some(published)) => {
                    Ok(Summary::of_progress(published, Standing::BrokenOff, false))
                }
                (None, None) => return None,
            },
        };
        Some(Listed { name, summary })
    }

    /// `None` if there is no record.
    fn record(&self, folder: &Folder) -> Option<Result<Summary, String>> {
        let file = match folder.file(CAMPAIGN_FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(format!("{}: {error}", folder.record_name()))),
        };
        let stamp = Stamp::of(&file).ok()?;
        if let Some((known, summary)) = self.known().get(&folder.name)
            && *known == stamp
        {
            return Some(summary.clone());
        }
        let summary = folder.parse(file).map(Summary::of_record);
        let known = (stamp, summary.clone());
        self.known().insert(folder.name.clone(), known);
        Some(summary)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_all_but(&self, listed: &[Listed]) {
        self.known()
            .retain(|name, _| listed.iter().any(|listed| listed.name == *name));
    }
}

/// What a campaign says of itself while it runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    /// Without anything to say yet.
    Running(Option<Published>),
    /// It does not run; what one that was killed has left behind.
    None { left_behind: Option<Published> },
}

/// An open folder of a campaign.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) name: String,
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a file of the folder to be read: a regular one, and no link.
    ///
    /// # Errors
    /// As the operating system gives them; also for what is no regular file.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        if !is_one_component(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // A pipe in the place of a file is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::LOOP) => {
                return Err(io::Error::other("a symbolic link, which is not followed"));
            }
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        Ok(file)
    }

    pub(super) fn has_record(&self) -> bool {
        self.file(CAMPAIGN_FILE).is_ok()
    }

    /// Its record; `None` if there is none.
    ///
    /// # Errors
    /// One line that names the file.
    pub(super) fn campaign(&self) -> Result<Option<Campaign>, String> {
        match self.file(CAMPAIGN_FILE) {
            Ok(file) => self.parse(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", self.record_name())),
        }
    }

    fn parse(&self, mut file: File) -> Result<Campaign, String> {
        let name = self.record_name();
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        results::parse(&text, Path::new(&name)).map_err(|error| format!("{error:#}"))
    }

    fn record_name(&self) -> String {
        format!("{}/{CAMPAIGN_FILE}", self.name)
    }

    pub(super) fn progress(&self) -> Progress {
        let lock = self.file(LOCK_FILE);
        let published = self.published();
        match lock {
            Ok(lock) if is_held(&lock) => Progress::Running(published),
            _ => Progress::None {
                left_behind: published,
            },
        }
    }

    fn published(&self) -> Option<Published> {
        let mut text = Vec::new();
        self.file(PROGRESS_FILE).ok()?.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn is_one_component(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests;
