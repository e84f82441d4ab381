//! axe-core, the rules of accessibility that a page is held to: fetched once by npm into the target folder, and never
//! run unless it is the very version that is named here.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tempfile::TempDir;

use crate::driver::{Browser, not_tested};

const VERSION: &str = "4.14.1";
/// Of the package as npm packs it.
const SHA512: &str = "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5";

/// WCAG 2.1 AA and what axe-core's authors add to it, landmarks among it.
const RULES: [&str; 5] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

/// Its script; `None`, said aloud, where it is neither here nor to be had.
pub(crate) fn script() -> Option<&'static str> {
    static SCRIPT: OnceLock<Result<String, String>> = OnceLock::new();
    match SCRIPT.get_or_init(|| package().and_then(|package| unpack(&package))) {
        Ok(script) => Some(script),
        Err(why) => {
            not_tested(&format!("no axe-core {VERSION}: {why}"));
            None
        }
    }
}

/// Every rule that the page in the browser breaks, with where and why, a line each.
#[track_caller]
pub(crate) fn violations(browser: &Browser, script: &str) -> Vec<String> {
    if browser.value("typeof window.axe === 'undefined'") == true {
        browser.run(&format!("{script}\n;window.axe = axe;"), json!([]));
    }
    let run = "return axe.run(document, { runOnly: arguments[0], resultTypes: ['violations'] })";
    let result = browser.run(run, json!([RULES]));
    let violations = result["violations"].as_array().unwrap().iter();
    violations.flat_map(in_words).collect()
}

fn in_words(violation: &Value) -> Vec<String> {
    let nodes = violation["nodes"].as_array().unwrap().iter();
    nodes
        .map(|node| {
            format!(
                "{} at {}: {}",
                violation["id"], node["target"], node["failureSummary"]
            )
        })
        .collect()
}

/// The package from the target folder, or from npm and then there.
fn package() -> Result<Vec<u8>, String> {
    let name = format!("axe-core-{VERSION}.tgz");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let kept = folder.join(&name);
    if let Some(package) = fs::read(&kept).ok().and_then(|kept| verified(kept).ok()) {
        return Ok(package);
    }
    let folder = TempDir::new_in(folder).map_err(|error| error.to_string())?;
    let fetched = fetch(folder.path())?;
    let package = verified(fs::read(&fetched).map_err(|error| error.to_string())?)?;
    // In one step: other tests may be reading it.
    fs::rename(&fetched, &kept).map_err(|error| error.to_string())?;
    Ok(package)
}

fn fetch(folder: &Path) -> Result<PathBuf, String> {
    let output = Command::new("npm")
        .args(["pack", "--silent", &format!("axe-core@{VERSION}")])
        .current_dir(folder)
        .output()
        .map_err(|error| format!("cannot run npm: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("npm cannot fetch it: {}", complaint.trim()));
    }
    Ok(folder.join(String::from_utf8_lossy(&output.stdout).trim()))
}

fn verified(package: Vec<u8>) -> Result<Vec<u8>, String> {
    let digest = Sha512::digest(&package);
    let actual: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if actual == SHA512 {
        Ok(package)
    } else {
        Err(format!("its SHA-512 is {actual}, not {SHA512}"))
    }
}

fn unpack(package: &[u8]) -> Result<String, String> {
    let read = || -> std::io::Result<Option<String>> {
        let mut archive = tar::Archive::new(GzDecoder::new(package));
        for entry in archive.entries()? {
            let mut entry = entry?;
            if entry.path()? == Path::new("package/axe.min.js") {
                let mut script = String::new();
                entry.read_to_string(&mut script)?;
                return Ok(Some(script));
            }
        }
        Ok(None)
    };
    read()
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "its package has no axe.min.js".to_owned())
}
