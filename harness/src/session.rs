//! A campaign under way: begun or resumed, measured block by block, saved after each trial, closed with its tables.

mod names;
mod records;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use workloads::{Catalog, Workload};

use crate::attach;
use crate::blocks::{Block, Course};
use crate::campaign::{Campaign, Plan, Reference, SCHEMA, State};
use crate::checks::Verdict;
use crate::digest::Digest;
use crate::expected::Answers;
use crate::folders::Folders;
use crate::inspection;
use crate::notice;
use crate::pgbench::{self, Pgbench};
use crate::progress::{Progress, Work};
use crate::provision::{DatabaseArgs, NO_SHOP};
use crate::publication::Publication;
use crate::publishable;
use crate::report;
use crate::results::ResultsFolder;
use crate::rig::Rig;
use crate::run::{AGAIN, chosen_servers};
use crate::rung::Rung;
use crate::selection::by_name;
use crate::server::Server;
use crate::stdout::{self, OutputArgs};
use crate::subject::Subject;
use crate::table;
use crate::trial::{Place, Witness};

use names::{describe, log_name, step, under_way};
use records::refuse_changes;
pub(crate) use records::server_records;

/// What a new campaign starts from.
#[derive(Debug)]
pub struct Begin {
    pub plan: Plan,
    pub workloads: Vec<Workload>,
    pub servers: Vec<Server>,
    /// All servers that are attached to, be they measured or not.
    pub attached: Vec<Server>,
    pub results: ResultsFolder,
}

/// A campaign with everything that is open for it.
#[derive(Debug)]
pub struct Session {
    campaign: Campaign,
    results: ResultsFolder,
    workloads: Vec<Workload>,
    rig: Rig,
    publication: Publication,
}

impl Session {
    /// Builds the servers, measures the generator, and opens the database.
    ///
    /// # Errors
    /// A build fails, there is no database, or an interruption.
    pub fn begin(
        begin: Begin,
        folders: Folders,
        database: &DatabaseArgs,
        stop: &AtomicBool,
    ) -> Result<Session> {
        let Begin {
            plan,
            workloads,
            servers,
            attached,
            results,
        } = begin;
        let sessions = attach::session_names(&attached)?;
        let started_at = jiff::Timestamp::now().to_string();
        let mut publication = Publication::begin(results.path(), &plan, started_at)?;
        let says = &mut |words: &str| publication.state(words);
        let rungs = plan.ladders.iter().flat_map(|ladder| &ladder.rungs);
        let busiest = rungs.map(|rung| rung.connections()).max().unwrap_or(1);
        let mut rig = Rig::open(&plan, servers, folders, database, says, stop)?;
        rig.provisioned.monitor.allow_idle(sessions);
        publication.state("measuring what the load generator can do");
        let generator = rig.generator(&plan, busiest)?;
        let environment = rig.environment();
        let database = rig.provisioned.record();
        let mut unpublishable = publishable::obstacles(&plan, &environment, &database);
        if !attached.is_empty() {
            unpublishable.push(attach::NOT_FRESH.to_owned());
        }
        let campaign = Campaign {
            schema: SCHEMA,
            lanebench: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            state: State::Running,
            commands: vec![std::env::args().collect()],
            unpublishable,
            environment,
            generator,
            database,
            servers: server_records(&rig.servers, &workloads),
            inspections: Vec::new(),
            references: Vec::new(),
            trials: Vec::new(),
            pgbench: Vec::new(),
            plan,
        };
        Ok(Session {
            campaign,
            results,
            workloads,
            rig,
            publication,
        })
    }

