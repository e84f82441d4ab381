//! What a report's page says, read from the browser: its tables as text, its plots as data.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::driver::Browser;

/// The kinds of plots that a page has where its record has everything.
pub(crate) const KINDS: [&str; 7] = [
    "ceiling",
    "cost",
    "percentiles",
    "rate",
    "stages",
    "throughput",
    "timeline",
];

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub(crate) tables: Vec<Table>,
    pub(crate) plots: Vec<Plot>,
    /// All that can be read, also what is folded away.
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// As ECharts holds it, and the table that says the same.
#[derive(Debug, Deserialize)]
pub(crate) struct Plot {
    pub(crate) kind: String,
    pub(crate) title: String,
    /// What assistive technology reads out.
    pub(crate) label: String,
    pub(crate) legend: Vec<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) table: Option<Table>,
    /// Lines, marks and letters that are drawn.
    pub(crate) shapes: usize,
    pub(crate) height: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// The words of the steps, where it has steps.
    pub(crate) steps: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// ECharts's: line, scatter, bar, custom; or mark, an upright line at each x.
    pub(crate) form: String,
    pub(crate) dashed: bool,
    pub(crate) hollow: bool,
    /// x, y; or x, low, high.
    pub(crate) points: Vec<Vec<f64>>,
}

const READ: &str = r#"
const text = element => element ? element.textContent.trim() : "";
const cells = row => [...row.cells].map(text);
const table = element => ({
    caption: text(element.caption), header: cells(element.tHead.rows[0]), rows: [...element.tBodies[0].rows].map(cells),
});
const points = series => series.type === "bar" && !Array.isArray(series.data[0]?.value ?? series.data[0])
    ? series.data.flatMap((value, place) => value === null || value === undefined ? [] : [[place, value.value ?? value]])
    : (series.markLine?.data?.length ? series.markLine.data.map(mark => [mark.xAxis, 0]) : series.data.map(item => item.value ?? item));
const given = Object.fromEntries(JSON.parse(document.getElementById("plots").textContent).map(figure => [figure.id, figure]));
const plot = element => {
    const canvas = element.querySelector(".canvas");
    const figure = given[canvas.id];
    const option = echarts.getInstanceByDom(canvas).getOption();
    // Bars that lie have their steps on the upright axis.
    const [x, y] = option.yAxis[0].type === "category" ? [option.yAxis[0], option.xAxis[0]] : [option.xAxis[0], option.yAxis[0]];
    return {
        kind: element.dataset.plot, title: text(element.querySelector("figcaption strong")),
        label: canvas.getAttribute("aria-label") ?? "", legend: option.legend[0].data.map(entry => entry.name ?? entry),
        x: { name: x.name || figure.x.name, steps: x.data ?? figure.x.scale.steps ?? [] }, y: { name: y.name, steps: [] },
        series: option.series.map(series => ({
            name: series.name, form: series.markLine?.data?.length ? "mark" : series.type, dashed: series.lineStyle?.type === "dashed",
            hollow: series.type === "scatter" && series.symbol === "emptyCircle", points: points(series),
        })),
        table: element.querySelector("table") ? table(element.querySelector("table")) : null,
        shapes: canvas.querySelectorAll("svg path, svg text").length, height: canvas.getBoundingClientRect().height,
    };
};
return {
    tables: [...document.querySelectorAll("main table")].filter(element => !element.closest("figure")).map(table),
    plots: [...document.querySelectorAll("figure.plot")].map(plot),
    text: document.querySelector("main").textContent,
};
"#;

/// The page that is open, once all of it is drawn.
#[track_caller]
pub(crate) fn page(browser: &Browser) -> Page {
    wait_until_drawn(browser);
    serde_json::from_value(browser.run(READ, json!([]))).unwrap()
}

/// Milliseconds from the navigation until the last plot was drawn.
#[track_caller]
pub(crate) fn wait_until_drawn(browser: &Browser) -> Value {
    browser.run(
        "const root = document.documentElement; \
         return new Promise(done => { \
            const look = () => root.dataset.drawn ? done(Number(root.dataset.drawn)) : setTimeout(look, 20); \
            look(); \
         })",
        json!([]),
    )
}

impl Plot {
    /// Of a name: drawn as what, dashed or not.
    pub(crate) fn points(&self, name: &str, form: &str, dashed: bool) -> Option<&[Vec<f64>]> {
        let mut series = self.series.iter();
        let found = series.find(|series| {
            series.name == name && series.form == form && series.dashed == dashed && !series.hollow
        });
        found.map(|series| series.points.as_slice())
    }
}
