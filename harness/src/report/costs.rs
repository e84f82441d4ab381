//! Figures of what a request costs: where its time goes, CPU, threads, memory, context switches.

use crate::campaign::Window;
use crate::figures::{median_over, windows};
use crate::report::figure::{Axis, Figure, Form, Scale, Series};
use crate::report::scene::{Scene, Step};
use crate::time_spent::stages_ms;

/// Of a figure of stacked bars, in lines of text: legend and axis, and each bar.
const LINES_AROUND_BARS: usize = 7;
const LINES_A_BAR: usize = 2;

/// A cost that a window has, its name, unit and title.
struct Cost {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&Window) -> Option<f64>,
}

const COSTS: [Cost; 5] = [
    Cost {
        id: "cpu",
        title: "CPU time of the server for a request",
        unit: "µs of CPU per request",
        of: Window::cpu_us_each,
    },
    Cost {
        id: "database-cpu",
        title: "CPU time of PostgreSQL for a request",
        unit: "µs of CPU per request",
        of: Window::database_cpu_us_each,
    },
    Cost {
        id: "threads",
        title: "Threads of the server",
        unit: "threads",
        of: |window| Some(window.server.threads as f64),
    },
    Cost {
        id: "memory",
        title: "Resident memory of the server",
        unit: "MiB",
        of: |window| Some(window.server.rss_mib()),
    },
    Cost {
        id: "switches",
        title: "Context switches of the server for a request",
        unit: "switches per request",
        of: Window::switches_each,
    },
];

/// Bars of each cost, for the servers at each rung.
pub(crate) fn bars(scene: &Scene<'_>) -> Vec<Figure> {
    COSTS
        .iter()
        .filter_map(|cost| bars_of(scene, cost))
        .collect()
}

fn bars_of(scene: &Scene<'_>, cost: &Cost) -> Option<Figure> {
    let steps: Vec<&Step<'_>> = scene.steps().collect();
    let mut series = Vec::new();
    for (label, color) in &scene.servers {
        let mut bars = Series::new(label, Form::Bars, Some(*color));
        for (place, step) in steps.iter().enumerate() {
            let trials = step.of(label);
            let middle = trials.and_then(|trials| median_over(&windows(trials), cost.of));
            if let Some(middle) = middle {
                bars.point(place as f64, middle);
            }
        }
        series.push(bars);
    }
    series.retain(|series| !series.points.is_empty());
    (!series.is_empty()).then(|| Figure {
        id: format!("{}-{}", cost.id, scene.slug()),
        kind: "cost",
        title: format!("{}: {}", scene.name(), cost.title),
        caption: String::new(),
        x: Axis::new("rung", names(&steps)),
        y: Axis::new(cost.unit, Scale::Linear),
        series,
        small: true,
        height: None,
    })
}

fn names(steps: &[&Step<'_>]) -> Scale {
    Scale::Steps(steps.iter().map(|step| step.rung.to_string()).collect())
}

/// Where the time of a request goes by the server's own account, for each rung and server one stacked bar.
pub(crate) fn stages(scene: &Scene<'_>) -> Option<Figure> {
    let mut bars: Vec<(String, Vec<(&'static str, f64)>)> = Vec::new();
    for step in scene.steps() {
        for (label, _) in &scene.servers {
            let means = step
                .of(label)
                .and_then(|trials| stages_ms(&windows(trials)));
            bars.extend(means.map(|means| (format!("{label}, {}", step.rung), means)));
        }
    }
    let names: Vec<&'static str> = bars.first()?.1.iter().map(|(name, _)| *name).collect();
    let series = names.iter().enumerate().map(|(index, name)| {
        let mut part = Series::new(name, Form::Stack, Some(index));
        for (place, (_, means)) in bars.iter().enumerate() {
            part.point(place as f64, means[index].1);
        }
        part
    });
    Some(Figure {
        id: format!("stages-{}", scene.slug()),
        kind: "stages",
        title: format!("{}: where the time of a request goes", scene.name()),
        caption: "Means in ms, medians of them over the blocks. By the server's own account: waiting for admission, for \
            a connection (and, in a blocking lane, a thread), for the database, the way back from its thread, encoding; \
            the rest of the service time is HTTP, the wire, and waiting for a CPU."
            .to_owned(),
        x: Axis::new(
            "server and rung",
            Scale::Steps(bars.iter().map(|(name, _)| name.clone()).collect()),
        ),
        y: Axis::new("ms", Scale::Linear),
        series: series.collect(),
        small: false,
        height: Some(LINES_AROUND_BARS + LINES_A_BAR * bars.len()),
    })
}
