//! What a trial is called: on the way, in what a running campaign shows, and in its files.

use std::collections::VecDeque;

use workloads::Workload;

use crate::blocks::Block;
use crate::process::Profile;
use crate::progress::{Step, Work};
use crate::publication::UnderWay;
use crate::run::AGAIN;
use crate::subject::Subject;
use crate::trial::Place;

pub(super) fn step(work: Work, block: &Block) -> Step {
    Step {
        work,
        ladder: block.ladder,
        rung: block.rung,
    }
}

pub(super) fn under_way(workload: &Workload, subject: &Subject, place: Place) -> UnderWay {
    UnderWay {
        workload: workload.name.clone(),
        server: subject.label(),
        rung: place.rung.to_string(),
        block: place.block + 1,
        phase: "starting the server and checking its answers".to_owned(),
        seconds: VecDeque::new(),
    }
}

pub(super) fn describe(workload: &Workload, subject: &Subject, place: Place) -> String {
    let again = match place.attempt {
        0 => String::new(),
        attempt => format!(", attempt {}", attempt + 1),
    };
    format!(
        "{} {}, {}, block {}{again}",
        workload.name,
        subject.label(),
        place.rung,
        place.block + 1
    )
}

/// Says which trial an interval log is of.
pub(super) fn log_name(workload: &Workload, subject: &Subject, place: Place) -> String {
    let profile = match subject.settings.profile {
        Profile::Parity => "",
        Profile::Defaults => "-defaults",
    };
    let server = subject.server.name.replace(AGAIN, "-again");
    format!(
        "{}-{server}{profile}-{}-{}-{}",
        workload.name,
        place.rung.slug(),
        place.block + 1,
        place.attempt + 1
    )
}
