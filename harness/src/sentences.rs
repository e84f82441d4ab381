//! The closing sentence of each rung: which server, by how much, how sure, and at what cost; or that they cannot be told
//! apart.

mod cost;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use cost::Cost;
use stats::Verdict;
use words::{either, listed, percent, unsigned};

use crate::campaign::{Campaign, Trial};
use crate::checks;
use crate::class::Class;
use crate::figures::figures;
use crate::metric::Metric;
use crate::rung::Rung;
use crate::verdicts::{self, Judged, Side, greater_is_better};

/// Lanes with the same ceiling may be this far apart, as a ratio, before the gap has to be explained.
const UNEXPLAINED_BEYOND: f64 = 1.03;

/// A line for each rung of the table of a class; a single one where no rung has more than one block. Nothing where there
/// is only one server.
pub fn of_table(campaign: &Campaign, workload: &str, rungs: &[Rung], class: Class) -> Vec<String> {
    let judged = verdicts::of_campaign(campaign, workload, rungs, class);
    if judged.is_empty() {
        return Vec::new();
    }
    if campaign.plan.blocks < 2 && judged.iter().all(|judged| judged.primary.is_none()) {
        let line = "One block is no comparison: --preset snapshot measures three, publishable ten or more.";
        let left_out = rungs.iter().filter_map(|&rung| {
            let left_out = left_out(&class.subjects(campaign, workload, rung))?;
            Some(format!("At {rung}: {left_out}."))
        });
        return [line.to_owned()].into_iter().chain(left_out).collect();
    }
    let of_rung = |&rung: &Rung| {
        let judged: Vec<&Judged<'_>> = judged
            .iter()
            .filter(|judged| judged.pair.rung == rung)
            .collect();
        of_rung(rung, &class.subjects(campaign, workload, rung), &judged)
    };
    rungs.iter().filter_map(of_rung).collect()
}

fn of_rung(rung: Rung, subjects: &[Vec<&Trial>], judged: &[&Judged<'_>]) -> Option<String> {
    if subjects.len() < 2 {
        return None;
    }
    let metric = Metric::primary(rung);
    let mut ranked: Vec<Contender<'_>> = subjects
        .iter()
        .filter_map(|trials| Contender::of(trials, metric))
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    let said = match ranked.as_slice() {
        [] => "no server has a figure that counts".to_owned(),
        [one] => format!(
            "only {} has figures that count: nothing to compare it with",
            one.label
        ),
        [first, others @ ..] => beside(first, others, judged, metric),
    };
    let mut text = format!("At {rung} {said}.");
    if let Some(left_out) = left_out(subjects) {
        text.push_str(&format!(" Left out: {left_out}."));
    }
    if unexplained(rung, subjects, judged) {
        text.push_str(
            " All lanes have the same ceiling in this workload: a gap above 3 % is an artefact until explained.",
        );
    }
    Some(text)
}

/// A server with valid trials at a rung.
#[derive(Debug)]
struct Contender<'a> {
    label: String,
    trials: &'a [&'a Trial],
    /// Greater is better: the mean logarithm of the primary metric, or its negative.
    score: f64,
}

impl<'a> Contender<'a> {
    fn of(trials: &'a [&'a Trial], metric: Metric) -> Option<Contender<'a>> {
        let logs: Vec<f64> = figures(trials, metric)
            .iter()
            .map(|(_, figure)| figure.ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (!logs.is_empty()).then(|| Contender {
            label: trials[0].label(),
            trials,
            score: if greater_is_better(metric) {
                mean
            } else {
                -mean
            },
        })
    }

    fn is(&self, trials: &[&Trial]) -> bool {
        trials[0].same_subject(self.trials[0])
    }
}

/// A contender beside another, as seen from the other.
struct Seen<'a> {
    contender: &'a Contender<'a>,
    side: Side,
    blocks: usize,
    doubt: Option<String>,
}

/// `None` where there are too few blocks in which both count.
fn seen<'a>(
    contender: &'a Contender<'a>,
    from: &Contender<'_>,
    judged: &[&Judged<'_>],
) -> Option<Seen<'a>> {
    judged.iter().find_map(|judged| {
        let (a, b) = (&judged.pair.a, &judged.pair.b);
        let answer = judged.primary?;
        let side = if contender.is(a) && from.is(b) {
            answer.from_a()
        } else if contender.is(b) && from.is(a) {
            answer.from_b()
        } else {
            return None;
        };
        Some(Seen {
            contender,
            side,
            blocks: answer.comparison.blocks,
            doubt: answer.doubt_in_words(),
        })
    })
}

