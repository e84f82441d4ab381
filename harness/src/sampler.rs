//! Watches a window from beside it: PostgreSQL's sessions every 200 ms, the machine's processes every second, on a thread
//! and a connection of its own.

mod activity;

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::time::ClockId;
use postgres::{Client, Statement};

use crate::cpus::{self, CpuPlan};
use crate::database::Database;
use crate::database::connection::connect;
use crate::machine::{self, Second, Series};
use crate::monitor::{self, Monitor};

pub use activity::{Activity, Scene, Session, SessionId, ToldBy};

const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// So much earlier than that, so that the last of a window of whole seconds comes while everybody is still at work.
const AHEAD: Duration = Duration::from_millis(20);
/// Every fifth sample reads the processes too.
const SAMPLES_A_SECOND: u32 = 5;
/// A PostgreSQL that takes longer for a sample has stopped.
const COLLECT_LIMIT: Duration = Duration::from_secs(5);

/// The function behind `pg_stat_activity`, without the view's joins. Sessions of no database are background processes,
/// and replicas.
const QUERY: &str = "
    SELECT pid, datid, backend_type, client_port, backend_start, state,
        wait_event_type || ':' || wait_event, application_name,
        pid IN (SELECT p.pid FROM pg_stat_get_progress_info('VACUUM') p
            UNION ALL SELECT p.pid FROM pg_stat_get_progress_info('ANALYZE') p)
    FROM pg_stat_get_activity(NULL)
    WHERE datid IS NOT NULL OR backend_type = 'walsender'";

/// What it watches.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The server's process, if it was started here.
    pub server: Option<u32>,
    /// The name of its sessions, if it was attached to.
    pub session_name: Option<String>,
    /// PostgreSQL's first process, where it can be seen.
    pub postmaster: Option<u32>,
    pub cpus: CpuPlan,
}

/// What it saw.
#[derive(Debug)]
pub struct Sampled {
    pub activity: Activity,
    pub seconds: Vec<Second>,
    /// CPU time of the thread within the window.
    pub cpu: Duration,
}

impl Sampled {
    fn nothing(failure: String) -> Sampled {
        Sampled {
            activity: Activity {
                failure: Some(failure),
                ..Activity::default()
            },
            seconds: Vec::new(),
            cpu: Duration::ZERO,
        }
    }
}

/// A thread that waits for the window. Dropping it ends the thread.
#[derive(Debug)]
pub struct Sampler {
    orders: Sender<()>,
    seen: Receiver<Sampled>,
}

impl Sampler {
    /// Connects, and has the thread ready.
    ///
    /// # Errors
    /// The connection fails.
    pub fn start(database: &Database, monitor: &Monitor, watched: Watched) -> Result<Sampler> {
        let mut client = connect(&database.monitor_url)?;
        let pid = client
            .query_one("SELECT pg_backend_pid()", &[])?
            .try_get(0)?;
        let query = client
            .prepare(QUERY)
            .context("cannot watch PostgreSQL's sessions")?;
        let vitals = monitor.prepare_vitals(&mut client)?;
        let scene = Scene {
            own: vec![pid, monitor.pid],
            target: monitor.database_oid,
            ports: ports(watched.server),
            lane: watched.session_name.clone(),
            idle: monitor.attached().to_vec(),
        };
        let (orders, inbox) = mpsc::channel();
        let (outbox, seen) = mpsc::channel();
        let thread = move || {
            // The harness's own work stays off the CPUs of what it watches. A thread goes by its id as a process does.
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let _ = cpus::move_process(own.unsigned_abs(), &watched.cpus.generator);
            let mut watch = Watch {
                client,
                query,
                vitals,
                scene,
                watched,
                activity: Activity::default(),
            };
            if let Some(seen) = watch.window(&inbox) {
                // Closed before it is told: whoever comes next must not meet the session.
                drop(watch);
                let _ = outbox.send(seen);
            }
        };
        thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(thread)
            .context("cannot start a thread")?;
        Ok(Sampler { orders, seen })
    }

    /// The window begins, or ends. Does not wait.
    pub fn edge(&self) {
        // It fails if the thread has ended, which is noticed when it is collected.
        let _ = self.orders.send(());
    }

