//! Whose sessions PostgreSQL has and what they do: one sample after the other, added up. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// One row of `pg_stat_activity`. What PostgreSQL hides from a role without the right to see it is `None`.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pub pid: i32,
    /// Of the database it is connected to.
    pub database: Option<u32>,
    /// `client backend`, `autovacuum worker`, ...
    pub kind: Option<String>,
    /// TCP port at the client's end; -1 for a Unix socket.
    pub port: Option<i32>,
    pub started: Option<SystemTime>,
    pub state: Option<String>,
    /// Type and name of what it waits for, such as `Timeout:PgSleep`.
    pub wait: Option<String>,
    /// The name that the program gave itself.
    pub application: Option<String>,
    /// Vacuums or analyses.
    pub maintains: bool,
}

/// How sessions are told apart.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Backends of the harness itself.
    pub own: Vec<i32>,
    /// The database under load.
    pub target: u32,
    /// TCP ports of the server's process; empty where they cannot be seen.
    pub ports: BTreeSet<u16>,
    /// The name of the lane's sessions, of a server that was attached to.
    pub lane: Option<String>,
    /// The names of sessions that may be there as long as they do nothing: those of all servers attached to.
    pub idle: Vec<String>,
}

/// How a lane's sessions were told from others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToldBy {
    /// By the ports of the server's process.
    Port,
    /// By the name that the server gives them.
    Name,
    /// Not at all: all in the target database count as the lane's. PostgreSQL knows a port that an address translation or a
    /// pooler between chose, or none.
    #[default]
    Nothing,
}

impl Scene {
    fn has_port(&self, session: &Session) -> bool {
        let port = session.port.and_then(|port| u16::try_from(port).ok());
        port.is_some_and(|port| self.ports.contains(&port))
    }

    fn told_by(&self, sessions: &[Session]) -> ToldBy {
        let by_port = |session: &Session| self.is_in_target(session) && self.has_port(session);
        match self.lane {
            Some(_) => ToldBy::Name,
            None if sessions.iter().any(by_port) => ToldBy::Port,
            None => ToldBy::Nothing,
        }
    }

    /// Whether it is another attached server's and does nothing.
    fn may_be_there(&self, session: &Session) -> bool {
        let name = session.application.as_ref();
        session.state.as_deref() == Some("idle")
            && name.is_some_and(|name| self.idle.contains(name))
    }

    fn is_own(&self, session: &Session) -> bool {
        self.own.contains(&session.pid)
    }

    /// A client's session in the database under load, be it the lane's or not.
    pub fn is_in_target(&self, session: &Session) -> bool {
        session.database == Some(self.target)
            && session.kind.as_deref() == Some("client backend")
            && !self.is_own(session)
    }

    /// Whether some session in the target database came from a port that the server's process does not hold.
    pub fn has_stranger(&self, sessions: &[Session]) -> bool {
        sessions
            .iter()
            .any(|session| self.is_in_target(session) && !self.has_port(session))
    }
}

/// A pid is given again once it is free; the start tells its sessions apart.
pub type SessionId = (i32, Option<SystemTime>);

/// What the samples of one window add up to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    pub samples: u32,
    /// Fewest and most sessions of the lane in a sample.
    pub lane_sessions: Option<(usize, usize)>,
    /// The lane's sessions in the first sample.
    pub first: BTreeSet<SessionId>,
    /// Those that were not among them.
    pub opened: BTreeSet<SessionId>,
    pub told_by: ToldBy,
    /// Sessions that are neither the lane's nor the harness's, with the number of samples they were in.
    pub foreign: BTreeMap<String, u32>,
    /// The same for vacuuming and analysing.
    pub maintenance: BTreeMap<String, u32>,
    /// Most sessions in a sample whose kind this role may not see.
    pub hidden: usize,
    /// What the lane's sessions did, by how many times one was seen doing it: their state, or what they waited for.
    pub doing: BTreeMap<String, u64>,
    /// Why the samples broke off.
    pub failure: Option<String>,
}

