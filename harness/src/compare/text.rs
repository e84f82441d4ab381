//! A comparison as a terminal shows it.

use stats::Interval;

use super::comparison::{ComparedRow, ComparedTable, Comparison};
use crate::layout::{Columns, Look, lay_out};

const COLUMNS: Columns<'_> = Columns {
    all: &[
        ("rung", true),
        ("server", true),
        ("metric", true),
        ("A", false),
        ("B", false),
        ("A/B", false),
        ("interval", false),
        ("p (Holm)", false),
        ("verdict", true),
    ],
    dispensable: &["p (Holm)", "A", "B"],
};

impl Comparison {
    /// The preamble, then each table with its sentence and with what is left out of it.
    pub fn text(&self, look: Look) -> String {
        let mut lines = self.preamble.clone();
        for compared in &self.tables {
            let ComparedTable {
                heading,
                remark,
                rows,
                left_out,
                verdict,
                ..
            } = compared;
            lines.push(format!("\n{heading}"));
            lines.extend(remark.clone());
            lines.push(table(rows, look));
            lines.push(verdict.clone());
            lines.extend(left_out.iter().cloned());
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn table(rows: &[ComparedRow], look: Look) -> String {
    let mut all = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if index > 0 && row.primary {
            all.push(vec![String::new(); COLUMNS.all.len()]);
        }
        all.push(cells(row));
    }
    lay_out(COLUMNS, &all, look)
}

fn cells(row: &ComparedRow) -> Vec<String> {
    let dash = || "-".to_owned();
    let first = |text: String| if row.primary { text } else { String::new() };
    let figure = |value: Option<f64>| value.map_or_else(dash, |value| row.metric.show(value));
    let range = |Interval { low, high }| format!("{low:.3} to {high:.3}");
    vec![
        first(row.rung.to_string()),
        first(row.server.clone()),
        row.metric.name().to_owned(),
        figure(row.a),
        figure(row.b),
        row.ratio.map_or_else(dash, |ratio| format!("{ratio:.3}")),
        row.interval.map_or_else(dash, range),
        row.adjusted_p_value.map_or_else(dash, probability),
        row.verdict.clone(),
    ]
}

fn probability(p_value: f64) -> String {
    if p_value < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p_value:.3}")
    }
}
