//! Finds the chart script that the crate `charming` carries (Apache ECharts), for reports to embed: they have to be
//! readable without a network, and what others wrote is taken from a pinned crate rather than copied into this one.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

const SCRIPT: &str = "src/asset/echarts-5.5.1.min.js";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = folder_of("charming")?;
    let script = folder.join(SCRIPT);
    println!("cargo::rerun-if-changed={}", script.display());
    let copy = PathBuf::from(env::var("OUT_DIR")?).join("echarts.js");
    fs::copy(&script, copy).map_err(|error| format!("{}: {error}", script.display()))?;
    Ok(())
}

/// Where cargo keeps a dependency's files.
fn folder_of(package: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let platform = env::var("TARGET")?;
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version", "1", "--filter-platform"])
        .arg(platform)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|of| of["name"] == package)
        .find_map(|of| of["manifest_path"].as_str())
        .ok_or_else(|| format!("no package {package} among the dependencies"))?;
    let folder = PathBuf::from(manifest).parent().map(PathBuf::from);
    folder.ok_or_else(|| format!("{manifest} is in no folder").into())
}
