//! Which servers may stand beside each other. A pipelined lane has several statements in flight on each connection; what
//! it does with a pool is not what the others do with it, so it is compared with its like alone.

use crate::campaign::{Campaign, ServerRecord, Trial};
use crate::rung::Rung;
use crate::server::Lane;
use crate::verdicts;

/// Servers of one class are compared with each other, and with no other server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// One statement in flight on each connection.
    OneAtATime,
    Pipelined,
}

impl Class {
    const ALL: [Class; 2] = [Class::OneAtATime, Class::Pipelined];

    /// Of the lane that `server.toml` names.
    pub fn of_lane(lane: Lane) -> Class {
        match lane {
            Lane::Nonblocking | Lane::Blocking => Class::OneAtATime,
            Lane::Pipelined => Class::Pipelined,
        }
    }

    /// Of a server by its name.
    pub fn of(servers: &[ServerRecord], name: &str) -> Class {
        let record = servers.iter().find(|server| server.name == name);
        record.map_or(Class::OneAtATime, |server| Class::of_lane(server.lane))
    }

    /// Those that a campaign has servers of.
    pub fn in_campaign(campaign: &Campaign) -> impl Iterator<Item = Class> {
        let has = |class: &Class| {
            let mut servers = campaign.servers.iter();
            servers.any(|server| Class::of_lane(server.lane) == *class)
        };
        Class::ALL.into_iter().filter(has)
    }

    /// The trials of this class that count at a rung, by server and profile in the plan's order.
    pub fn subjects<'a>(
        self,
        campaign: &'a Campaign,
        workload: &str,
        rung: Rung,
    ) -> Vec<Vec<&'a Trial>> {
        let mut subjects = verdicts::subjects(campaign, workload, rung);
        subjects.retain(|trials| Class::of(&campaign.servers, &trials[0].server) == self);
        subjects
    }

    pub fn in_words(self) -> &'static str {
        match self {
            Class::OneAtATime => "one statement in flight on each connection",
            Class::Pipelined => "several statements in flight on each connection",
        }
    }

    /// What goes below the heading of its tables.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Class::OneAtATime => None,
            Class::Pipelined => Some(
                "pipelined: several statements are in flight on each connection; a class of its own, compared with no other",
            ),
        }
    }
}
