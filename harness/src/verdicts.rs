//! What a campaign says of its servers side by side: for each pair at each rung a ratio, how sure it is, and a verdict.
//! Derived from the record whenever it is asked for, never stored.
//!
//! Two families of questions are asked together, and each is adjusted by Holm's method: the primary metric of all rungs
//! and pairs of one table, so that three rungs and six pairs do not make somebody "faster" by chance; and all secondary
//! metrics of all pairs at one rung.

use stats::{
    Better, Comparison, Interval, NoiseFloor, Question, Verdict, family_verdicts, outliers,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::blocks::{by_subject, counting};
use crate::campaign::{Campaign, Trial};
use crate::class::Class;
use crate::figures::{figures, log_ratios};
use crate::metric::Metric;
use crate::rung::Rung;

/// With fewer blocks every third scatter has a block "far" from the others.
const LEAST_BLOCKS_FOR_OUTLIERS: usize = 5;

/// How two servers' blocks belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Blocks of one campaign: both servers ran next to each other in time, so that a block has a ratio.
    Paired,
    /// Blocks of two campaigns: only the samples as wholes can be compared.
    Unpaired,
}

/// Two servers at one rung: each its trials there, never none, one a block.
#[derive(Debug, Clone)]
pub struct Pair<'a> {
    pub rung: Rung,
    pub a: Vec<&'a Trial>,
    pub b: Vec<&'a Trial>,
    /// An A/A pair: the same command under two names.
    pub identical: bool,
}

/// A pair with what may be said of it.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    pub pair: Pair<'a>,
    /// On the metric named beforehand. `None` with fewer than two usable blocks: one block is no comparison.
    pub primary: Option<Answer>,
    /// Those of the other metrics that have two usable blocks.
    pub secondary: Vec<Answer>,
}

/// What the blocks say about one metric: server a beside server b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub metric: Metric,
    pub comparison: Comparison,
    pub noise_floor: NoiseFloor,
    /// By Holm's method, among the questions that were asked together.
    pub adjusted_p_value: f64,
    pub verdict: Verdict,
}

/// An answer as seen from one of the two servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// This server's figure divided by the other's.
    pub ratio: f64,
    pub interval: Interval,
    pub verdict: Verdict,
}

/// Why a difference whose interval leaves out "none at all" is none that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// Student's t and the bootstrap disagree about it.
    IntervalsDisagree,
    /// It does not lie beyond what a server differs from itself.
    NoiseFloor,
    /// It does not survive Holm's adjustment.
    Adjustment,
}

impl Answer {
    pub fn from_a(&self) -> Side {
        Side {
            ratio: self.comparison.ratio,
            interval: self.comparison.interval,
            verdict: self.verdict,
        }
    }

    pub fn from_b(&self) -> Side {
        let Interval { low, high } = self.comparison.interval;
        Side {
            ratio: 1.0 / self.comparison.ratio,
            interval: Interval {
                low: 1.0 / high,
                high: 1.0 / low,
            },
            verdict: match self.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same @ (Verdict::Equivalent | Verdict::Inconclusive) => same,
            },
        }
    }

    /// `None` where the verdict needs no excuse: it is decided, or the interval has room for no difference.
    pub fn doubt(&self) -> Option<Doubt> {
        let Interval { low, high } = self.comparison.interval;
        let floor = self.noise_floor.ratio();
        if self.verdict != Verdict::Inconclusive {
            None
        } else if self.comparison.intervals_disagree() {
            Some(Doubt::IntervalsDisagree)
        } else if low > floor || high < 1.0 / floor {
            Some(Doubt::Adjustment)
        } else {
            (low > 1.0 || high < 1.0).then_some(Doubt::NoiseFloor)
        }
    }

    pub fn doubt_in_words(&self) -> Option<String> {
        self.doubt().map(|doubt| match doubt {
            Doubt::IntervalsDisagree => "Student's t and the bootstrap disagree".to_owned(),
            Doubt::NoiseFloor => {
                let floor = 100.0 * (self.noise_floor.ratio() - 1.0);
                format!("not beyond the noise floor of {floor:.1} %")
            }
            Doubt::Adjustment => {
                format!("p = {:.2} after Holm's adjustment", self.adjusted_p_value)
            }
        })
    }
}

