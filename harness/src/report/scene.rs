//! What a workload's figures are drawn of: the servers of one class, the rungs, and the trials that count.

use crate::campaign::{Campaign, Ladder, Trial};
use crate::class::Class;
use crate::report::figure::Scale;
use crate::rung::Rung;
use crate::table::labels;

/// The share of the room between two steps that the servers stand in.
const SPREAD: f64 = 0.2;

#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) ladder: &'a Ladder,
    pub(crate) class: Class,
    pub(crate) closed: Vec<Step<'a>>,
    pub(crate) open: Vec<Step<'a>>,
    /// By label, those that have trials; each with its colour, the same in all figures of a page.
    pub(crate) servers: Vec<(String, usize)>,
}

/// One rung.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) rung: Rung,
    subjects: Vec<Vec<&'a Trial>>,
}

impl<'a> Scene<'a> {
    /// One for each workload and class that has trials.
    pub(crate) fn all(campaign: &'a Campaign) -> Vec<Scene<'a>> {
        let ladders = campaign.plan.ladders.iter();
        let scenes = ladders.flat_map(|ladder| {
            Class::in_campaign(campaign).filter_map(|class| Scene::of(campaign, ladder, class))
        });
        scenes.collect()
    }

    fn of(campaign: &'a Campaign, ladder: &'a Ladder, class: Class) -> Option<Scene<'a>> {
        let step = |&rung: &Rung| Step {
            rung,
            subjects: class.subjects(campaign, &ladder.workload, rung),
        };
        let (open, closed): (Vec<Step<'_>>, Vec<Step<'_>>) = ladder
            .rungs
            .iter()
            .map(step)
            .partition(|step| step.rung.is_open());
        let has = |label: &String| {
            let mut steps = open.iter().chain(&closed);
            steps.any(|step| step.of(label).is_some())
        };
        let servers: Vec<(String, usize)> = labels(campaign)
            .into_iter()
            .enumerate()
            .map(|(color, label)| (label, color))
            .filter(|(label, _)| has(label))
            .collect();
        (!servers.is_empty()).then_some(Scene {
            campaign,
            ladder,
            class,
            closed,
            open,
            servers,
        })
    }

    pub(crate) fn workload(&self) -> &'a str {
        &self.ladder.workload
    }

    /// For titles: the workload, and the class where it is not the usual one.
    pub(crate) fn name(&self) -> String {
        match self.class {
            Class::OneAtATime => self.workload().to_owned(),
            Class::Pipelined => format!("{}, pipelined", self.workload()),
        }
    }

    /// For the ids of elements.
    pub(crate) fn slug(&self) -> String {
        let ladders = self.campaign.plan.ladders.iter();
        let place = ladders.take_while(|ladder| !std::ptr::eq(*ladder, self.ladder));
        let class = match self.class {
            Class::OneAtATime => "",
            Class::Pipelined => "-pipelined",
        };
        format!("{}{class}", place.count() + 1)
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step<'a>> {
        self.closed.iter().chain(&self.open)
    }

    /// Where a server's points stand beside a step.
    pub(crate) fn beside(&self, server: usize) -> f64 {
        let servers = self.servers.len() as f64;
        (server as f64 - (servers - 1.0) / 2.0) * SPREAD / servers
    }
}

impl<'a> Step<'a> {
    /// The trials of a server by its label. Never none.
    pub(crate) fn of(&self, label: &str) -> Option<&[&'a Trial]> {
        let mut subjects = self.subjects.iter();
        let found = subjects.find(|trials| trials[0].label() == label);
        found.map(Vec::as_slice)
    }
}

/// The scale of an axis of rungs.
pub(crate) fn rungs(steps: &[Step<'_>]) -> Scale {
    Scale::Steps(steps.iter().map(|step| step.rung.figure()).collect())
}
