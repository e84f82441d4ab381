//! What the monitor and the sampler see of a real PostgreSQL.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use harness::cpus::CpuPlan;
use harness::database::leftovers::RunFolder;
use harness::database::{self, Choice, Database};
use harness::monitor::Monitor;
use harness::sampler::{Activity, Sampled, Sampler, ToldBy, Watched};
use postgres::{Client, NoTls};
use support::TestDatabase;

const TWO_SAMPLES: Duration = Duration::from_millis(300);

struct Scene {
    test: TestDatabase,
    opened: Database,
    monitor: Monitor,
    // Dropped last: the others' sessions in the same server would be seen as foreign.
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    fn set() -> Scene {
        let turn = support::turn();
        let test = TestDatabase::fresh();
        let folder = Arc::new(RunFolder::create().unwrap());
        let choice = Choice::Url(test.url.clone());
        let opened = database::open(&choice, &folder, &AtomicBool::new(false)).unwrap();
        let monitor = Monitor::connect(&opened).unwrap();
        Scene {
            test,
            opened,
            monitor,
            _turn: turn,
        }
    }

    /// What a window sees in which `work` is done, with the process `server` as the server.
    fn window(&self, server: u32, work: impl FnOnce()) -> Sampled {
        let watched = Watched {
            server: Some(server),
            session_name: None,
            postmaster: self.opened.postmaster_pid,
            cpus: CpuPlan::for_this_machine().unwrap(),
        };
        let sampler = Sampler::start(&self.opened, &self.monitor, watched).unwrap();
        sampler.edge();
        work();
        sampler.edge();
        sampler.collect()
    }

    /// With this process as the server, so that its connections are the lane's.
    fn activity(&self, work: impl FnOnce()) -> Activity {
        let seen = self.window(std::process::id(), work);
        assert_eq!(seen.activity.failure, None);
        seen.activity
    }

    fn lane(&self, sessions: usize) -> Vec<Client> {
        (0..sessions).map(|_| self.test.client()).collect()
    }
}

fn two_samples() {
    thread::sleep(TWO_SAMPLES);
}

#[test]
fn a_full_pool_is_seen_and_so_is_one_session_more() {
    let scene = Scene::set();
    let _lane = scene.lane(3);
    let quiet = scene.activity(two_samples);
    assert!(quiet.samples >= 2, "{quiet:?}");
    assert_eq!(quiet.lane_sessions, Some((3, 3)));
    assert!(
        quiet.told_by == ToldBy::Port && quiet.opened.is_empty(),
        "{quiet:?}"
    );
    assert!(quiet.foreign.is_empty() && quiet.maintenance.is_empty());
    assert_eq!(quiet.doing.keys().collect::<Vec<_>>(), ["idle"]);

    let one_more = scene.activity(|| {
        thread::sleep(Duration::from_millis(100));
        let _one_more = scene.lane(1);
        two_samples();
    });
    assert_eq!(one_more.lane_sessions, Some((3, 4)));
    assert_eq!(one_more.opened.len(), 1);
}

#[test]
fn a_session_in_another_database_is_foreign() {
    let scene = Scene::set();
    let _lane = scene.lane(1);
    let elsewhere = Client::connect(&scene.opened.monitor_url, NoTls).unwrap();
    let seen = scene.activity(two_samples);
    assert_eq!(seen.lane_sessions, Some((1, 1)));
    assert_eq!(seen.foreign.len(), 1, "{seen:?}");
    let (who, samples) = seen.foreign.first_key_value().unwrap();
    assert!(who.contains("in another database"), "{who}");
    assert_eq!(*samples, seen.samples);
    drop(elsewhere);
}

/// A process without a connection of its own, as a server in another network has none that we can see.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        Bystander(Command::new("sleep").arg("60").spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sessions_whose_port_tells_nothing_are_taken_for_the_lanes() {
    let scene = Scene::set();
    let _lane = scene.lane(2);
    let server = Bystander::start();
    let seen = scene.window(server.0.id(), two_samples).activity;
    assert_eq!(seen.lane_sessions, Some((2, 2)));
    assert!(
        seen.told_by == ToldBy::Nothing && seen.foreign.is_empty(),
        "{seen:?}"
    );
}

