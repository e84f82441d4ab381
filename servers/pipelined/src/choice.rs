//! Which connection a request takes.
//!
//! Statements that meet on a connection share its system calls and its wake-ups, on both sides, and that is all the gain
//! there is in a pipeline; but PostgreSQL executes them one after another, and a short one waits behind a long one. With
//! as many connections as usual and a request on each, they would hardly ever meet. So each worker thread has a share of
//! the connections to itself and uses the first of them, until the statements on it would keep a newcomer waiting for
//! [`DEEP_ENOUGH`]; then the next of its share. When all of them are that deep, the request takes the connection that has
//! the least to do, whosever it is.
//!
//! What is on a connection is counted in time and not in statements: a hundred primary keys are a good batch, and two
//! waits of ten milliseconds are a queue beside idle connections. With statements that take long the rule is that of the
//! least backlog, and no connection idles while another has two of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// As long as a newcomer has to wait for less than this, it is worth meeting others.
pub(crate) const DEEP_ENOUGH: Duration = Duration::from_millis(1);

/// The place among `connections` of the one to take. `backlog_ns` is the time that the statements on a connection are
/// expected to take; `None` where there is no connection just now. `None` if there is none at all.
///
/// The share of a worker is every `workers`-th connection from its own place on.
pub(crate) fn choose(
    connections: usize,
    worker: usize,
    workers: usize,
    backlog_ns: impl Fn(usize) -> Option<u64>,
) -> Option<usize> {
    if connections == 0 {
        return None;
    }
    let workers = workers.max(1);
    let home = worker % workers % connections;
    let deep_enough = DEEP_ENOUGH.as_nanos() as u64;
    let shallow = |&place: &usize| backlog_ns(place).is_some_and(|backlog| backlog < deep_enough);
    let own = (home..connections).step_by(workers).find(shallow);
    own.or_else(|| {
        // From home on, so that workers with the same choice do not all make it.
        let around = (home..connections).chain(0..home);
        let known = around.filter_map(|place| Some((backlog_ns(place)?, place)));
        known
            .min_by_key(|(backlog, _)| *backlog)
            .map(|(_, place)| place)
    })
}

/// The number of the thread, from 0: worker threads are numbered in the order in which they first ask.
pub(crate) fn this_worker() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        OWN.set(Some(number));
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 10_000_000;

    fn chosen(worker: usize, backlogs: &[Option<u64>]) -> Option<usize> {
        choose(backlogs.len(), worker, 2, |place| backlogs[place])
    }

    #[test]
    fn a_worker_keeps_to_the_first_of_its_share() {
        let idle = [Some(0); 4];
        assert_eq!([chosen(0, &idle), chosen(1, &idle)], [Some(0), Some(1)]);
        let used = [Some(900_000), Some(900_000), Some(0), Some(0)];
        assert_eq!([chosen(0, &used), chosen(1, &used)], [Some(0), Some(1)]);
    }

    #[test]
    fn what_is_deep_enough_sends_it_to_the_next_of_its_share() {
        let backlogs = [Some(1_000_000), Some(0), Some(500_000), Some(0)];
        assert_eq!(chosen(0, &backlogs), Some(2));
    }

    #[test]
    fn a_share_that_is_deep_enough_makes_it_take_the_least_backlog_of_all() {
        let backlogs = [Some(LONG), Some(0), Some(LONG), Some(1)];
        assert_eq!(chosen(0, &backlogs), Some(1));
        let deep = [Some(3 * LONG), Some(2 * LONG), Some(3 * LONG), Some(LONG)];
        assert_eq!(chosen(0, &deep), Some(3));
    }

    #[test]
    fn long_statements_spread_over_all_connections_before_any_has_two() {
        let mut backlogs = [Some(0); 8];
        for request in 0..16 {
            let place = chosen(request % 2, &backlogs).unwrap();
            backlogs[place] = backlogs[place].map(|backlog| backlog + LONG);
        }
        assert_eq!(backlogs, [Some(2 * LONG); 8]);
    }

    #[test]
    fn a_connection_that_is_gone_is_passed_over() {
        assert_eq!(chosen(0, &[None, Some(LONG), None, None]), Some(1));
        assert_eq!(chosen(0, &[None, None]), None);
        assert_eq!(chosen(0, &[]), None);
    }

    #[test]
    fn more_workers_than_connections_share_them() {
        let idle = [Some(0); 3];
        let homes = [0, 1, 2, 3].map(|worker| choose(3, worker, 4, |place| idle[place]));
        assert_eq!(homes, [Some(0), Some(1), Some(2), Some(0)]);
    }
}
