//! What goes to stdout in one piece.

use std::io::{self, ErrorKind, Write};

use anyhow::Result;
use serde::Serialize;

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