#[test]
fn a_sleep_in_the_database_and_a_vacuum_are_seen_while_they_last() {
    let scene = Scene::set();
    let mut lane = scene.lane(2);
    lane[0]
        .batch_execute(
            "CREATE TABLE slow AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 1000);
             DELETE FROM slow; SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1",
        )
        .unwrap();
    let cancel = lane[0].cancel_token();
    let mut sleeper = lane.pop().unwrap();
    let mut vacuumer = lane.pop().unwrap();
    let seen = scene.activity(|| {
        thread::scope(|scope| {
            scope.spawn(|| sleeper.batch_execute("SELECT pg_sleep(0.5)").unwrap());
            // It would take minutes, and ends when it is told to.
            scope.spawn(|| vacuumer.batch_execute("VACUUM slow").unwrap_err());
            thread::sleep(Duration::from_millis(700));
            cancel.cancel_query(NoTls).unwrap();
        });
    });
    assert!(seen.doing.contains_key("Timeout:PgSleep"), "{seen:?}");
    assert_eq!(seen.maintenance.len(), 1, "{seen:?}");
}

#[test]
fn a_window_is_told_second_by_second() {
    let scene = Scene::set();
    let _lane = scene.lane(1);
    let start = Instant::now();
    let seen = scene.window(std::process::id(), || {
        while start.elapsed() < Duration::from_millis(1_300) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(seen.seconds.len(), 1, "{:?}", seen.seconds);
    let second = &seen.seconds[0];
    let server = second.server.unwrap();
    assert!(server.cpu > 0.0 && server.switches > 0.0 && server.threads > 1);
    if let Some(database) = second.database {
        assert!(database.threads > 3 && database.rss_bytes > 1 << 20);
    }
    assert!(seen.cpu < Duration::from_millis(100), "{:?}", seen.cpu);
}

#[test]
fn a_sampler_without_a_window_ends_without_a_word() {
    let scene = Scene::set();
    let watched = Watched {
        server: Some(std::process::id()),
        session_name: None,
        postmaster: None,
        cpus: CpuPlan::of(&[]),
    };
    let sampler = Sampler::start(&scene.opened, &scene.monitor, watched).unwrap();
    let seen = sampler.collect();
    assert_eq!(
        seen.activity.failure.as_deref(),
        Some("the window did not begin")
    );
}

#[test]
fn statements_rows_and_checkpoints_are_counted() {
    let mut scene = Scene::set();
    let mut client = scene.test.client();
    let vitals = scene.monitor.vitals().unwrap();
    let before = scene.monitor.queries().unwrap();
    let totals = scene.monitor.statements().unwrap();
    for _ in 0..3 {
        client.query("SELECT generate_series(1, 4)", &[]).unwrap();
    }
    client.batch_execute("CHECKPOINT").unwrap();
    let after = scene.monitor.vitals().unwrap();
    assert_eq!(after.started, vitals.started);
    assert!(after.checkpoints > vitals.checkpoints);
    if let (Some(before), Some(totals)) = (before, totals) {
        let since = scene.monitor.queries().unwrap().unwrap().since(&before);
        let mut calls: Vec<u64> = since.calls().collect();
        calls.sort_unstable();
        assert_eq!(calls, [1, 3], "{since}");
        let total = scene.monitor.statements().unwrap().unwrap().since(totals);
        assert_eq!((total.calls, total.rows), (4, 12));
    }
}

#[test]
fn a_monitor_whose_session_was_ended_comes_back() {
    let mut scene = Scene::set();
    let (pid, vitals) = (scene.monitor.pid, scene.monitor.vitals().unwrap());
    scene
        .test
        .client()
        .execute("SELECT pg_terminate_backend($1)", &[&pid])
        .unwrap();
    assert_eq!(scene.monitor.vitals().unwrap().started, vitals.started);
    assert_ne!(scene.monitor.pid, pid);
}
