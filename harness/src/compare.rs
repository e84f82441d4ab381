//! `lanebench compare`: two campaigns, or two servers of one, metric by metric and rung by rung.

mod comparison;
mod gate;
mod summary;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

pub use comparison::{ComparedRow, ComparedTable, Comparison};
pub use gate::{Gate, Tolerance};

use crate::campaign::{self, Campaign, State};
use crate::checks::Verdict;
use crate::class::Class;
use crate::comparable::{refusals, remarks};
use crate::layout::Look;
use crate::results::of_results;
use crate::rung::Rung;
use crate::selection::nearest;
use crate::stdout;
use crate::table::{label, labels};
use crate::verdicts::{self, Design, NoiseFloors, Pair, Rules};

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

    /// Exit with status 1 if B is shown to be slower than A by more than this at some rung, such as 5%: fewer requests a
    /// second in a closed loop, a higher p99 in an open one
    #[arg(long, value_name = "PERCENT")]
    pub fail_if_slower: Option<Tolerance>,

    /// Print one JSON document instead of the tables
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Ratios are A / B, and the verdict is A's: faster when the whole 95 % interval lies beyond the noise floor and the \
difference survives Holm's adjustment, equivalent when it lies within 3 %, else inconclusive, which does not mean equal.

Servers of one campaign ran next to each other, so their blocks are compared one by one (Student's t). Two campaigns \
did not: their blocks are two samples (Welch's t), and what changed on the machine in between is part of the difference. \
Campaigns that differ in more than their servers are refused.

--fail-if-slower is for a CI: the campaign of before is A, that of now is B. It fails where B's verdict is slower and \
B's whole interval lies beyond the limit, so that noise alone does not; where the interval reaches beyond it but not as \
a whole, it says that so much could not be excluded, and passes.

Exit status: 0 all rows compared are valid, 1 some row is not or B is slower than allowed, 2 bad usage.

Examples:
  lanebench compare results/before results/after
  lanebench compare results/before results/after --fail-if-slower 5%
  lanebench compare results/today --servers deadpool,sqlx";

/// Prints the comparison on stdout. Gives the gravest verdict of the rows compared; `Failed` where B is slower than
/// allowed.
///
/// # Errors
/// A record that cannot be read, an unknown server, or campaigns that are not comparable.
pub fn run(args: &CompareArgs) -> Result<Verdict> {
    let comparison = compared(args)?;
    let gate = args
        .fail_if_slower
        .map(|tolerance| Gate::of(&comparison, tolerance));
    if args.json {
        stdout::say_json(&Document {
            comparison: &comparison,
            fail_if_slower: gate.as_ref(),
        })?;
    } else {
        stdout::say(&comparison.text(Look::of_stdout()));
    }
    let Some(gate) = gate else {
        return Ok(comparison.gravest);
    };
    for line in gate.lines() {
        eprintln!("lanebench: {line}");
    }
    let slower = if gate.slower.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Failed
    };
    Ok(comparison.gravest.max(slower))
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// `null` where it was not asked for.
    fail_if_slower: Option<&'a Gate>,
}

fn compared(args: &CompareArgs) -> Result<Comparison> {
    match (args.results.as_slice(), args.servers.as_slice()) {
        ([one], [a, b]) => servers(&of_results(one)?, a, b),
        ([a, b], []) => campaigns((a, &of_results(a)?), (b, &of_results(b)?)),
        ([_], []) => bail!(
            "one campaign is compared with another, or within itself: give a second, or --servers A,B"
        ),
        ([_], names) => bail!("--servers {}: give two names", names.join(",")),
        _ => bail!("--servers compares two servers of one campaign: give one results folder"),
    }
}

/// Two servers of one campaign, by their labels: block by block.
///
/// # Errors
/// An unknown server, one beside itself, or servers of two classes.
pub fn servers(campaign: &Campaign, a: &str, b: &str) -> Result<Comparison> {
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
    let mut comparison = Comparison::under(vec![
        format!("A: {a}"),
        format!("B: {b}, in the same blocks: the ratios of the blocks, Student's t"),
    ]);
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
        comparison.add(&ladder.workload, class, pairs, rules);
    }
    Ok(comparison)
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

/// Two campaigns, each server beside itself.
///
/// # Errors
/// They differ in more than their servers, or have nothing in common.
pub fn campaigns(
    (path_a, a): (&Path, &Campaign),
    (path_b, b): (&Path, &Campaign),
) -> Result<Comparison> {
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
    let mut comparison = Comparison::under(preamble((path_a, a), (path_b, b)));
    for (workload, class, pairs) in common {
        let noise_floors = NoiseFloors::of(&[a, b], &workload, class);
        let rules = Rules {
            design: Design::Unpaired,
            noise_floors: &noise_floors,
            seed: a.plan.seed,
        };
        comparison.add(&workload, class, pairs, rules);
    }
    comparison.not_in_both = not_in_both(a, b);
    Ok(comparison)
}

fn preamble((path_a, a): (&Path, &Campaign), (path_b, b): (&Path, &Campaign)) -> Vec<String> {
    let side = |name: &str, path: &Path, campaign: &Campaign| {
        let state = match campaign.state {
            State::Complete => "",
            State::Running => ", still running or broken off",
            State::Interrupted => ", interrupted",
        };
        format!(
            "{name}: {}, begun at {}{state}",
            path.display(),
            campaign.started_at
        )
    };
    let not_side_by_side = "Not side by side: Welch's t of two samples; what changed on the machine in between is part of the difference";
    let mut lines = vec![
        side("A", path_a, a),
        side("B", path_b, b),
        not_side_by_side.to_owned(),
    ];
    lines.extend(remarks(a, b));
    lines
}

/// The rows of A without a counterpart in B, in words.
fn not_in_both(a: &Campaign, b: &Campaign) -> Vec<String> {
    let mut found = Vec::new();
    for ladder in &a.plan.ladders {
        let workload = &ladder.workload;
        for &rung in &ladder.rungs {
            let of_b = verdicts::subjects(b, workload, rung);
            for of_a in verdicts::subjects(a, workload, rung) {
                if !of_b.iter().any(|of_b| of_b[0].same_subject(of_a[0])) {
                    found.push(format!("{} at {rung} ({workload})", of_a[0].label()));
                }
            }
        }
    }
    found
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
