//! The limit on open files: raised as far as the system lets us, and checked against the pool and the threads.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::{Config, Front, Lane, StartError};

/// Listener, runtime, standard streams, and some clients.
const OTHERS: u64 = 64;

/// Raises the soft limit to the hard one, so that a thousand clients are no surprise.
///
/// # Errors
/// [`StartError::OpenFiles`] when a pool of this size does not fit all the same.
pub(crate) fn ensure<L: Lane>(config: &Config) -> Result<(), StartError> {
    let threads = match L::FRONT {
        Front::Tasks => 0,
        // What wakes it.
        Front::ThreadPerConnection => config.threads(),
    };
    let of_the_pool = u64::from(config.pool) * u64::from(L::FILES_PER_CONNECTION);
    let needed = of_the_pool + u64::from(threads) + OTHERS;
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
