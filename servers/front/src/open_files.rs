//! The limit on open files: raised as far as the system lets us, and checked against the pool.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::StartError;

/// Listener, runtime, standard streams, and some clients.
const OTHERS: u64 = 64;

/// Raises the soft limit to the hard one, so that a thousand clients are no surprise.
///
/// # Errors
/// [`StartError::OpenFiles`] when a pool of this size does not fit all the same.
pub(crate) fn ensure(pool: u32, files_per_connection: u32) -> Result<(), StartError> {
    let needed = u64::from(pool) * u64::from(files_per_connection) + OTHERS;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    if limit < needed {
        return Err(StartError::OpenFiles { limit, needed });
    }
    Ok(())
}
