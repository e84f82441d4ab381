//! The figure of every second that was measured, in the order in which it was.

use crate::campaign::Trial;
use crate::report::figure::{Axis, Figure, Form, Scale, Series};
use crate::report::scene::Scene;

/// More seconds than these tell nothing more to the eye, and make pages long.
const MOST_SECONDS: usize = 6_000;

/// Right answers, sheds, other failures and checkpoints, second by second. Windows stand one after the other, without
/// the time between them.
pub(crate) fn seconds(scene: &Scene<'_>) -> Option<Figure> {
    let mut trials: Vec<&Trial> = scene
        .steps()
        .flat_map(|step| {
            let of_server = |(label, _): &(String, usize)| step.of(label).unwrap_or_default();
            scene.servers.iter().flat_map(of_server)
        })
        .copied()
        .collect();
    trials.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let all: usize = trials.iter().map(|trial| seconds_of(trial)).sum();
    let (mut x, mut shown) = (0.0, 0);
    let mut series: Vec<Series> = scene
        .servers
        .iter()
        .map(|(label, color)| Series::new(label, Form::Points, Some(*color)))
        .collect();
    let mut shed = Series::new("shed", Form::Bars, None);
    let mut failed = Series::new("failed", Form::Bars, None);
    let mut checkpoints = Series::new("checkpoint", Form::Mark, None);
    for trial in trials {
        let Some(window) = &trial.window else {
            continue;
        };
        if shown + window.load.len() > MOST_SECONDS {
            break;
        }
        shown += window.load.len();
        let label = trial.label();
        let place = scene.servers.iter().position(|(of, _)| *of == label)?;
        for second in &window.load {
            let remark = format!("{}, block {}", trial.rung, trial.block + 1);
            series[place].remarked(x + second.at, second.correct as f64, remark);
            for (series, count) in [(&mut shed, second.shed), (&mut failed, second.failed)] {
                if count > 0 {
                    series.point(x + second.at, count as f64);
                }
            }
        }
        for second in &window.series {
            if second.checkpoints.is_some_and(|begun| begun > 0) {
                checkpoints.point(x + second.at, 0.0);
            }
        }
        x += window.seconds;
    }
    series.extend([shed, failed, checkpoints]);
    series.retain(|series| !series.points.is_empty());
    let part = match shown < all {
        true => format!(" The first {shown} of {all} seconds; the rest is in campaign.json."),
        false => String::new(),
    };
    (!series.is_empty()).then(|| Figure {
        id: format!("timeline-{}", scene.slug()),
        kind: "timeline",
        title: format!("{}: second by second", scene.name()),
        caption: format!(
            "Each point is a second of a window: right answers in it. Bars: requests that were shed (503) or failed \
             otherwise; upright lines: checkpoints of PostgreSQL. Windows stand in the order in which they were \
             measured.{part}"
        ),
        x: Axis::new("measured seconds", Scale::Linear),
        y: Axis::new("per second", Scale::Linear),
        series,
        small: false,
        height: None,
    })
}

fn seconds_of(trial: &Trial) -> usize {
    trial.window.as_ref().map_or(0, |window| window.load.len())
}