    /// Opens the campaign in `folder` to go on with it.
    ///
    /// # Errors
    /// There is none or it is complete; a program, the CPUs or the database's content are not those it began with.
    pub fn resume(
        folder: &Path,
        catalog: &Catalog,
        folders: Folders,
        database: &DatabaseArgs,
        stop: &AtomicBool,
    ) -> Result<Session> {
        let (results, mut campaign) = ResultsFolder::of_record(folder.to_owned())?;
        let what = format!("--resume {}", folder.display());
        if campaign.state == State::Complete {
            bail!("{what}: this campaign is complete");
        }
        if campaign
            .servers
            .iter()
            .any(|server| server.attached.is_some())
        {
            bail!(
                "{what}: it attached to servers, which need not be those that run now; run a new one"
            );
        }
        let workloads = campaign.plan.ladders.iter().map(|ladder| {
            let name = &ladder.workload;
            by_name("workload", name, &catalog.workloads, |workload| {
                &workload.name
            })
        });
        let workloads = workloads
            .map(|workload| workload.cloned())
            .collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = campaign
            .plan
            .servers
            .iter()
            .map(|name| name.replace(AGAIN, ""))
            .collect();
        let servers = chosen_servers(&names, &folders)?;
        let mut database = database.clone();
        database.scale = campaign.database.scale.parse()?;
        database.no_shop = campaign.database.content == NO_SHOP;
        let started_at = campaign.started_at.clone();
        let mut publication = Publication::begin(results.path(), &campaign.plan, started_at)?;
        publication.recall(&campaign.trials);
        let says = &mut |words: &str| publication.state(words);
        let rig = Rig::open(&campaign.plan, servers, folders, &database, says, stop)?;
        refuse_changes(&campaign, &workloads, &rig)
            .with_context(|| format!("{what}: cannot go on with it; run a new one"))?;
        campaign.commands.push(std::env::args().collect());
        campaign.state = State::Running;
        Ok(Session {
            campaign,
            results,
            workloads,
            rig,
            publication,
        })
    }

    /// Measures all that is left.
    ///
    /// # Errors
    /// An interruption, or a failure of the harness, the database, or a server before its first trial.
    pub fn measure(&mut self, ready_limit: Duration, stop: &AtomicBool) -> Result<()> {
        self.publication.state("starting each server once");
        let subjects = self.subjects(ready_limit, stop)?;
        self.publication.state("deriving the expected answers");
        let url = &self.rig.provisioned.database.url;
        let answers = self
            .workloads
            .iter()
            .map(|workload| Answers::derive(workload, url, self.campaign.plan.seed))
            .collect::<Result<Vec<_>>>()?;
        self.inspect(&subjects, &answers, stop)?;
        self.resolve_shares(&subjects, &answers, stop)?;
        let served: Vec<Vec<&Subject>> = self
            .workloads
            .iter()
            .map(|workload| serving(&subjects, workload))
            .collect();
        self.blocks(&served, &answers, stop)
    }

    fn subjects(&mut self, ready_limit: Duration, stop: &AtomicBool) -> Result<Vec<Subject>> {
        let subjects = self.rig.subjects(&self.campaign.plan, ready_limit, stop)?;
        for record in &mut self.campaign.servers {
            let own = subjects
                .iter()
                .filter(|subject| subject.server.name == record.name);
            record.says = own
                .map(|subject| (subject.settings.profile, subject.says.clone()))
                .collect();
        }
        Ok(subjects)
    }

    fn inspect(
        &mut self,
        subjects: &[Subject],
        answers: &[Answers],
        stop: &AtomicBool,
    ) -> Result<()> {
        if !self.campaign.inspections.is_empty() {
            return Ok(());
        }
        self.publication
            .state("counting what each server sends to the database");
        let written = self.workloads.iter().any(Workload::writes);
        for (workload, answers) in self.workloads.iter().zip(answers) {
            for subject in serving(subjects, workload) {
                if written {
                    self.rig.provisioned.settle(stop)?;
                }
                let inspected = inspection::inspect(
                    &subject.server,
                    &subject.settings,
                    (workload, answers),
                    subject.startup,
                    &mut self.rig.provisioned,
                    stop,
                );
                let inspection =
                    inspected.with_context(|| format!("server `{}`", subject.server.name))?;
                self.campaign.inspections.push(inspection);
            }
        }
        Ok(())
    }

