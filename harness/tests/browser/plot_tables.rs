//! The tables that say the same as plots.

use crate::plots::near;
use crate::reading::{Plot, Series, Table};

/// Each line and each row of bars is a column; each x of them a row.
pub(crate) fn assert_same(plot: &Plot, table: &Table) {
    let columns = plot
        .series
        .iter()
        .filter(|series| ["line", "bar"].contains(&series.form.as_str()));
    let columns: Vec<&Series> = columns.collect();
    let names: Vec<String> = columns
        .iter()
        .map(|series| match series.dashed {
            true => format!("{} (dashed)", series.name),
            false => series.name.clone(),
        })
        .collect();
    assert_eq!(table.header[0], plot.x.name, "{}", plot.title);
    assert_eq!(table.header[1..], names, "{}", plot.title);
    for (column, series) in columns.iter().enumerate() {
        let cells = table.rows.iter().map(|row| (&row[0], &row[column + 1]));
        let cells = cells.filter(|(_, text)| *text != "-");
        let written: Vec<f64> = cells
            .map(|(place, text)| {
                let drawn = series
                    .points
                    .iter()
                    .find(|point| is_at(plot, place, point[0]));
                let drawn = drawn.unwrap_or_else(|| panic!("{}: nothing at {place}", plot.title));
                let shown: f64 = text.parse().unwrap();
                assert!(near(shown, drawn[1]), "{}: {text} at {place}", plot.title);
                shown
            })
            .collect();
        assert_eq!(
            written.len(),
            series.points.len(),
            "{}: {}",
            plot.title,
            series.name
        );
    }
}

/// Whether an x is what the first column of a row calls so.
fn is_at(plot: &Plot, place: &str, x: f64) -> bool {
    if !plot.x.steps.is_empty() {
        let step = plot.x.steps.get(x.round() as usize);
        return step.is_some_and(|step| step == place);
    }
    match place.strip_suffix(" %") {
        Some(percent) => near(percent.parse().unwrap(), 100.0 - 100.0 / x),
        None => near(place.parse().unwrap(), x),
    }
}
