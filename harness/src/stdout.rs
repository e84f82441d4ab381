//! What goes to stdout in one piece, and in which form.

use std::io::{self, ErrorKind, Write};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::notice;

/// Flags of every command that prints a table after a while.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Say nothing on the way: only the result, and errors
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,

    /// Print one JSON document instead of tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl OutputArgs {
    /// To be called before anything is said.
    pub fn begin(self) {
        if self.quiet {
            notice::keep_quiet();
        }
    }
}

/// Prints `text`. A reader that has seen enough, such as `head`, is no error; what else goes wrong is said on stderr.
pub fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("lanebench: cannot write to stdout: {error}");
    }
}

/// Prints one JSON document, indented.
///
/// # Errors
/// It cannot be written as JSON.
pub fn say_json(document: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    say(&text);
    Ok(())
}