    /// Measures the capacity that rates are shares of, and adds their rungs to the ladders.
    fn resolve_shares(
        &mut self,
        subjects: &[Subject],
        answers: &[Answers],
        stop: &AtomicBool,
    ) -> Result<()> {
        let done = self.campaign.references.len();
        if self.campaign.plan.shares.is_empty() {
            return Ok(());
        }
        for (index, answers) in answers.iter().enumerate().skip(done) {
            let workload = self.workloads[index].clone();
            let reference =
                self.reference(&serving(subjects, &workload), &workload, answers, stop)?;
            let plan = &mut self.campaign.plan;
            for share in &plan.shares {
                let rate = (share * reference.requests_per_second).round().max(1.0);
                let connections = plan.open_connections;
                let rung = Rung::Open { rate, connections };
                let rungs = &mut plan.ladders[index].rungs;
                if !rungs.contains(&rung) {
                    rungs.push(rung);
                }
            }
            self.campaign.references.push(reference);
        }
        Ok(())
    }

    fn reference(
        &mut self,
        subjects: &[&Subject],
        workload: &Workload,
        answers: &Answers,
        stop: &AtomicBool,
    ) -> Result<Reference> {
        self.publication
            .state("measuring the capacity that rates are shares of");
        let connections = 2 * self.campaign.plan.pool;
        let mut of_each = Vec::new();
        for subject in subjects {
            let place = Place {
                rung: Rung::Closed { connections },
                block: 0,
                attempt: 0,
                position: of_each.len(),
            };
            let plan = &self.campaign.plan;
            let of = (workload, answers);
            let trial = self
                .rig
                .trial(plan, subject, of, place, Witness::default(), stop)?;
            let Some(window) = trial.window else {
                bail!(
                    "{}: {} cannot be measured, so there is no capacity to take shares of",
                    workload.name,
                    subject.label()
                )
            };
            of_each.push((subject.label(), window.requests_per_second));
        }
        let lowest = of_each.iter().map(|(_, rate)| *rate).reduce(f64::min);
        let requests_per_second = lowest.unwrap_or_default();
        notice::say(&format!(
            "{}: rates are shares of {requests_per_second:.0}/s, the slowest server's at {connections} connections",
            workload.name
        ));
        Ok(Reference {
            workload: workload.name.clone(),
            connections,
            requests_per_second,
            of_each,
        })
    }

    fn blocks(
        &mut self,
        served: &[Vec<&Subject>],
        answers: &[Answers],
        stop: &AtomicBool,
    ) -> Result<()> {
        let counts: Vec<usize> = served.iter().map(Vec::len).collect();
        let pgbench = Pgbench::find();
        if pgbench.is_none() {
            notice::say(
                "no pgbench on this machine: no row for what PostgreSQL gives without a server",
            );
        }
        self.publication.state("measuring");
        let mut progress = Progress::start();
        loop {
            let course = Course {
                plan: &self.campaign.plan,
                servers: &self.campaign.servers,
                served: &counts,
                trials: &self.campaign.trials,
            };
            progress.reckon(course.ahead(|ladder, rung| {
                let (plan, workload) = (&self.campaign.plan, &self.workloads[ladder]);
                let _ = pgbench.as_ref()?;
                pgbench::load_of(workload, plan.ladders[ladder].rungs[rung], plan)
            }));
            self.publication
                .reckon(progress.trials_left(), progress.left());
            let Some(block) = course.next() else { break };
            for (position, &index) in block.order.iter().enumerate() {
                let subject = served[block.ladder][index];
                self.trial(&block, position, subject, answers, &mut progress, stop)?;
            }
            if let Some(pgbench) = &pgbench {
                self.ceiling(pgbench, &block, &mut progress, stop)?;
            }
        }
        progress.finish();
        Ok(())
    }

