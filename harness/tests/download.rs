//! Binaries from the internet, or rather from a shelf on loopback: fetched once, checked, and run.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use harness::database::download;
use nix::sys::signal::Signal;
use sha2::{Digest, Sha256};
use support::program::{
    Started, assert_nothing_left, lanebench, local_binaries, processes_in, stderr, temp,
};

/// Serves files from memory on loopback, and counts what it is asked for.
struct Shelf {
    place: String,
    asked: Arc<AtomicU32>,
}

impl Shelf {
    fn with(files: Vec<(String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let request = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = request.split(' ').nth(1).unwrap_or_default();
                let found = files
                    .iter()
                    .find(|(name, _)| path == format!("/{}/{name}", download::VERSION));
                let (status, body) =
                    found.map_or(("404 Not Found", &[][..]), |(_, body)| ("200 OK", body));
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = (&stream)
                    .write_all(head.as_bytes())
                    .and_then(|()| (&stream).write_all(body));
            }
        });
        Self { place, asked }
    }
}

/// This machine's PostgreSQL, packed as the archives are: one folder that names version and machine, with bin and lib.
fn archive(bin: &Path, temp: &Path) -> (String, Vec<u8>) {
    let libc = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    let name = format!(
        "postgresql-{}-{}-unknown-linux-{libc}",
        download::VERSION,
        std::env::consts::ARCH
    );
    let folder = temp.join(&name);
    fs::create_dir(&folder).unwrap();
    for part in ["bin", "lib"] {
        let copied = Command::new("cp")
            .arg("-rL")
            .arg(bin.with_file_name(part))
            .arg(&folder)
            .status()
            .unwrap();
        assert!(copied.success());
    }
    let file = temp.join("archive.tar.gz");
    let packed = Command::new("tar")
        .arg("-czf")
        .arg(&file)
        .arg("-C")
        .arg(temp)
        .arg(&name)
        .status()
        .unwrap();
    assert!(packed.success());
    let bytes = fs::read(&file).unwrap();
    fs::remove_dir_all(folder).unwrap();
    fs::remove_file(file).unwrap();
    (format!("{name}.tar.gz"), bytes)
}

fn checksum(bytes: &[u8], name: &str) -> Vec<u8> {
    let digits: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{digits}  {name}\n").into_bytes()
}

#[test]
fn downloaded_binaries_are_fetched_once_and_run_from_the_cache() {
    let Some(bin) = local_binaries() else { return };
    let temp = temp();
    let (name, bytes) = archive(&bin, temp.path());
    let shelf = Shelf::with(vec![
        (format!("{name}.sha256"), checksum(&bytes, &name)),
        (name, bytes),
    ]);
    let start = || {
        let mut command = lanebench(
            temp.path(),
            &["start", "--database", "download", "--scale", "0.001"],
        );
        command.env(download::PLACE_VARIABLE, &shelf.place);
        Started::by(command)
    };
    for fetches in [2, 2] {
        let started = start();
        assert!(started.answers());
        let running = processes_in(temp.path())
            .iter()
            .filter_map(|process| fs::read_link(process.join("exe")).ok())
            .collect::<Vec<_>>();
        assert!(
            running
                .iter()
                .all(|program| program.starts_with(temp.path().join("cache"))),
            "{running:?}"
        );
        started.end(Signal::SIGTERM);
        assert_eq!(shelf.asked.load(Ordering::Relaxed), fetches);
    }
    fs::remove_dir_all(temp.path().join("cache")).unwrap();
    assert_nothing_left(temp.path());
}

#[test]
fn an_archive_that_is_not_what_its_checksum_says_is_not_installed() {
    let Some(bin) = local_binaries() else { return };
    let temp = temp();
    let (name, mut bytes) = archive(&bin, temp.path());
    let checksum = checksum(&bytes, &name);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let shelf = Shelf::with(vec![(format!("{name}.sha256"), checksum), (name, bytes)]);
    let mut command = lanebench(temp.path(), &["start", "--database", "download"]);
    let output = command
        .env(download::PLACE_VARIABLE, &shelf.place)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("its SHA-256 is"),
        "{}",
        stderr(&output)
    );
    let kept: Vec<_> = fs::read_dir(temp.path().join("cache/lanebench"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(kept, ["lock"]);
}

#[test]
fn an_archive_that_is_not_there_is_one_line() {
    let temp = temp();
    let shelf = Shelf::with(Vec::new());
    let mut command = lanebench(temp.path(), &["start", "--database", "download"]);
    let output = command
        .env(download::PLACE_VARIABLE, &shelf.place)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let last = stderr(&output).lines().last().unwrap().to_owned();
    assert!(
        last.contains("downloaded PostgreSQL") && last.contains("404"),
        "{last}"
    );
}