impl Activity {
    pub fn add(&mut self, sessions: &[Session], scene: &Scene) {
        if self.samples == 0 {
            self.told_by = scene.told_by(sessions);
        }
        let mut lane = 0;
        let mut hidden = 0;
        for session in sessions.iter().filter(|session| !scene.is_own(session)) {
            if session.maintains || session.kind.as_deref() == Some("autovacuum worker") {
                count(&mut self.maintenance, maintenance_in_words(session));
            }
            match session.kind.as_deref() {
                Some("client backend") if self.is_lanes(session, scene) => {
                    lane += 1;
                    self.add_of_lane(session);
                }
                Some("client backend") if scene.may_be_there(session) => {}
                Some("client backend" | "walsender") => {
                    count(&mut self.foreign, foreign_in_words(session, scene));
                }
                // Workers of the lane's own statements, and PostgreSQL's own processes.
                Some(_) => {}
                None => hidden += usize::from(session.database.is_some()),
            }
        }
        let (fewest, most) = self.lane_sessions.unwrap_or((lane, lane));
        self.lane_sessions = Some((fewest.min(lane), most.max(lane)));
        self.hidden = self.hidden.max(hidden);
        self.samples += 1;
    }

    fn is_lanes(&self, session: &Session, scene: &Scene) -> bool {
        scene.is_in_target(session)
            && match self.told_by {
                ToldBy::Port => scene.has_port(session),
                ToldBy::Name => session.application == scene.lane,
                ToldBy::Nothing => true,
            }
    }

    fn add_of_lane(&mut self, session: &Session) {
        let known_as = (session.pid, session.started);
        if self.samples == 0 {
            self.first.insert(known_as);
        } else if !self.first.contains(&known_as) {
            self.opened.insert(known_as);
        }
        let state = session.state.as_deref().unwrap_or("unknown");
        let doing = match &session.wait {
            // What an idle session waits for is its client.
            Some(wait) if state == "active" => wait.clone(),
            _ => state.to_owned(),
        };
        *self.doing.entry(doing).or_default() += 1;
    }
}

fn count(counts: &mut BTreeMap<String, u32>, what: String) {
    *counts.entry(what).or_default() += 1;
}

fn maintenance_in_words(session: &Session) -> String {
    let kind = session.kind.as_deref().unwrap_or("hidden session");
    format!("{kind} (pid {})", session.pid)
}

