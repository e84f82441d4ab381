//! `lanebench compare`: two campaigns, or two servers of one, metric by metric and rung by rung.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use stats::{Interval, median};

use crate::blocks::figures;
use crate::campaign::{self, Campaign, State, Trial};
use crate::checks::Verdict;
use crate::class::Class;
use crate::comparable::{refusals, remarks};
use crate::metric::Metric;
use crate::rung::Rung;
use crate::selection::nearest;
use crate::sentences::left_out;
use crate::stdout;
use crate::table::label;
use crate::verdicts::{self, Answer, Design, Judged, NoiseFloors, Pair, Rules, in_words, judge};

/// Flags of `lanebench compare`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Results folders, or the campaign.json in one: two, or one with --servers
    #[arg(required = true, num_args = 1..=2, value_name = "RESULTS")]
    pub results: Vec<PathBuf>,

    /// Two servers of one campaign, by the names in its table
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub servers: Vec<String>,
}

const EXAMPLES: &str = "\
Ratios are A / B, and the verdict is A's: faster when the whole 95 % interval lies beyond the noise floor and the \
difference survives Holm's adjustment, equivalent when it lies within 3 %, else inconclusive, which does not mean equal.

Servers of one campaign ran next to each other, so their blocks are compared one by one (Student's t). Two campaigns \
did not: their blocks are two samples (Welch's t), and what changed on the machine in between is part of the difference. \
Campaigns that differ in more than their servers are refused.

Examples:
  lanebench compare results/before results/after
  lanebench compare results/today --servers deadpool,sqlx";

/// Prints the comparison on stdout. Gives the gravest verdict of the rows compared.
///
/// # Errors
/// A record that cannot be read, an unknown server, or campaigns that are not comparable.
pub fn run(args: &CompareArgs) -> Result<Verdict> {
    match (args.results.as_slice(), args.servers.as_slice()) {
        ([one], [a, b]) => servers(&read(one)?, a, b),
        ([a, b], []) => campaigns((a, &read(a)?), (b, &read(b)?)),
        ([_], []) => bail!(
            "one campaign is compared with another, or within itself: give a second, or --servers A,B"
        ),
        ([_], names) => bail!("--servers {}: give two names", names.join(",")),
        _ => bail!("--servers compares two servers of one campaign: give one results folder"),
    }
}

fn read(path: &Path) -> Result<Campaign> {
    if !path.exists() {
        bail!(
            "{}: there is no such results folder or campaign.json",
            path.display()
        );
    }
    if path.is_dir() {
        campaign::read(&path.join("campaign.json"))
    } else {
        campaign::read(path)
    }
}

fn servers(campaign: &Campaign, a: &str, b: &str) -> Result<Verdict> {
    let labels = labels(campaign);
    for name in [a, b] {
        if !labels.iter().any(|label| label == name) {
            let all = labels.join(", ");
            match nearest(name, labels.iter().map(String::as_str)) {
                Some(near) => bail!(
                    "unknown server `{name}`; did you mean `{near}`? (the campaign has {all})"
                ),
                None => bail!("unknown server `{name}`; the campaign has {all}"),
            }
        }
    }
    if a == b {
        bail!("--servers {a},{b}: give two different names");
    }
    let class = common_class(campaign, a, b)?;
    let mut report = Report::default();
    report.line(format!(
        "A: {a}\nB: {b}, in the same blocks: the ratios of the blocks, Student's t"
    ));
    for ladder in &campaign.plan.ladders {
        let noise_floors = NoiseFloors::of(&[campaign], &ladder.workload, class);
        let rules = Rules {
            design: Design::Paired,
            noise_floors: &noise_floors,
            seed: campaign.plan.seed,
        };
        let pairs = verdicts::pairs(campaign, &ladder.workload, &ladder.rungs, class);
        let pairs = pairs
            .into_iter()
            .filter_map(|pair| facing(pair, a, b))
            .collect();
        report.tables(&ladder.workload, class, pairs, rules);
    }
    Ok(report.say())
}

/// The class of two servers by their labels.
///
/// # Errors
/// They are of two.
fn common_class(campaign: &Campaign, a: &str, b: &str) -> Result<Class> {
    let plan = &campaign.plan;
    let of = |wanted: &str| {
        let has_label = |name: &&String| {
            let mut profiles = plan.profiles.iter();
            profiles.any(|profile| label(name, *profile) == wanted)
        };
        let name = plan.servers.iter().find(has_label);
        name.map_or(Class::OneAtATime, |name| Class::of(&campaign.servers, name))
    };
    let (of_a, of_b) = (of(a), of(b));
    if of_a != of_b {
        bail!(
            "--servers {a},{b}: they are not compared: {a} has {}, {b} {}; name two of one class",
            of_a.in_words(),
            of_b.in_words()
        );
    }
    Ok(of_a)
}

