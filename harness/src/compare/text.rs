//! A comparison as a terminal shows it.

use comfy_table::{CellAlignment, Table, presets};
use stats::Interval;

use super::comparison::{ComparedRow, ComparedTable, Comparison};

const HEADER: [&str; 9] = [
    "rung", "server", "metric", "A", "B", "A/B", "interval", "p (Holm)", "verdict",
];
/// Columns of figures; the others are text.
const FIGURES: std::ops::Range<usize> = 3..8;

impl Comparison {
    /// The preamble, then each table with its sentence and with what is left out of it.
    pub fn text(&self) -> String {
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
            lines.push(table(rows));
            lines.push(verdict.clone());
            lines.extend(left_out.iter().cloned());
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn table(rows: &[ComparedRow]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for (index, row) in rows.iter().enumerate() {
        if index > 0 && row.primary {
            table.add_row([""; HEADER.len()]);
        }
        table.add_row(cells(row));
    }
    for column in FIGURES {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn cells(row: &ComparedRow) -> [String; HEADER.len()] {
    let dash = || "-".to_owned();
    let first = |text: String| if row.primary { text } else { String::new() };
    let figure = |value: Option<f64>| value.map_or_else(dash, |value| row.metric.show(value));
    let range = |Interval { low, high }| format!("{low:.3} to {high:.3}");
    [
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