fn foreign_in_words(session: &Session, scene: &Scene) -> String {
    let place = if session.database == Some(scene.target) {
        "the target database"
    } else {
        "another database"
    };
    let application = session.application.as_deref().unwrap_or_default();
    let kind = session.kind.as_deref().unwrap_or_default();
    format!("{kind} `{application}` (pid {}) in {place}", session.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TARGET: u32 = 16_384;

    fn lanes(pid: i32) -> Session {
        Session {
            pid,
            database: Some(TARGET),
            kind: Some("client backend".into()),
            port: Some(50_000 + pid),
            started: Some(SystemTime::UNIX_EPOCH),
            state: Some("idle".into()),
            wait: Some("Client:ClientRead".into()),
            application: Some("lane".into()),
            maintains: false,
        }
    }

    fn scene() -> Scene {
        Scene {
            own: vec![1, 2],
            target: TARGET,
            ports: (50_010..50_020).collect(),
            ..Scene::default()
        }
    }

    fn added(samples: &[&[Session]]) -> Activity {
        let mut activity = Activity::default();
        for sample in samples {
            activity.add(sample, &scene());
        }
        activity
    }

    #[test]
    fn fewest_and_most_of_the_lanes_sessions_are_kept() {
        let activity = added(&[&[lanes(10), lanes(11)], &[lanes(10)]]);
        assert_eq!(
            (
                activity.samples,
                activity.lane_sessions,
                activity.opened.len()
            ),
            (2, Some((1, 2)), 0)
        );
        assert!(activity.told_by == ToldBy::Port && activity.foreign.is_empty());
    }

    #[test]
    fn a_session_that_takes_anothers_place_is_noticed_even_under_the_same_pid() {
        let again = Session {
            started: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1)),
            ..lanes(10)
        };
        let activity = added(&[&[lanes(10)], &[again], &[lanes(11)]]);
        assert_eq!(
            (activity.lane_sessions, activity.opened.len()),
            (Some((1, 1)), 2)
        );
    }

    #[test]
    fn sessions_of_another_attached_server_are_foreign_once_they_do_something() {
        let of = |pid, name: &str, state: &str| Session {
            application: Some(name.into()),
            state: Some(state.into()),
            ..lanes(pid)
        };
        let attached = Scene {
            target: TARGET,
            lane: Some("one".into()),
            idle: vec!["one".into(), "two".into()],
            ..Scene::default()
        };
        let mut activity = Activity::default();
        activity.add(&[of(10, "one", "active"), of(11, "two", "idle")], &attached);
        assert_eq!(activity.lane_sessions, Some((1, 1)));
        assert_eq!(
            (activity.told_by, activity.foreign.len()),
            (ToldBy::Name, 0)
        );
        for (name, state) in [
            ("two", "active"),
            ("two", "idle in transaction"),
            ("psql", "idle"),
        ] {
            let mut activity = activity.clone();
            activity.add(&[of(10, "one", "idle"), of(11, name, state)], &attached);
            assert_eq!(
                (activity.lane_sessions, activity.foreign.len()),
                (Some((1, 1)), 1)
            );
        }
    }

    #[test]
    fn a_session_from_somebody_elses_port_or_in_another_database_is_foreign() {
        let strangers_port = lanes(99);
        let elsewhere = Session {
            database: Some(5),
            ..lanes(12)
        };
        let own = Session {
            database: Some(5),
            ..lanes(1)
        };
        let sample = [lanes(10), strangers_port, elsewhere, own];
        let activity = added(&[&sample, &sample]);
        assert_eq!(activity.lane_sessions, Some((1, 1)));
        assert_eq!(
            activity.foreign,
            [
                (
                    "client backend `lane` (pid 12) in another database".into(),
                    2
                ),
                (
                    "client backend `lane` (pid 99) in the target database".into(),
                    2
                ),
            ]
            .into()
        );
    }

    #[test]
    fn where_no_port_is_the_servers_all_in_the_target_database_are_the_lanes() {
        let behind_nat = [lanes(90), lanes(91)];
        let activity = added(&[&behind_nat]);
        assert_eq!(activity.lane_sessions, Some((2, 2)));
        assert!(activity.told_by == ToldBy::Nothing && activity.foreign.is_empty());
    }

    #[test]
    fn a_replica_is_foreign_and_postgresqls_own_processes_are_not() {
        let of_kind = |pid, kind: &str| Session {
            pid,
            kind: Some(kind.into()),
            ..Session::default()
        };
        let activity = added(&[&[of_kind(7, "walsender"), of_kind(8, "checkpointer")]]);
        assert_eq!(activity.foreign.len(), 1);
        assert!(activity.maintenance.is_empty());
    }

    #[test]
    fn autovacuum_and_vacuums_by_hand_are_maintenance() {
        let worker = Session {
            pid: 30,
            database: Some(TARGET),
            kind: Some("autovacuum worker".into()),
            ..Session::default()
        };
        let by_hand = Session {
            maintains: true,
            ..lanes(10)
        };
        let activity = added(&[&[worker, by_hand]]);
        assert_eq!(
            activity.maintenance.keys().collect::<Vec<_>>(),
            ["autovacuum worker (pid 30)", "client backend (pid 10)"]
        );
        assert_eq!(activity.lane_sessions, Some((1, 1)));
    }

    #[test]
    fn sessions_whose_kind_is_hidden_are_counted_as_such() {
        let hidden = Session {
            pid: 40,
            database: Some(5),
            ..Session::default()
        };
        assert_eq!(added(&[&[hidden]]).hidden, 1);
    }

    #[test]
    fn sessions_are_counted_by_what_they_do() {
        let active = |wait: Option<&str>| Session {
            state: Some("active".into()),
            wait: wait.map(str::to_owned),
            ..lanes(10)
        };
        let activity = added(&[
            &[lanes(10), lanes(11)],
            &[active(Some("Timeout:PgSleep"))],
            &[active(None)],
        ]);
        assert_eq!(
            activity.doing,
            [
                ("Timeout:PgSleep".into(), 1),
                ("active".into(), 1),
                ("idle".into(), 2)
            ]
            .into()
        );
    }
}
