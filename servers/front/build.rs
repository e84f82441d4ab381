//! Hands the compiler's version and the build's settings to `/about`, which must not be typed in by hand.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.unwrap_or_default();
    println!("cargo::rustc-env=LANEBENCH_BUILD_RUSTC={}", version.trim());
    for (name, from) in [
        ("PROFILE", "PROFILE"),
        ("OPT_LEVEL", "OPT_LEVEL"),
        ("TARGET", "TARGET"),
    ] {
        let value = env::var(from).unwrap_or_default();
        println!("cargo::rustc-env=LANEBENCH_BUILD_{name}={value}");
    }
}