/// The labels of a campaign's servers, in the order of its tables.
fn labels(campaign: &Campaign) -> Vec<String> {
    let plan = &campaign.plan;
    let of_server = |server: &String| {
        let labels = plan.profiles.iter().map(|profile| label(server, *profile));
        labels.collect::<Vec<_>>()
    };
    plan.servers.iter().flat_map(of_server).collect()
}

/// The pair as the user named it: `a` first. `None` if it is another.
fn facing<'a>(pair: Pair<'a>, a: &str, b: &str) -> Option<Pair<'a>> {
    let names = (pair.a[0].label(), pair.b[0].label());
    if (names.0.as_str(), names.1.as_str()) == (a, b) {
        Some(pair)
    } else if (names.0.as_str(), names.1.as_str()) == (b, a) {
        Some(Pair {
            a: pair.b,
            b: pair.a,
            ..pair
        })
    } else {
        None
    }
}

fn campaigns((path_a, a): (&Path, &Campaign), (path_b, b): (&Path, &Campaign)) -> Result<Verdict> {
    let reasons = refusals(a, b);
    if !reasons.is_empty() {
        bail!(
            "{} (A) and {} (B) are not comparable:\n  {}",
            path_a.display(),
            path_b.display(),
            reasons.join("\n  ")
        );
    }
    let common = in_common(a, b);
    if common.is_empty() {
        bail!(
            "{} and {} have no workload, rung and server in common: A has {}; B has {}",
            path_a.display(),
            path_b.display(),
            contents(a),
            contents(b)
        );
    }
    let mut report = Report::default();
    for (name, path, campaign) in [("A", path_a, a), ("B", path_b, b)] {
        let state = match campaign.state {
            State::Complete => "",
            State::Running => ", still running or broken off",
            State::Interrupted => ", interrupted",
        };
        report.line(format!(
            "{name}: {}, begun at {}{state}",
            path.display(),
            campaign.started_at
        ));
    }
    report.line(
        "Not side by side: Welch's t of two samples; what changed on the machine in between is part of the difference"
            .to_owned(),
    );
    for remark in remarks(a, b) {
        report.line(remark);
    }
    for (workload, class, pairs) in common {
        let noise_floors = NoiseFloors::of(&[a, b], &workload, class);
        let rules = Rules {
            design: Design::Unpaired,
            noise_floors: &noise_floors,
            seed: a.plan.seed,
        };
        report.tables(&workload, class, pairs, rules);
    }
    Ok(report.say())
}

/// Each server beside itself, by workload and class, where both campaigns have it at the same rung.
fn in_common<'a>(a: &'a Campaign, b: &'a Campaign) -> Vec<(String, Class, Vec<Pair<'a>>)> {
    let of_ladder = |(ladder, class): (&campaign::Ladder, Class)| {
        let workload = &ladder.workload;
        let mut pairs = Vec::new();
        for &rung in &ladder.rungs {
            let of_b = class.subjects(b, workload, rung);
            for of_a in class.subjects(a, workload, rung) {
                if let Some(of_b) = of_b.iter().find(|of_b| of_b[0].same_subject(of_a[0])) {
                    pairs.push(Pair {
                        rung,
                        a: of_a,
                        b: of_b.clone(),
                        identical: false,
                    });
                }
            }
        }
        (workload.clone(), class, pairs)
    };
    let ladders = a.plan.ladders.iter();
    let tables = ladders.flat_map(|ladder| Class::in_campaign(a).map(move |class| (ladder, class)));
    let tables = tables.map(of_ladder);
    tables.filter(|(.., pairs)| !pairs.is_empty()).collect()
}

fn contents(campaign: &Campaign) -> String {
    let ladder = |ladder: &campaign::Ladder| {
        let rungs: Vec<String> = ladder.rungs.iter().map(Rung::to_string).collect();
        format!("{} at {}", ladder.workload, rungs.join(", "))
    };
    let ladders: Vec<String> = campaign.plan.ladders.iter().map(ladder).collect();
    format!(
        "{} with {}",
        ladders.join("; "),
        labels(campaign).join(", ")
    )
}

