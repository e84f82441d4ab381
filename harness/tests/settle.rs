//! The database between two trials: whatever was written is put back as it was seeded, in bytes and in pages.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use harness::database::leftovers::RunFolder;
use harness::database::seed::{self, Scale, Seeded};
use harness::database::settle::Settler;
use harness::database::{Choice, open};
use harness::monitor::Monitor;
use postgres::Client;
use support::{TestDatabase, say};

/// A seeded shop, and what settles it.
struct Scene {
    database: TestDatabase,
    scale: Scale,
    seeded: Seeded,
    settler: Settler,
    monitor: Monitor,
}

impl Scene {
    fn set(scale: &str) -> Self {
        let database = TestDatabase::fresh();
        let scale: Scale = scale.parse().unwrap();
        let never = AtomicBool::new(false);
        let seeded = seed::ensure(&database.url, scale, &never).unwrap();
        let folder = Arc::new(RunFolder::create().unwrap());
        let opened = open(&Choice::Url(database.url.clone()), &folder, &never).unwrap();
        let monitor = Monitor::connect(&opened).unwrap();
        Self {
            settler: Settler::of(&opened, scale, &monitor).unwrap(),
            database,
            scale,
            seeded,
            monitor,
        }
    }

    /// Whether something had changed.
    fn settle(&mut self) -> bool {
        self.settler
            .settle(&self.monitor, &AtomicBool::new(false))
            .unwrap()
    }

    fn seed_again(&self) -> Seeded {
        seed::ensure(&self.database.url, self.scale, &AtomicBool::new(false)).unwrap()
    }
}

fn one<T: for<'a> postgres::types::FromSql<'a>>(client: &mut Client, query: &str) -> T {
    client.query_one(query, &[]).unwrap().get(0)
}

#[test]
fn between_trials_changed_tables_are_put_back_and_statements_keep_their_ids() {
    let mut scene = Scene::set("0.01");
    assert!(!scene.settle(), "nothing has changed yet");

    // An id is made of the tables' object ids among other things.
    let oids = "SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_class
                WHERE relnamespace = 'shop'::regnamespace AND relkind = 'r'";
    let before: String = one(&mut scene.database.client(), oids);
    let pages = "SELECT string_agg(relname || ' ' || pg_table_size(oid), ', ' ORDER BY relname) FROM pg_class
                 WHERE relnamespace = 'shop'::regnamespace AND relkind IN ('r', 'i')";
    let as_seeded: String = one(&mut scene.database.client(), pages);
    for writes in WRITES {
        scene.database.client().batch_execute(writes).unwrap();
        assert!(scene.settle(), "not seen: {writes}");
        assert_eq!(
            one::<String>(&mut scene.database.client(), oids),
            before,
            "{writes}"
        );
        assert_eq!(
            one::<String>(&mut scene.database.client(), pages),
            as_seeded,
            "{writes}"
        );
        let again = scene.seed_again();
        assert_eq!(again.fingerprint, scene.seeded.fingerprint, "{writes}");
        assert!(again.skipped, "not put back: {writes}");
        assert!(!scene.settle(), "nothing has changed since: {writes}");
    }
}

/// What the workloads do, and worse.
const WRITES: [&str; 9] = [
    "UPDATE shop.accounts SET balance_cents = balance_cents - 5 WHERE id < 10;
     INSERT INTO shop.ledger (from_account, to_account, amount_cents) VALUES (1, 2, 5)",
    "UPDATE shop.views SET seen = seen + 1",
    "INSERT INTO shop.members (email, name) VALUES ('a@b.example', 'A'), ('c@d.example', 'C')",
    "UPDATE shop.documents SET body = jsonb_set(body, '{stock}', '7')",
    "DELETE FROM shop.measurements WHERE id % 2 = 0",
    // Nothing but an identity that has moved on.
    "SELECT nextval('shop.members_id_seq')",
    // Nothing but dead rows.
    "BEGIN; UPDATE shop.accounts SET balance_cents = 0; ROLLBACK",
    // A table that others refer to.
    "UPDATE shop.items SET stock = 0 WHERE id < 100",
    "UPDATE shop.accounts SET balance_cents = 0 WHERE id < 10; DELETE FROM shop.comments WHERE id = 7",
];

#[test]
fn putting_back_what_a_workload_wrote_takes_less_than_half_a_seed() {
    let _turn = support::turn();
    let mut scene = Scene::set("1");
    scene.settle();
    let seeding = scene.seeded.took;
    for writes in &WRITES[..5] {
        scene.database.client().batch_execute(writes).unwrap();
        let started = Instant::now();
        assert!(scene.settle());
        let took = started.elapsed();
        say(&format!("put back in {took:.2?}: {writes}"));
        assert!(took < seeding / 2, "{took:?} of {seeding:?}: {writes}");
    }
}