/// All pairs of servers of one class at each of the rungs, the earlier one in the plan's order first.
pub fn pairs<'a>(
    campaign: &'a Campaign,
    workload: &str,
    rungs: &[Rung],
    class: Class,
) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for &rung in rungs {
        let subjects = class.subjects(campaign, workload, rung);
        for (index, a) in subjects.iter().enumerate() {
            for b in &subjects[index + 1..] {
                pairs.push(Pair {
                    rung,
                    a: a.clone(),
                    b: b.clone(),
                    identical: identical(campaign, a[0], b[0]),
                });
            }
        }
    }
    pairs
}

/// The trials that count at a rung, by server and profile in the plan's order.
pub fn subjects<'a>(campaign: &'a Campaign, workload: &str, rung: Rung) -> Vec<Vec<&'a Trial>> {
    let mut trials: Vec<&Trial> = counting(&campaign.trials)
        .filter(|trial| trial.workload == workload && trial.rung == rung)
        .collect();
    let plan = &campaign.plan;
    let place = |trial: &&Trial| {
        let server = plan.servers.iter().position(|name| *name == trial.server);
        let profile = plan
            .profiles
            .iter()
            .position(|profile| *profile == trial.profile);
        (server, profile)
    };
    trials.sort_by_key(place);
    by_subject(&trials)
}

fn identical(campaign: &Campaign, a: &Trial, b: &Trial) -> bool {
    let command = |name: &str| {
        let record = campaign.servers.iter().find(|server| server.name == name);
        let same_as = record.and_then(|server| server.same_as.clone());
        same_as.unwrap_or_else(|| name.to_owned())
    };
    a.profile == b.profile && command(&a.server) == command(&b.server)
}

/// How far apart the A/A pairs of a workload are found, by metric.
#[derive(Debug, Clone)]
pub struct NoiseFloors(Vec<(Metric, NoiseFloor)>);

impl NoiseFloors {
    /// From all A/A pairs of a class in the campaigns, over all rungs.
    pub fn of(campaigns: &[&Campaign], workload: &str, class: Class) -> NoiseFloors {
        let mut identical = Vec::new();
        for campaign in campaigns {
            let ladders = campaign.plan.ladders.iter();
            for ladder in ladders.filter(|ladder| ladder.workload == workload) {
                let pairs = pairs(campaign, workload, &ladder.rungs, class);
                identical.extend(pairs.into_iter().filter(|pair| pair.identical));
            }
        }
        let floor = |metric| {
            let ratios = identical
                .iter()
                .flat_map(|pair| log_ratios(&pair.a, &pair.b, metric));
            NoiseFloor::of(&ratios.collect::<Vec<_>>()).unwrap_or_else(NoiseFloor::least)
        };
        NoiseFloors(Metric::ALL.map(|metric| (metric, floor(metric))).to_vec())
    }

    /// The least that is ever assumed where there is no A/A pair.
    pub fn in_metric(&self, metric: Metric) -> NoiseFloor {
        let found = self.0.iter().find(|(of, _)| *of == metric);
        found.map_or_else(NoiseFloor::least, |(_, floor)| *floor)
    }
}

/// How pairs are judged: together, and the same way every time.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub design: Design,
    pub noise_floors: &'a NoiseFloors,
    /// Of the bootstrap, together with the place of the question.
    pub seed: u64,
}

/// The verdicts on the pairs of one table, which all belong to one kind of loop, in the order given.
pub fn judge<'a>(pairs: Vec<Pair<'a>>, rules: Rules<'_>) -> Vec<Judged<'a>> {
    let asked: Vec<Option<Asked>> = pairs
        .iter()
        .map(|pair| rules.ask(pair, Metric::primary(pair.rung)))
        .collect();
    let mut primaries = answers(asked.iter().flatten().copied().collect()).into_iter();
    let mut judged: Vec<Judged<'_>> = pairs
        .into_iter()
        .zip(asked)
        .map(|(pair, asked)| Judged {
            pair,
            primary: asked.and_then(|_| primaries.next()),
            secondary: Vec::new(),
        })
        .collect();
    for of_rung in judged.chunk_by_mut(|a, b| a.pair.rung == b.pair.rung) {
        add_secondary(of_rung, rules);
    }
    judged
}

