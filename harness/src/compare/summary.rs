//! The verdict of a table in a sentence: what is faster or slower, what is equivalent, and whether that is all.

use stats::Interval;

use super::comparison::ComparedRow;
use crate::sentences::words::listed;
use crate::verdicts::Design;

/// Of the primary metric of all pairs.
pub(super) fn of(rows: &[ComparedRow], design: Design) -> String {
    let primary: Vec<&ComparedRow> = rows.iter().filter(|row| row.primary).collect();
    let (decided, open): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
        primary.iter().partition(|row| row.faster || row.slower);
    let (equivalent, open): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
        open.into_iter().partition(|row| row.equivalent);
    let (unknown, told): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
        open.into_iter().partition(|row| row.ratio.is_none());
    let mut parts: Vec<String> = decided.iter().map(|row| claim(row, design)).collect();
    // What begins the sentence has a capital, unless it is a server's name.
    let either = |parts: &[String], first, later| if parts.is_empty() { first } else { later };
    if !equivalent.is_empty() {
        let lead = either(&parts, "Equivalent", "equivalent");
        parts.push(format!("{lead}: {}", places(&equivalent, design)));
    }
    if !told.is_empty() {
        let nothing = either(&parts, "Nothing", "nothing else");
        parts.push(format!("{nothing} can be told apart"));
    }
    if !unknown.is_empty() {
        let lead = either(&parts, "No comparison", "no comparison");
        parts.push(format!("{lead}: {}", places(&unknown, design)));
    }
    format!("{}.", parts.join("; "))
}

fn claim(row: &ComparedRow, design: Design) -> String {
    let verdict = if row.faster { "faster" } else { "slower" };
    let (subject, than) = match design {
        Design::Unpaired => (format!("A's {}", row.server), String::new()),
        Design::Paired => match row.server.split_once(" / ") {
            Some((a, b)) => (a.to_owned(), format!(" than {b}")),
            None => (row.server.clone(), String::new()),
        },
    };
    let ratio = row.ratio.unwrap_or(1.0);
    let range = row
        .interval
        .map_or_else(String::new, |Interval { low, high }| {
            format!(" ({low:.2} to {high:.2})")
        });
    let (rung, metric) = (row.rung, row.metric.name());
    format!("{subject} is {verdict}{than} at {rung}: {ratio:.2}{range} in {metric}")
}

/// Each with its server where there are several.
fn places(rows: &[&ComparedRow], design: Design) -> String {
    let place = |row: &&ComparedRow| match design {
        Design::Unpaired => format!("{} at {}", row.server, row.rung),
        // There is only one pair.
        Design::Paired => format!("at {}", row.rung),
    };
    listed(&rows.iter().map(place).collect::<Vec<_>>())
}
