//! The user that runs PostgreSQL. It refuses to run as root, so root hands it to somebody without privileges.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid};

/// Tried in this order: the first was made for the purpose, the second exists everywhere.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Who runs PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Account {
    /// We ourselves.
    Ours,
    /// Somebody else, since we are root.
    Other { name: String, uid: u32, gid: u32 },
}

impl Account {
    pub(crate) fn find() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Ours);
        }
        for name in UNPRIVILEGED {
            let user = User::from_name(name)
                .with_context(|| format!("user {name} cannot be looked up"))?;
            if let Some(user) = user.filter(|user| !user.uid.is_root()) {
                return Ok(Self::Other {
                    name: user.name,
                    uid: user.uid.as_raw(),
                    gid: user.gid.as_raw(),
                });
            }
        }
        bail!(
            "PostgreSQL does not run as root, and there is no user {}: add one or run lanebench as another user",
            UNPRIVILEGED.join(" or ")
        )
    }

    /// Makes `command` run as this user.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid); // std also drops root's supplementary groups
        }
    }

    /// Makes `path` this user's.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        if let Self::Other { name, uid, gid } = self {
            chown(path, Some(*uid), Some(*gid))
                .with_context(|| format!("{} cannot be given to user {name}", path.display()))?;
        }
        Ok(())
    }

    /// Fails if this user cannot pass through `folder` or one above it. By the mode bits alone: an access list may say
    /// otherwise, which PostgreSQL then finds out itself.
    pub(crate) fn check_can_enter(&self, folder: &Path) -> Result<()> {
        let Self::Other { name, uid, gid } = self else {
            return Ok(());
        };
        for step in folder.ancestors() {
            let meta =
                fs::metadata(step).with_context(|| format!("{} cannot be read", step.display()))?;
            let execute = if meta.uid() == *uid {
                0o100
            } else if meta.gid() == *gid {
                0o010
            } else {
                0o001
            };
            if meta.mode() & execute == 0 {
                bail!(
                    "user {name}, who runs PostgreSQL for root, may not enter {}",
                    step.display()
                );
            }
        }
        Ok(())
    }
}
