//! What is said on stderr on the way, unless somebody asked for quiet. Errors are not said here.

use std::sync::atomic::{AtomicBool, Ordering};

/// A process has one stderr.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on nothing is said.
pub fn keep_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

pub fn say(text: &str) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}
