//! What a terminal gets, seen over a pseudo-terminal: as wide as it is, in colour unless told otherwise.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use harness::campaign;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

#[allow(dead_code, reason = "shared with the unit tests")]
#[path = "../src/made_up.rs"]
mod made_up;

use made_up::{closed, scatter};

/// What `lanebench` with these arguments writes to a terminal of so many columns.
fn seen(arguments: &[&str], columns: u16, environment: &[(&str, &str)]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let program_side = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&program_side, size).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebench"));
    command
        .args(arguments)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::from(program_side))
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It holds the program's side open, so that the reader would not see the end.
    drop(command);
    let reader = thread::spawn(move || {
        let (mut terminal, mut text, mut some) = (File::from(terminal), Vec::new(), [0; 4096]);
        // The end of a terminal is an error.
        while let Ok(read @ 1..) = terminal.read(&mut some) {
            text.extend_from_slice(&some[..read]);
        }
        String::from_utf8(text).unwrap().replace("\r\n", "\n")
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap()
}

/// A results folder with six blocks of two servers.
fn results(folder: &Path) -> String {
    let record = made_up::campaign(
        &["deadpool", "sqlx"],
        &[closed(8)],
        6,
        &|server, _, block| {
            (10_000.0 + 2_000.0 * server as f64) * scatter(block + 3 * server, 0.01)
        },
    );
    fs::write(
        folder.join("campaign.json"),
        serde_json::to_vec(&record).unwrap(),
    )
    .unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_is_told_which_are_left_out() {
    let folder = TempDir::new().unwrap();
    let results = results(folder.path());
    let arguments = ["compare", &results, "--servers", "deadpool,sqlx"];
    let plain = [("NO_COLOR", "1")];
    let (wide, narrow) = (seen(&arguments, 200, &plain), seen(&arguments, 90, &plain));
    assert!(
        wide.contains("p (Holm)") && !wide.contains("left out for want of width"),
        "{wide}"
    );
    let said = "\nleft out for want of width: p (Holm), A, B\n";
    assert!(
        narrow.contains(said) && narrow.contains("interval"),
        "{narrow}"
    );
    let table = narrow.lines().skip_while(|line| !line.contains("rung"));
    for line in table.take_while(|line| !line.starts_with("left out")) {
        assert!(line.chars().count() <= 90, "{line}");
    }
}

#[test]
fn colours_are_for_a_terminal_alone_and_no_color_turns_them_off() {
    let folder = TempDir::new().unwrap();
    let results = results(folder.path());
    let arguments = ["compare", &results, "--servers", "deadpool,sqlx"];
    let coloured = seen(&arguments, 200, &[]);
    assert!(
        coloured.contains("\u{1b}[1mdeadpool / sqlx\u{1b}[0m"),
        "{coloured:?}"
    );
    let plain = seen(&arguments, 200, &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_lanebench"))
        .args(arguments)
        .env("TERM", "xterm")
        .output()
        .unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    assert_eq!(piped, plain);
}
