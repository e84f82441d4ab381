//! The connections of the lane, each in its slot from start to stop, and replaced there when it dies.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use front::OpenError;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::Config;

use crate::choice::choose;
use crate::link::{Ended, Link, LinkError};

/// Between two attempts to replace a connection.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// As many connections as the pool is asked to have.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Arc<Slot>>,
    workers: usize,
    keepers: Mutex<JoinSet<()>>,
}

/// Empty while its connection is being replaced.
type Slot = RwLock<Option<Arc<Link>>>;

/// What it takes to make a connection.
#[derive(Debug)]
struct Recipe {
    config: Config,
    statements: Vec<String>,
}

impl Slots {
    /// Opens all connections, and looks after each from then on.
    ///
    /// # Errors
    /// The first that cannot be made, or a statement that is refused.
    pub(crate) async fn open(
        config: Config,
        statements: &[String],
        wanted: u32,
        workers: usize,
    ) -> Result<Slots, OpenError> {
        let address = rust_postgres::address(&config);
        let recipe = Arc::new(Recipe {
            config,
            statements: statements.to_vec(),
        });
        let (mut slots, mut keepers) = (Vec::new(), JoinSet::new());
        for opened in 0..wanted {
            let link = Link::open(&recipe.config, &recipe.statements).await;
            let (link, ended) = link.map_err(|error| match error {
                LinkError::Connect(cause) => OpenError::connection(&address, opened, wanted, cause),
                LinkError::Prepare(place, error) => OpenError::prepare(&statements[place], error),
            })?;
            let slot = Arc::new(RwLock::new(Some(Arc::new(link))));
            keepers.spawn(keep(Arc::clone(&slot), ended, Arc::clone(&recipe)));
            slots.push(slot);
        }
        Ok(Slots {
            slots,
            workers,
            keepers: Mutex::new(keepers),
        })
    }

    /// The connection for a request of this worker; `None` if all of them are gone.
    pub(crate) fn take(&self, worker: usize) -> Option<Arc<Link>> {
        let place = choose(self.slots.len(), worker, self.workers, |place| {
            self.looked_at(place, |link| link.backlog_ns()).flatten()
        })?;
        self.looked_at(place, Arc::clone)
    }

    /// What `look` sees of each connection that there is.
    pub(crate) fn each<T>(&self, look: impl Fn(&Arc<Link>) -> T) -> Vec<T> {
        let places = 0..self.slots.len();
        places
            .filter_map(|place| self.looked_at(place, &look))
            .collect()
    }

    fn looked_at<T>(&self, place: usize, look: impl FnOnce(&Arc<Link>) -> T) -> Option<T> {
        let slot = self.slots[place].read();
        slot.unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(look)
    }

    /// Lets go of all connections, for good.
    pub(crate) fn close(&self) {
        let keepers = self.keepers.lock();
        keepers.unwrap_or_else(PoisonError::into_inner).abort_all();
        for slot in &self.slots {
            put(slot, None);
        }
    }
}

fn put(slot: &Slot, link: Option<Arc<Link>>) {
    *slot.write().unwrap_or_else(PoisonError::into_inner) = link;
}

/// Makes a new connection whenever the one in the slot has ended.
async fn keep(slot: Arc<Slot>, mut ended: Ended, recipe: Arc<Recipe>) {
    loop {
        // Why it ended is told by the requests that were on it.
        let _ = ended.await;
        put(&slot, None);
        ended = loop {
            match Link::open(&recipe.config, &recipe.statements).await {
                Ok((link, ended)) => {
                    put(&slot, Some(Arc::new(link)));
                    break ended;
                }
                Err(_) => sleep(AGAIN_AFTER).await,
            }
        };
    }
}