/// What is printed, and what the exit status is to say.
#[derive(Debug, Default)]
struct Report {
    text: String,
    /// Verdicts of the rows compared.
    rows: Vec<Verdict>,
}

impl Report {
    fn line(&mut self, line: String) {
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A table for each kind of loop.
    fn tables(&mut self, workload: &str, class: Class, pairs: Vec<Pair<'_>>, rules: Rules<'_>) {
        let rows = pairs.iter().flat_map(|pair| pair.a.iter().chain(&pair.b));
        self.rows.extend(rows.map(|trial| trial.verdict));
        let (open, closed): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|pair| pair.rung.is_open());
        for (kind, pairs) in [("closed", closed), ("open", open)] {
            if pairs.is_empty() {
                continue;
            }
            self.line(format!(
                "\n{workload}: {kind} loop; medians over the blocks, then the ratio A / B with its 95 % interval"
            ));
            if let Some(remark) = class.remark() {
                self.line(remark.to_owned());
            }
            let judged = judge(pairs, rules);
            self.line(table(&judged, rules.design));
            for Judged { pair, .. } in &judged {
                for (side, trials) in [("A", &pair.a), ("B", &pair.b)] {
                    if let Some(left_out) = left_out(std::slice::from_ref(trials)) {
                        self.line(format!("left out at {} of {side}: {left_out}", pair.rung));
                    }
                }
            }
        }
    }

    /// Prints it. Gives the gravest verdict of its rows.
    fn say(self) -> Verdict {
        stdout::say(&self.text);
        self.rows.into_iter().max().unwrap_or(Verdict::Valid)
    }
}

const HEADER: [&str; 9] = [
    "rung", "server", "metric", "A", "B", "A/B", "interval", "p (Holm)", "verdict",
];
/// Columns of figures; the others are text.
const FIGURES: std::ops::Range<usize> = 3..8;

fn table(judged: &[Judged<'_>], design: Design) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for (index, judged) in judged.iter().enumerate() {
        if index > 0 {
            table.add_row([""; HEADER.len()]);
        }
        let primary = Metric::primary(judged.pair.rung);
        table.add_row(row(judged, primary, judged.primary.as_ref(), design));
        for &metric in Metric::secondary(judged.pair.rung) {
            let answer = judged
                .secondary
                .iter()
                .find(|answer| answer.metric == metric);
            table.add_row(row(judged, metric, answer, design));
        }
    }
    for column in FIGURES {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn row(
    judged: &Judged<'_>,
    metric: Metric,
    answer: Option<&Answer>,
    design: Design,
) -> Vec<String> {
    let Pair { rung, a, b, .. } = &judged.pair;
    let main = metric == Metric::primary(*rung);
    let server = match design {
        Design::Paired => format!("{} / {}", a[0].label(), b[0].label()),
        Design::Unpaired => a[0].label(),
    };
    let first = |text: String| if main { text } else { String::new() };
    let mut row = vec![
        first(rung.to_string()),
        first(server),
        metric.name().to_owned(),
        typical(a, metric),
        typical(b, metric),
    ];
    let Some(answer) = answer else {
        row.extend([
            "-".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            too_little(judged, metric),
        ]);
        return row;
    };
    let Interval { low, high } = answer.comparison.interval;
    let doubt = answer
        .doubt_in_words()
        .map_or_else(String::new, |doubt| format!(" ({doubt})"));
    row.extend([
        format!("{:.3}", answer.comparison.ratio),
        format!("{low:.3} to {high:.3}"),
        probability(answer.adjusted_p_value),
        format!("{}{doubt}", in_words(metric, answer.verdict)),
    ]);
    row
}

fn probability(p_value: f64) -> String {
    if p_value < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p_value:.3}")
    }
}

fn typical(trials: &[&Trial], metric: Metric) -> String {
    let values: Vec<f64> = figures(trials, metric)
        .into_iter()
        .map(|(_, figure)| figure)
        .collect();
    median(&values).map_or_else(|| "-".to_owned(), |value| metric.show(value))
}

fn too_little(judged: &Judged<'_>, metric: Metric) -> String {
    let fewest = [&judged.pair.a, &judged.pair.b].map(|trials| figures(trials, metric).len());
    match fewest.into_iter().min() {
        Some(1) => "one block is no comparison".to_owned(),
        Some(0) => "no valid block has the figure".to_owned(),
        _ => "fewer than two blocks in common".to_owned(),
    }
}
