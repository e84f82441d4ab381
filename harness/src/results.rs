//! The folder that a campaign's results are in, and its record as a file: written in one step, read with care.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::campaign::{Campaign, SCHEMA};
use crate::consistency::contradiction;

/// A small campaign's results.
const ROOM_BYTES: usize = 16 << 20;

/// The folder of one campaign. It is made for the first trial, so that a run that measures nothing leaves nothing.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
}

impl ResultsFolder {
    /// # Errors
    /// The path is something else than a folder, or a folder with something in it.
    pub fn at(path: PathBuf) -> Result<ResultsFolder> {
        if path.exists() {
            let mut content = fs::read_dir(&path)
                .with_context(|| format!("cannot use {} for results", path.display()))?;
            if content.next().is_some() {
                bail!(
                    "the results folder {} is not empty; name another with --out",
                    path.display()
                );
            }
        }
        Ok(ResultsFolder { path })
    }

    /// Of a campaign that is to be gone on with.
    ///
    /// # Errors
    /// There is no record, or it cannot be read, or it is another version's.
    pub fn of_record(path: PathBuf) -> Result<(ResultsFolder, Campaign)> {
        let folder = ResultsFolder { path };
        let campaign = read(&folder.campaign_file())?;
        Ok((folder, campaign))
    }

    pub fn campaign_file(&self) -> PathBuf {
        self.path.join("campaign.json")
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether results could be written, told before anything is measured. Leaves nothing.
    ///
    /// # Errors
    /// One line that names the folder: it cannot be made, there is no room, or writing is not allowed.
    pub fn refuse_unwritable(&self) -> Result<()> {
        let existing = self.path.ancestors().find(|folder| folder.is_dir());
        let folder = existing.unwrap_or(Path::new("/"));
        let write = || -> Result<()> {
            let probe = folder.join(format!(".lanebench-{}", std::process::id()));
            let written = File::create(&probe).and_then(|mut file| {
                file.write_all(&vec![0; ROOM_BYTES])?;
                file.sync_all()
            });
            let _ = fs::remove_file(&probe);
            Ok(written?)
        };
        write().with_context(|| {
            format!(
                "no results could be written to {} ({} MiB are wanted)",
                folder.display(),
                ROOM_BYTES >> 20
            )
        })
    }

    /// Where a trial's interval log goes.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn interval_log(&self, name: &str) -> Result<PathBuf> {
        self.make()?;
        Ok(self.path.join(format!("{name}.hlog")))
    }

    /// Writes the whole record.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn save(&self, campaign: &Campaign) -> Result<()> {
        self.write("campaign.json", campaign)
    }

    /// Replaces a file of the folder in one step, so that a reader or a crash never meets half of it.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.make()?;
        write_json(&self.path.join(name), value)
    }

    fn make(&self) -> Result<()> {
        fs::create_dir_all(&self.path)
            .with_context(|| format!("cannot make the results folder {}", self.path.display()))
    }
}

/// Reads the record in a results folder, or the record itself.
///
/// # Errors
/// There is nothing there; else as [`read`].
pub fn of_results(path: &Path) -> Result<Campaign> {
    if !path.exists() {
        bail!(
            "{}: there is no such results folder or campaign.json",
            path.display()
        );
    }
    if path.is_dir() {
        read(&path.join("campaign.json"))
    } else {
        read(path)
    }
}

/// Reads the record of a campaign.
///
/// # Errors
/// One line that names the file: it is not there, no record, or of another version.
pub fn read(file: &Path) -> Result<Campaign> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&text, file)
}

/// The record in `text`, which was read from `file`.
///
/// # Errors
/// One line that names the file: it is no record, or of another version.
pub fn parse(text: &[u8], file: &Path) -> Result<Campaign> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let not_a_record = || format!("{} is not the record of a campaign", file.display());
    let version: Version = serde_json::from_slice(text).with_context(not_a_record)?;
    if version.schema != SCHEMA {
        let remedy = if version.schema > SCHEMA {
            "read it with a newer one"
        } else {
            "run the campaign again"
        };
        bail!(
            "{}: it was written with schema {}, this lanebench reads {SCHEMA}; {remedy}",
            file.display(),
            version.schema
        );
    }
    let campaign = serde_json::from_slice(text).with_context(not_a_record)?;
    if let Some(contradiction) = contradiction(&campaign) {
        bail!(
            "{}: the record contradicts itself, so it was changed since it was written: {contradiction}",
            file.display()
        );
    }
    Ok(campaign)
}

fn write_json(file: &Path, value: &impl Serialize) -> Result<()> {
    // Without indentation: the figures of every second make it long enough.
    let mut text =
        serde_json::to_vec(value).with_context(|| format!("cannot write {}", file.display()))?;
    text.push(b'\n');
    replace(file, &text)
}

/// Writes a file in one step, so that a reader or a crash never meets half of it.
///
/// # Errors
/// One line that names the file.
pub fn replace(file: &Path, content: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut unfinished = file.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let mut writer = File::create(&unfinished)?;
        writer.write_all(content)?;
        writer.sync_all()?;
        fs::rename(&unfinished, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_results_in_it_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("campaign.json"), "{}").unwrap();
        let error = ResultsFolder::at(folder.path().to_owned())
            .expect_err("taken")
            .to_string();
        assert!(
            error.contains("is not empty; name another with --out"),
            "{error}"
        );
    }
}