/// The verdicts on a campaign's own pairs at the rungs of one table.
pub fn of_campaign<'a>(
    campaign: &'a Campaign,
    workload: &str,
    rungs: &[Rung],
    class: Class,
) -> Vec<Judged<'a>> {
    let rules = Rules {
        design: Design::Paired,
        noise_floors: &NoiseFloors::of(&[campaign], workload, class),
        seed: campaign.plan.seed,
    };
    judge(pairs(campaign, workload, rungs, class), rules)
}

/// A question with the metric it is about.
type Asked = (Metric, Question);

fn add_secondary(of_rung: &mut [Judged<'_>], rules: Rules<'_>) {
    let mut counts = Vec::new();
    let mut asked = Vec::new();
    for Judged { pair, .. } in of_rung.iter() {
        let metrics = Metric::secondary(pair.rung).iter();
        let before = asked.len();
        asked.extend(metrics.filter_map(|&metric| rules.ask(pair, metric)));
        counts.push(asked.len() - before);
    }
    let mut answers = answers(asked).into_iter();
    for (judged, count) in of_rung.iter_mut().zip(counts) {
        judged.secondary = answers.by_ref().take(count).collect();
    }
}

fn answers(asked: Vec<Asked>) -> Vec<Answer> {
    let questions: Vec<Question> = asked.iter().map(|(_, question)| *question).collect();
    let verdicts = family_verdicts(&questions);
    asked
        .into_iter()
        .zip(verdicts)
        .map(|((metric, question), judged)| Answer {
            metric,
            comparison: question.comparison,
            noise_floor: question.noise_floor,
            adjusted_p_value: judged.adjusted_p_value,
            verdict: judged.verdict,
        })
        .collect()
}

impl Rules<'_> {
    fn ask(self, pair: &Pair<'_>, metric: Metric) -> Option<Asked> {
        let Pair { a, b, .. } = pair;
        let seed = xxh3_64_with_seed(place(pair, metric).as_bytes(), self.seed);
        let comparison = match self.design {
            Design::Paired => Comparison::of(&log_ratios(a, b, metric), seed),
            Design::Unpaired => Comparison::unpaired(&logs(a, metric), &logs(b, metric), seed),
        };
        let noise_floor = if pair.identical {
            // What a pair shows of the noise cannot excuse that very pair.
            NoiseFloor::least()
        } else {
            self.noise_floors.in_metric(metric)
        };
        let question = Question {
            comparison: comparison?,
            better: metric.better(),
            noise_floor,
        };
        Some((metric, question))
    }
}

/// Where a question stands: the same every time it is asked.
fn place(pair: &Pair<'_>, metric: Metric) -> String {
    [
        pair.a[0].workload.clone(),
        pair.rung.slug(),
        pair.a[0].label(),
        pair.b[0].label(),
        metric.name().to_owned(),
    ]
    .join("\n")
}

fn logs(trials: &[&Trial], metric: Metric) -> Vec<f64> {
    figures(trials, metric)
        .iter()
        .map(|(_, figure)| figure.ln())
        .collect()
}

/// A block that stands apart from the same server's others at the same rung. It is marked, and counts all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    pub block: usize,
    pub figure: f64,
    pub median: f64,
    /// Robust standard deviations above the median; negative: below.
    pub modified_z: f64,
}

/// Those of one server's trials at one rung, by the primary metric.
pub fn apart(trials: &[&Trial]) -> Vec<Apart> {
    let Some(first) = trials.first() else {
        return Vec::new();
    };
    let figures = figures(trials, Metric::primary(first.rung));
    if figures.len() < LEAST_BLOCKS_FOR_OUTLIERS {
        return Vec::new();
    }
    let values: Vec<f64> = figures.iter().map(|(_, figure)| *figure).collect();
    let (Some(found), Some(median)) = (outliers(&values), stats::median(&values)) else {
        return Vec::new();
    };
    let of = |outlier: stats::Outlier| {
        let (block, figure) = figures[outlier.index];
        Apart {
            block,
            figure,
            median,
            modified_z: outlier.modified_z,
        }
    };
    found.into_iter().map(of).collect()
}

/// In the words of the metric: CPU is not faster but cheaper.
pub fn in_words(metric: Metric, verdict: Verdict) -> &'static str {
    let cost = metric == Metric::CpuPerRequest;
    match verdict {
        Verdict::Faster if cost => "cheaper",
        Verdict::Slower if cost => "dearer",
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// Whether the greater ratio is the better one.
pub fn greater_is_better(metric: Metric) -> bool {
    metric.better() == Better::Higher
}

#[cfg(test)]
mod tests;
