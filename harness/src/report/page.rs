//! The report of a campaign as a page, from the answer down to how to measure it again.

use anyhow::Result;
use askama::Template;

use crate::blocks::counting;
use crate::campaign::{Campaign, State};
use crate::checks::Verdict;
use crate::figures::median_of;
use crate::interference;
use crate::metric::Metric;
use crate::report::figure::{DataTable, Figure};
use crate::report::scene::{Scene, Step};
use crate::report::tables::{self, Table, Trials};
use crate::report::{ECHARTS, PLOTS, costs, embedded, facts, latency, throughput, timeline};
use crate::rows::cell;
use crate::rung::Rung;
use crate::sentences;
use crate::table;

/// More rows than these are data, not a table to read.
const MOST_ROWS: usize = 400;

#[derive(Debug, Template)]
#[template(path = "report.html")]
pub(crate) struct Page {
    title: String,
    question: String,
    /// What became of the campaign, where it did not simply end.
    state: Option<&'static str>,
    /// What to do about trials that say nothing.
    advice: Option<String>,
    /// Trials by verdict.
    verdicts: String,
    answers: Vec<Answer>,
    obstacles: Vec<String>,
    sections: Vec<Section>,
    tables: Vec<Table>,
    beside: Vec<String>,
    notes: Vec<String>,
    trials: Vec<Trials>,
    absent: Vec<String>,
    environment: Vec<(&'static str, Vec<facts::Fact>)>,
    commands: String,
    plots: String,
    echarts: &'static str,
    script: &'static str,
}

/// What may be said of a workload, a sentence for each rung.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) heading: String,
    pub(crate) sentences: Vec<String>,
}

#[derive(Debug)]
struct Section {
    id: &'static str,
    title: &'static str,
    /// How its figures are to be read, where they do not say so themselves.
    about: &'static str,
    figures: Vec<Shown>,
    /// Said where there is no figure.
    instead: &'static str,
}

/// A figure with its table.
#[derive(Debug)]
struct Shown {
    figure: Figure,
    table: Option<DataTable>,
}

impl Page {
    /// # Errors
    /// The figures cannot be written as JSON.
    pub(crate) fn of(campaign: &Campaign) -> Result<Page> {
        let scenes = Scene::all(campaign);
        let sections = sections(&scenes);
        let figures: Vec<&Figure> = sections
            .iter()
            .flat_map(|section| &section.figures)
            .map(|shown| &shown.figure)
            .collect();
        let plots = embedded(&figures)?;
        let ladders = &campaign.plan.ladders;
        let workloads: Vec<&str> = ladders.iter().map(|of| of.workload.as_str()).collect();
        Ok(Page {
            title: format!("{}: lanebench", workloads.join(", ")),
            question: question(campaign, &workloads),
            state: state(campaign.state),
            advice: table::advice(campaign),
            verdicts: verdicts(campaign),
            answers: scenes.iter().flat_map(answers).collect(),
            obstacles: campaign.unpublishable.clone(),
            tables: scenes.iter().flat_map(tables::rows).collect(),
            beside: scenes.iter().flat_map(beside).collect(),
            notes: notes(campaign),
            trials: scenes.iter().flat_map(tables::trials).collect(),
            absent: facts::absent(campaign, &scenes),
            environment: facts::environment(campaign),
            commands: facts::reproduce(campaign),
            sections,
            plots,
            echarts: ECHARTS,
            script: PLOTS,
        })
    }
}

pub(crate) fn question(campaign: &Campaign, workloads: &[&str]) -> String {
    let plan = &campaign.plan;
    let servers: Vec<String> = campaign
        .servers
        .iter()
        .map(|server| format!("{} ({})", server.name, server.lane.name()))
        .collect();
    format!(
        "{} with a pool of {} connections: which lane answers {} better on this machine, and at what cost?",
        servers.join(", "),
        plan.pool,
        workloads.join(", ")
    )
}

pub(crate) fn state(state: State) -> Option<&'static str> {
    match state {
        State::Complete => None,
        State::Running => {
            Some("This campaign is still running, or was broken off: what stands here is not all.")
        }
        State::Interrupted => {
            Some("This campaign was interrupted: what stands here is not all that was planned.")
        }
    }
}

