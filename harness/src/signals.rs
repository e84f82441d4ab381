//! Ctrl-C and SIGTERM: the first asks every loop to end and clean up, a second one ends the program at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use load::LoadError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// The exit status of a program ended by Ctrl-C.
pub const INTERRUPTED_STATUS: u8 = 130;

/// Longest time between two looks at the flag.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Somebody asked the program to end (Ctrl-C, SIGTERM) while something was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// An error of the load engine; its word for an interruption is ours.
pub fn of_the_load(error: LoadError) -> anyhow::Error {
    match error {
        LoadError::Stopped => Interrupted.into(),
        other => other.into(),
    }
}

/// The flag that the first signal sets.
///
/// # Errors
/// The operating system refuses a handler.
pub fn install() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset, passes, and sets it.
        flag::register_conditional_shutdown(
            signal,
            i32::from(INTERRUPTED_STATUS),
            Arc::clone(&stop),
        )?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Waits for the flag, without looking at it again and again.
///
/// # Errors
/// The operating system refuses a handler.
pub fn wait(stop: &AtomicBool) -> io::Result<()> {
    // The flag's own handlers were there before, so that it is set when these see a signal.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    while !stop.load(Ordering::Relaxed) {
        signals.wait();
    }
    Ok(())
}

/// # Errors
/// [`Interrupted`] once the flag is set.
pub fn check(stop: &AtomicBool) -> Result<(), Interrupted> {
    if stop.load(Ordering::Relaxed) {
        Err(Interrupted)
    } else {
        Ok(())
    }
}

/// Waits until `ready` gives a value, the flag is set, or `limit` is over (`Ok(None)`).
pub fn wait_for<T>(
    stop: &AtomicBool,
    limit: Duration,
    mut ready: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = ready()? {
            return Ok(Some(value));
        }
        check(stop)?;
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LOOK_EVERY);
    }
}