fn beside(
    first: &Contender<'_>,
    others: &[Contender<'_>],
    judged: &[&Judged<'_>],
    metric: Metric,
) -> String {
    if let [second] = others {
        return two(first, second, judged, metric);
    }
    let (mut tied, mut told, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for other in others {
        match seen(other, first, judged) {
            None => unknown.push(other.label.as_str()),
            Some(seen) if decided(seen.side.verdict) => told.push(seen),
            Some(seen) => tied.push(seen),
        }
    }
    let Some(blocks) = tied.iter().chain(&told).map(|seen| seen.blocks).min() else {
        return too_few();
    };
    let mut lead = match metric {
        Metric::Throughput => format!("{} answers the most requests", first.label),
        _ => format!("{} has the lowest {}", first.label, metric.name()),
    };
    if !tied.is_empty() {
        let tied: Vec<String> = tied
            .iter()
            .map(|seen| tied_in_words(seen, metric))
            .collect();
        lead.push_str(&format!(
            ", but is not shown to differ from {}",
            listed(&tied)
        ));
    }
    let mut parts = vec![lead];
    if !told.is_empty() {
        let told: Vec<String> = told
            .iter()
            .map(|seen| told_in_words(seen, metric))
            .collect();
        parts.push(format!("then {}", listed(&told)));
    }
    if !unknown.is_empty() {
        parts.push(format!(
            "too few blocks in common with {}",
            listed(&unknown)
        ));
    }
    let costs: Vec<String> = [first].into_iter().chain(others).map(Cost::alone).collect();
    format!(
        "{}; {blocks} blocks. A request's CPU time, threads and memory: {}",
        parts.join("; "),
        costs.join("; ")
    )
}

fn decided(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

fn too_few() -> String {
    "fewer than two blocks have figures of both servers: no comparison".to_owned()
}

/// With signs, since the interval has room for both.
fn tied_in_words(seen: &Seen<'_>, metric: Metric) -> String {
    let Side {
        ratio,
        interval,
        verdict,
    } = seen.side;
    let equivalent = if verdict == Verdict::Equivalent {
        ", equivalent"
    } else {
        ""
    };
    let doubt = seen
        .doubt
        .as_ref()
        .map_or_else(String::new, |doubt| format!(", {doubt}"));
    let (label, apart, interval) = (&seen.contender.label, off(ratio, metric), either(interval));
    format!("{label} ({apart}, interval {interval}{equivalent}{doubt})")
}

fn told_in_words(seen: &Seen<'_>, metric: Metric) -> String {
    let Side {
        ratio, interval, ..
    } = seen.side;
    let (label, apart, interval) = (
        &seen.contender.label,
        off(ratio, metric),
        unsigned(interval),
    );
    format!("{label} ({apart}, interval {interval})")
}

fn off(ratio: f64, metric: Metric) -> String {
    let word = match (metric, ratio < 1.0) {
        (Metric::Throughput, true) => "fewer",
        (Metric::Throughput, false) => "more",
        (_, true) => "lower",
        (_, false) => "higher",
    };
    format!("{} {word}", percent(ratio))
}

fn two(
    first: &Contender<'_>,
    second: &Contender<'_>,
    judged: &[&Judged<'_>],
    metric: Metric,
) -> String {
    let Some(seen) = seen(first, second, judged) else {
        return too_few();
    };
    let Seen {
        side,
        blocks,
        doubt,
        ..
    } = seen;
    // Where the blocks in common say something else than the means over all of them.
    if side.verdict == Verdict::Slower {
        return two(second, first, judged, metric);
    }
    let (a, b) = (&first.label, &second.label);
    let cost = Cost::against(first, second);
    if side.verdict == Verdict::Faster {
        let (ratio, interval) = (percent(side.ratio), unsigned(side.interval));
        let claim = match metric {
            Metric::Throughput => format!("{a} answers {ratio} more requests than {b}"),
            _ => format!("the {} of {a} is {ratio} below that of {b}", metric.name()),
        };
        let uses = if metric == Metric::Throughput {
            "uses"
        } else {
            "it uses"
        };
        return format!("{claim} (interval {interval}, {blocks} blocks), and {uses} {cost}");
    }
    let (apart, interval) = (percent(side.ratio), either(side.interval));
    let who = match metric {
        Metric::Throughput => format!("{a} and {b}"),
        _ => format!("the {} of {a} and of {b}", metric.name()),
    };
    let claim = if side.verdict == Verdict::Equivalent {
        format!("{who} are equivalent")
    } else {
        format!("{who} cannot be told apart")
    };
    let doubt = doubt.map_or_else(String::new, |doubt| format!(", {doubt}"));
    format!("{claim}: {apart} apart, interval {interval}, {blocks} blocks{doubt}; {a} uses {cost}")
}

/// Who is left out, or in which blocks, and by which checks.
pub fn left_out(subjects: &[Vec<&Trial>]) -> Option<String> {
    let of = |trials: &Vec<&Trial>| {
        let out: Vec<&&Trial> = trials
            .iter()
            .filter(|trial| trial.verdict != checks::Verdict::Valid)
            .collect();
        let gravest = out.iter().map(|trial| trial.verdict).max()?;
        let tripped = out.iter().flat_map(|trial| trial.checks.iter());
        let mut codes: Vec<checks::Code> = tripped
            .filter(|check| checks::tripped(check))
            .map(|check| check.code)
            .collect();
        codes.sort_unstable();
        codes.dedup();
        let codes: Vec<&str> = codes.iter().map(|code| code.name()).collect();
        let label = trials[0].label();
        let blocks: Vec<String> = out
            .iter()
            .map(|trial| (trial.block + 1).to_string())
            .collect();
        let when = match blocks.len() {
            all if all == trials.len() => String::new(),
            1 => format!(" in block {}", blocks[0]),
            _ => format!(" in blocks {}", listed(&blocks)),
        };
        Some(format!(
            "{label}{when} ({}: {})",
            gravest.name(),
            codes.join(", ")
        ))
    };
    let all: Vec<String> = subjects.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| listed(&all))
}

/// Whether servers that only wait for the same ceiling differ more than they can.
fn unexplained(rung: Rung, subjects: &[Vec<&Trial>], judged: &[&Judged<'_>]) -> bool {
    let delayed = subjects.iter().flatten().any(|trial| {
        trial
            .window
            .as_ref()
            .is_some_and(|window| window.delay_ms.is_some())
    });
    let gap = |judged: &&Judged<'_>| {
        let ratio = judged.primary.map_or(1.0, |answer| answer.comparison.ratio);
        ratio.max(1.0 / ratio) > UNEXPLAINED_BEYOND
    };
    !rung.is_open() && delayed && judged.iter().any(gap)
}