pub(crate) fn verdicts(campaign: &Campaign) -> String {
    let of = |verdict: Verdict| {
        let trials = counting(&campaign.trials).filter(|trial| trial.verdict == verdict);
        (trials.count(), verdict.name())
    };
    let all = [
        Verdict::Valid,
        Verdict::Failed,
        Verdict::Misconfigured,
        Verdict::Invalid,
    ];
    let parts = all.map(of).into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    format!("Trials: {}.", parts.join(", "))
}

pub(crate) fn answers(scene: &Scene<'_>) -> Vec<Answer> {
    let kinds = [("closed loop", &scene.closed), ("open loop", &scene.open)];
    let of_kind = |(kind, steps): (&str, &Vec<Step<'_>>)| {
        let rungs: Vec<Rung> = steps.iter().map(|step| step.rung).collect();
        let mut said = sentences::of_table(scene.campaign, scene.workload(), &rungs, scene.class);
        if said.is_empty() {
            said = steps.iter().flat_map(|step| alone(scene, step)).collect();
        }
        (!said.is_empty()).then(|| Answer {
            heading: format!("{}, {kind}", scene.name()),
            sentences: said,
        })
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// Of a server with nothing beside it.
fn alone(scene: &Scene<'_>, step: &Step<'_>) -> Vec<String> {
    let of = |(label, _): &(String, usize)| {
        let trials = step.of(label)?;
        let [rate, p99] = [Metric::Throughput, Metric::P99].map(|metric| median_of(trials, metric));
        Some(format!(
            "At {} {label} gives {} right answers per second, with a p99 of {} ms.",
            step.rung,
            cell(rate, 0),
            cell(p99, 3)
        ))
    };
    scene.servers.iter().filter_map(of).collect()
}

fn notes(campaign: &Campaign) -> Vec<String> {
    let ladders = campaign.plan.ladders.iter();
    let tripped = ladders.flat_map(|ladder| table::tripped(campaign, &ladder.workload));
    tripped.chain(facts::notes(campaign)).collect()
}

fn beside(scene: &Scene<'_>) -> Vec<String> {
    interference::lines(scene.campaign, scene.ladder, scene.class)
}

fn sections(scenes: &[Scene<'_>]) -> Vec<Section> {
    let all = |of: &dyn Fn(&Scene<'_>) -> Vec<Figure>| {
        let figures = scenes.iter().flat_map(of);
        figures.map(Shown::of).collect::<Vec<_>>()
    };
    let one = |of: fn(&Scene<'_>) -> Option<Figure>| all(&|scene| of(scene).into_iter().collect());
    vec![
        Section {
            id: "throughput",
            title: "Throughput over concurrency",
            about: "",
            figures: one(throughput::by_concurrency),
            instead: "No closed loop was run: --closed 1,8,32 measures one.",
        },
        Section {
            id: "percentiles",
            title: "Latency by percentile",
            about: "Medians over the blocks, at each share that all of them have. Whole lines: response time, from when a request was due; dashed: service time, from when it was sent. In a closed loop they are the same but for the generator's own lateness.",
            figures: all(&latency::percentiles),
            instead: "The record has no percentiles.",
        },
        Section {
            id: "rate",
            title: "Latency over the offered rate",
            about: "",
            figures: one(latency::by_rate),
            instead: "No open loop was run: --rates 50%,80%,95% measures one.",
        },
        Section {
            id: "ceiling",
            title: "Share of the ceiling",
            about: "",
            figures: one(throughput::share_of_ceiling),
            instead: "Nothing says what the database alone allows: the workload waits for no known time, and there is no \
                row of pgbench.",
        },
        Section {
            id: "stages",
            title: "Where the time goes",
            about: "",
            figures: one(costs::stages),
            instead: "The servers give no account of it.",
        },
        Section {
            id: "costs",
            title: "What a request costs",
            about: "Medians over the blocks.",
            figures: all(&costs::bars),
            instead: "No window has figures.",
        },
        Section {
            id: "timeline",
            title: "Second by second",
            about: "",
            figures: one(timeline::seconds),
            instead: "The record has no seconds.",
        },
    ]
}

impl Shown {
    fn of(figure: Figure) -> Shown {
        let table = figure.table();
        let readable = !table.rows.is_empty() && table.rows.len() <= MOST_ROWS;
        Shown {
            figure,
            table: readable.then_some(table),
        }
    }
}
