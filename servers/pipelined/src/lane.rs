//! The lane's side of the contract with the front.

use std::sync::atomic::Ordering;
use std::time::Duration;

use front::{Config, Failure, Kind, Lane, Laps, OpenError, PoolUse, Profile, Work};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::choice::this_worker;
use crate::flight::Cost;
use crate::session::Shared;
use crate::slots::Slots;

/// Connections that all requests share. None waits for one, and what is in flight is bounded by the front's admission.
#[derive(Debug)]
pub(crate) struct Pipelined {
    slots: Slots,
    /// By the place of the statement.
    costs: Vec<Cost>,
}

impl Lane for Pipelined {
    const NAME: &'static str = "pipelined";
    const KIND: Kind = Kind::Pipelined;
    const CRATES: &'static [&'static str] = &["tokio-postgres"];

    async fn open(flags: &Config, statements: &[String]) -> Result<Pipelined, OpenError> {
        let postgres = rust_postgres::config(flags, Pipelined::NAME)?;
        let workers = Handle::current().metrics().num_workers();
        Ok(Pipelined {
            slots: Slots::open(postgres, statements, flags.pool, workers).await?,
            costs: statements.iter().map(|_| Cost::unknown()).collect(),
        })
    }

    async fn run<W: Work>(&self, work: W, mut laps: Laps) -> Result<(W::Answer, Laps), Failure> {
        let link = self
            .slots
            .take(this_worker())
            .ok_or_else(|| Failure::ConnectionLost("all connections are being replaced".into()))?;
        laps.connected();
        let answer = work.run(&mut Shared::of(link, &self.costs)).await?;
        laps.decoded();
        Ok((answer, laps))
    }

    async fn wait(&self, duration: Duration) -> Result<(), Failure> {
        sleep(duration).await;
        Ok(())
    }

    fn pool_use(&self) -> PoolUse {
        let used = self
            .slots
            .each(|link| link.requests.load(Ordering::Relaxed) > 0);
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        PoolUse {
            size: narrow(used.len()),
            in_use: narrow(used.iter().filter(|used| **used).count()),
        }
    }

    /// There is no pool library whose defaults could differ.
    fn notes(_: Profile) -> &'static [&'static str] {
        &[
            "several statements are in flight on each connection; both profiles are the same",
            "export: all rows are read at once and kept until the client has them, so that it holds up nobody else",
        ]
    }

    async fn close(&self) {
        self.slots.close();
    }
}