    /// What it saw from the first edge to the second. Waits for a sample under way.
    pub fn collect(self) -> Sampled {
        drop(self.orders);
        match self.seen.recv_timeout(COLLECT_LIMIT) {
            Ok(seen) => seen,
            Err(RecvTimeoutError::Timeout) => Sampled::nothing(format!(
                "a sample takes longer than {} s",
                COLLECT_LIMIT.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                Sampled::nothing("the window did not begin".to_owned())
            }
        }
    }
}

/// The thread's own.
struct Watch {
    client: Client,
    query: Statement,
    vitals: Statement,
    scene: Scene,
    watched: Watched,
    activity: Activity,
}

impl Watch {
    /// `None` if the window never begins.
    fn window(&mut self, orders: &Receiver<()>) -> Option<Sampled> {
        orders.recv().ok()?;
        let cpu = cpu_of_this_thread();
        let start = Instant::now();
        let mut series = {
            let Watched {
                server,
                postmaster,
                cpus,
                session_name: _,
            } = &self.watched;
            Series::start(cpus, *server, *postmaster)
        };
        let mut checkpoints = self.checkpoints();
        let mut tick = 0;
        loop {
            self.sample();
            tick = next_tick(start.elapsed(), tick);
            let pause = due(tick).saturating_sub(start.elapsed());
            // An order and the end of the orders mean the same: the window is over.
            if orders.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if tick.is_multiple_of(SAMPLES_A_SECOND) {
                let before = std::mem::replace(&mut checkpoints, self.checkpoints());
                let begun = checkpoints.zip(before);
                series.take(begun.map(|(now, before)| now.saturating_sub(before)));
            }
        }
        Some(Sampled {
            activity: std::mem::take(&mut self.activity),
            seconds: series.finish(),
            cpu: cpu_of_this_thread().saturating_sub(cpu),
        })
    }

    /// Begun so far. `None` where PostgreSQL does not answer, which the sample says.
    fn checkpoints(&mut self) -> Option<u64> {
        let row = self.client.query_one(&self.vitals, &[]).ok()?;
        Some(monitor::vitals_of(&row).ok()?.checkpoints)
    }

    /// After a failure there are no more.
    fn sample(&mut self) {
        if self.activity.failure.is_some() {
            return;
        }
        match self.sessions() {
            Ok(sessions) => {
                if self.scene.has_stranger(&sessions) {
                    // A lane may have opened a connection since.
                    self.scene.ports.extend(ports(self.watched.server));
                }
                self.activity.add(&sessions, &self.scene);
            }
            Err(error) => self.activity.failure = Some(error.to_string()),
        }
    }

    fn sessions(&mut self) -> Result<Vec<Session>, postgres::Error> {
        let rows = self.client.query(&self.query, &[])?;
        let sessions = rows.iter().map(|row| {
            Ok(Session {
                pid: row.try_get(0)?,
                database: row.try_get(1)?,
                kind: row.try_get(2)?,
                port: row.try_get(3)?,
                started: row.try_get(4)?,
                state: row.try_get(5)?,
                wait: row.try_get(6)?,
                application: row.try_get(7)?,
                maintains: row.try_get(8)?,
            })
        });
        sessions.collect()
    }
}

fn ports(server: Option<u32>) -> BTreeSet<u16> {
    server.map_or_else(BTreeSet::new, |server| {
        machine::local_ports(&machine::family(server))
    })
}

fn cpu_of_this_thread() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID
        .now()
        .map_or(Duration::ZERO, Duration::from)
}

/// When a tick is due, from the window's start.
fn due(tick: u32) -> Duration {
    (SAMPLE_EVERY * tick).saturating_sub(AHEAD)
}

/// The first tick that is still to come, so that a late sample does not make the others follow each other in haste.
fn next_tick(elapsed: Duration, tick: u32) -> u32 {
    let passed = (elapsed + AHEAD).as_nanos() / SAMPLE_EVERY.as_nanos();
    u32::try_from(passed).unwrap_or(u32::MAX - 1).max(tick) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_is_left_out_and_not_made_up_for() {
        assert_eq!(next_tick(Duration::from_millis(3), 0), 1);
        assert_eq!(next_tick(Duration::from_millis(183), 1), 2);
        assert_eq!(next_tick(Duration::from_millis(950), 1), 5);
    }

    #[test]
    fn the_last_of_five_samples_a_second_comes_before_the_second_is_over() {
        assert_eq!(due(5), Duration::from_millis(980));
    }
}
