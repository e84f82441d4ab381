//! The machine and the build, as far as they can change a result.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Written into every campaign. What cannot be read is absent rather than guessed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Environment {
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    pub cpus: usize,
    pub threads_per_core: Option<usize>,
    pub governor: Option<String>,
    pub clock_source: Option<String>,
    pub memory_bytes: Option<u64>,
    pub cgroup_cpu_limit: Option<f64>,
    pub open_files_limit: Option<u64>,
    pub virtual_machine: bool,
    pub rustc: Option<String>,
    pub build_profile: String,
    pub cargo_lock_sha256: Option<String>,
    pub git_commit: Option<String>,
    /// Whether files differ from the commit.
    pub git_dirty: Option<bool>,
}

impl Environment {
    pub fn read(root: &Path) -> Environment {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Environment {
            kernel: line_of("/proc/sys/kernel/osrelease"),
            cpu_model: field(&cpuinfo, "model name"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            threads_per_core: threads_per_core(&cpuinfo),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line_of(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            memory_bytes: memory_bytes(),
            cgroup_cpu_limit: cgroup_cpu_limit(),
            open_files_limit: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            virtual_machine: cpuinfo.contains(" hypervisor"),
            rustc: output_of(root, "rustc", &["--version"])
                .or_else(|| option_env!("LANEBENCH_BUILD_RUSTC").map(str::to_owned)),
            build_profile: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
            cargo_lock_sha256: sha256_of(&root.join("Cargo.lock")),
            git_commit: output_of(root, "git", &["rev-parse", "HEAD"]).or_else(commit_of_the_image),
            git_dirty: output_of(root, "git", &["status", "--porcelain"])
                .map(|changes| !changes.is_empty()),
        }
    }
}

/// SHA-256 of a file, in hexadecimal digits. `None` where it cannot be read.
pub fn sha256_of(file: &Path) -> Option<String> {
    Some(sha256(&fs::read(file).ok()?))
}

/// In hexadecimal digits.
pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An image has no history to ask; whoever built it may have said.
fn commit_of_the_image() -> Option<String> {
    let commit = std::env::var("LANEBENCH_COMMIT").ok();
    commit.filter(|commit| !commit.is_empty())
}

fn line_of(file: &str) -> Option<String> {
    fs::read_to_string(file)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn threads_per_core(cpuinfo: &str) -> Option<usize> {
    let siblings: usize = field(cpuinfo, "siblings")?.parse().ok()?;
    let cores: usize = field(cpuinfo, "cpu cores")?.parse().ok()?;
    siblings.checked_div(cores)
}

fn memory_bytes() -> Option<u64> {
    let kib = field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")?;
    kib.trim_end_matches(" kB")
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The CPUs' worth of time that a control group (version 2 or 1) grants. `None` where there is no limit.
fn cgroup_cpu_limit() -> Option<f64> {
    let quota_and_period = line_of("/sys/fs/cgroup/cpu.max").or_else(|| {
        let quota = line_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")?;
        Some(format!(
            "{quota} {}",
            line_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us")?
        ))
    })?;
    let (quota, period) = quota_and_period.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0).then(|| quota / period)
}

fn output_of(root: &Path, program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
