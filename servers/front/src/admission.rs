//! How many requests may be on their way to or at the database. The same code in every lane.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::Failure;

/// Admits `pool + queue` requests at a time and sheds the rest at once, so that overload costs a refused client
/// nothing but the refusal.
///
/// Only requests that need a connection ask for a place: a full database is no reason to refuse a route that
/// does not use it.
#[derive(Debug)]
pub(crate) struct Admission {
    places: Semaphore,
    capacity: usize,
    admitted: AtomicU64,
    shed: AtomicU64,
}

impl Admission {
    pub(crate) fn new(pool: u32, queue: u32) -> Admission {
        let capacity = pool as usize + queue as usize;
        let places = Semaphore::new(capacity);
        Admission {
            places,
            capacity,
            admitted: AtomicU64::new(0),
            shed: AtomicU64::new(0),
        }
    }

    /// A place until the permit is dropped.
    ///
    /// # Errors
    /// [`Failure::QueueFull`] when every place is taken.
    pub(crate) fn admit(&self) -> Result<SemaphorePermit<'_>, Failure> {
        match self.places.try_acquire() {
            Ok(place) => {
                self.admitted.fetch_add(1, Ordering::Relaxed);
                Ok(place)
            }
            Err(_) => Err(self.shed_one()),
        }
    }

    /// What becomes of a request for which there is no place.
    pub(crate) fn shed_one(&self) -> Failure {
        self.shed.fetch_add(1, Ordering::Relaxed);
        Failure::QueueFull
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed)
    }

    pub(crate) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    /// Requests that have a place now.
    pub(crate) fn in_flight(&self) -> u32 {
        let taken = self
            .capacity
            .saturating_sub(self.places.available_permits());
        u32::try_from(taken).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_and_queue_are_admitted_and_the_next_is_shed() {
        let admission = Admission::new(2, 1);
        let places: Vec<_> = (0..3).map(|_| admission.admit().unwrap()).collect();
        assert!(matches!(admission.admit(), Err(Failure::QueueFull)));
        assert_eq!(
            (
                admission.admitted(),
                admission.shed(),
                admission.in_flight()
            ),
            (3, 1, 3)
        );
        drop(places);
        assert!(admission.admit().is_ok());
    }
}