    fn trial(
        &mut self,
        block: &Block,
        position: usize,
        subject: &Subject,
        answers: &[Answers],
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> Result<()> {
        let plan = &self.campaign.plan;
        let (workload, answers) = (&self.workloads[block.ladder], &answers[block.ladder]);
        let place = Place {
            rung: plan.ladders[block.ladder].rungs[block.rung],
            block: block.block,
            attempt: block.attempt,
            position,
        };
        let what = describe(workload, subject, place);
        progress.step_starts(step(Work::Trial, block), &what);
        self.publication
            .trial_starts(under_way(workload, subject, place));
        let log = self
            .results
            .interval_log(&log_name(workload, subject, place))?;
        let of = (workload, answers);
        let publication = &mut self.publication;
        let witness = Witness {
            interval_log: Some(&log),
            observer: Some(&mut |event| publication.load_event(event, Some(progress.left()))),
        };
        let trial = self.rig.trial(plan, subject, of, place, witness, stop)?;
        let rate = trial
            .window
            .as_ref()
            .map_or(0.0, |window| window.requests_per_second);
        let summary = format!("{what}: {rate:.0} req/s, {}", trial.verdict.name());
        self.campaign.trials.push(trial);
        self.results.save(&self.campaign)?;
        progress.trial_ended(&summary);
        self.publication
            .trial_ended(&self.campaign.trials, progress.left());
        Ok(())
    }

    /// Once a block: a block that is run again is measured beside the ceiling it had.
    fn ceiling(
        &mut self,
        pgbench: &Pgbench,
        block: &Block,
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> Result<()> {
        let plan = &self.campaign.plan;
        let place = (plan.ladders[block.ladder].rungs[block.rung], block.block);
        let workload = &self.workloads[block.ladder];
        if block.attempt > 0 || pgbench::load_of(workload, place.0, plan).is_none() {
            return Ok(());
        }
        let what = format!("{} pgbench, {}", workload.name, place.0);
        progress.step_starts(step(Work::Ceiling, block), &what);
        self.rig.provisioned.settle(stop)?;
        let run = pgbench.run(workload, place, plan, &self.rig.provisioned, stop)?;
        self.campaign.pgbench.extend(run);
        self.results.save(&self.campaign)?;
        progress.step_ended();
        Ok(())
    }

    /// Saves the end, writes the reports, and prints the tables, or the digest. Gives the gravest verdict of the rows.
    ///
    /// # Errors
    /// What ended the measuring, or the record or a report cannot be written.
    pub fn close(mut self, ended: Result<()>, output: OutputArgs) -> Result<Verdict> {
        if self.campaign.trials.is_empty() {
            return ended.map(|()| Verdict::Valid);
        }
        self.campaign.state = if ended.is_ok() {
            State::Complete
        } else {
            State::Interrupted
        };
        self.results.save(&self.campaign)?;
        if output.json {
            stdout::say_json(&Digest::of(&self.campaign, self.results.path()))?;
        } else {
            table::print(&self.campaign);
        }
        self.publication.state("writing the report");
        let reported = report::write(self.results.path(), &self.campaign);
        notice::say(&format!(
            "results: {}",
            self.results.campaign_file().display()
        ));
        if reported.is_ok() {
            let page = self.results.path().join("report.html");
            notice::say(&format!("to look at: {}", page.display()));
        }
        if ended.is_err() {
            notice::say(&format!(
                "go on with it: lanebench run --resume {}",
                self.results.path().display()
            ));
        }
        ended?;
        reported?;
        Ok(table::gravest(&self.campaign))
    }
}

pub(crate) fn serving<'s>(subjects: &'s [Subject], workload: &Workload) -> Vec<&'s Subject> {
    subjects
        .iter()
        .filter(|subject| subject.server.skips(workload).is_none())
        .collect()
}
