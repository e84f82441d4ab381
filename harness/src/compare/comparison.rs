//! A comparison as data: what is printed, served and judged in a CI is read from it.

use serde::{Serialize, Serializer};
use stats::{Interval, Verdict};

use super::summary;
use crate::campaign::Trial;
use crate::checks;
use crate::class::Class;
use crate::figures::{figures, median_of};
use crate::metric::Metric;
use crate::rung::Rung;
use crate::sentences::left_out;
use crate::verdicts::{Answer, Design, Judged, Pair, Rules, in_words, judge};

/// Two campaigns, or two servers of one: A beside B.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// What A and B are, and what else differs between them.
    pub preamble: Vec<String>,
    pub tables: Vec<ComparedTable>,
    /// Of all trials compared.
    pub gravest: checks::Verdict,
    /// Rows of A that B does not have, in words.
    pub not_in_both: Vec<String>,
}

/// One workload, one kind of loop, one class of servers.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedTable {
    pub workload: String,
    pub heading: String,
    /// What sets this class of servers apart, where something does.
    pub remark: Option<String>,
    /// The primary metric of a pair first, then the others of it.
    pub rows: Vec<ComparedRow>,
    /// Which trials are not compared, and by which checks, a line each.
    pub left_out: Vec<String>,
    /// The primary metric of all pairs in a sentence.
    pub verdict: String,
}

/// One metric of one pair at one rung.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedRow {
    pub rung: Rung,
    /// `a / b` where two servers of one campaign are compared.
    pub server: String,
    pub metric: Metric,
    /// Whether it is the metric that was named beforehand.
    pub primary: bool,
    /// Medians over the blocks, in the metric's unit.
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// A's figure divided by B's; `None` with fewer than two blocks, as all below.
    pub ratio: Option<f64>,
    /// 95 %, of the ratio.
    #[serde(serialize_with = "ends")]
    pub interval: Option<Interval>,
    /// By Holm's method.
    pub adjusted_p_value: Option<f64>,
    /// A's, in words, with the reason where it is left open.
    pub verdict: String,
    /// Whether the verdict is that A is slower, or dearer.
    pub slower: bool,
    /// Whether the verdict is that A is faster, or cheaper.
    pub faster: bool,
    /// Whether the verdict is that the two are equivalent.
    pub equivalent: bool,
}

/// As `{"low": ..., "high": ...}`.
fn ends<S: Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Ends {
        low: f64,
        high: f64,
    }
    let ends = interval.map(|Interval { low, high }| Ends { low, high });
    ends.serialize(serializer)
}

impl Comparison {
    /// With nothing compared yet.
    pub(super) fn under(preamble: Vec<String>) -> Comparison {
        Comparison {
            preamble,
            tables: Vec::new(),
            gravest: checks::Verdict::Valid,
            not_in_both: Vec::new(),
        }
    }

    /// Judges the pairs: a table for each kind of loop.
    pub(super) fn add(
        &mut self,
        workload: &str,
        class: Class,
        pairs: Vec<Pair<'_>>,
        rules: Rules<'_>,
    ) {
        let trials = pairs.iter().flat_map(|pair| pair.a.iter().chain(&pair.b));
        let gravest = trials.map(|trial| trial.verdict).max();
        self.gravest = self.gravest.max(gravest.unwrap_or(checks::Verdict::Valid));
        let (open, closed): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|pair| pair.rung.is_open());
        for (kind, pairs) in [("closed", closed), ("open", open)] {
            if pairs.is_empty() {
                continue;
            }
            let judged = judge(pairs, rules);
            let rows: Vec<ComparedRow> = judged
                .iter()
                .flat_map(|judged| rows(judged, rules.design))
                .collect();
            self.tables.push(ComparedTable {
                workload: workload.to_owned(),
                heading: format!(
                    "{workload}: {kind} loop; medians over the blocks, then the ratio A / B with its 95 % interval"
                ),
                remark: class.remark().map(str::to_owned),
                verdict: summary::of(&rows, rules.design),
                rows,
                left_out: judged.iter().flat_map(out).collect(),
            });
        }
    }
}

fn rows(judged: &Judged<'_>, design: Design) -> Vec<ComparedRow> {
    let primary = Metric::primary(judged.pair.rung);
    let secondary = Metric::secondary(judged.pair.rung).iter();
    let secondary = secondary.map(|&metric| {
        let mut answers = judged.secondary.iter();
        let answer = answers.find(|answer| answer.metric == metric);
        row(judged, metric, answer, design)
    });
    [row(judged, primary, judged.primary.as_ref(), design)]
        .into_iter()
        .chain(secondary)
        .collect()
}

fn row(
    judged: &Judged<'_>,
    metric: Metric,
    answer: Option<&Answer>,
    design: Design,
) -> ComparedRow {
    let Pair { rung, a, b, .. } = &judged.pair;
    let is = |verdict| answer.is_some_and(|answer| answer.verdict == verdict);
    ComparedRow {
        rung: *rung,
        server: match design {
            Design::Paired => format!("{} / {}", a[0].label(), b[0].label()),
            Design::Unpaired => a[0].label(),
        },
        metric,
        primary: metric == Metric::primary(*rung),
        a: median_of(a, metric),
        b: median_of(b, metric),
        ratio: answer.map(|answer| answer.comparison.ratio),
        interval: answer.map(|answer| answer.comparison.interval),
        adjusted_p_value: answer.map(|answer| answer.adjusted_p_value),
        verdict: answer.map_or_else(|| too_little(&judged.pair, metric), with_doubt),
        slower: is(Verdict::Slower),
        faster: is(Verdict::Faster),
        equivalent: is(Verdict::Equivalent),
    }
}

fn with_doubt(answer: &Answer) -> String {
    let verdict = in_words(answer.metric, answer.verdict);
    match answer.doubt_in_words() {
        Some(doubt) => format!("{verdict} ({doubt})"),
        None => verdict.to_owned(),
    }
}

fn too_little(pair: &Pair<'_>, metric: Metric) -> String {
    let fewest = [&pair.a, &pair.b].map(|trials| figures(trials, metric).len());
    match fewest.into_iter().min() {
        Some(1) => "one block is no comparison".to_owned(),
        Some(0) => "no valid block has the figure".to_owned(),
        _ => "fewer than two blocks in common".to_owned(),
    }
}

fn out(judged: &Judged<'_>) -> Vec<String> {
    let pair = &judged.pair;
    let of_side = |(side, trials): (&str, &Vec<&Trial>)| {
        let left_out = left_out(std::slice::from_ref(trials))?;
        Some(format!("left out at {} of {side}: {left_out}", pair.rung))
    };
    [("A", &pair.a), ("B", &pair.b)]
        .into_iter()
        .filter_map(of_side)
        .collect()
}
