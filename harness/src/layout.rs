//! Tables of text: as wide as the terminal allows, with what matters picked out in colour.

use std::io::stdout;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};
use terminal_size::{Width, terminal_size_of};

/// What the reader's terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of a terminal; `None` where there is no limit.
    pub width: Option<usize>,
    pub colours: bool,
}

impl Look {
    /// For a file.
    pub const PLAIN: Look = Look {
        width: None,
        colours: false,
    };

    /// Of whoever reads stdout: limits and colours are a terminal's, and `NO_COLOR` is respected.
    pub fn of_stdout() -> Look {
        Look {
            width: terminal_size_of(stdout()).map(|(Width(width), _)| usize::from(width)),
            colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
        }
    }
}

/// A table's columns, each with whether it is text rather than a figure, and the names of those that can be done
/// without, the least important first.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    pub all: &'a [(&'a str, bool)],
    pub dispensable: &'a [&'a str],
}

/// The table, one line a row; where it is too wide, without the columns that can be done without, and with a line that
/// says which. Never wraps a row.
pub fn lay_out(columns: Columns<'_>, rows: &[Vec<String>], look: Look) -> String {
    let mut shown: Vec<usize> = (0..columns.all.len()).collect();
    let mut left_out: Vec<&str> = Vec::new();
    let mut dispensable = columns.dispensable.iter();
    let mut text = plain(columns, &shown, rows);
    while look.width.is_some_and(|width| widest(&text) > width) {
        let Some(name) = dispensable.next() else {
            break;
        };
        shown.retain(|&column| columns.all[column].0 != *name);
        left_out.push(name);
        text = plain(columns, &shown, rows);
    }
    if look.colours {
        text = coloured(columns, &text, rows);
    }
    if !left_out.is_empty() {
        text.push_str(&format!(
            "\nleft out for want of width: {}",
            left_out.join(", ")
        ));
    }
    text
}

fn plain(columns: Columns<'_>, shown: &[usize], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(shown.iter().map(|&column| columns.all[column].0));
    for row in rows {
        let cell = |&column: &usize| row.get(column).map_or("", String::as_str);
        table.add_row(shown.iter().map(cell));
    }
    for (column, &index) in table.column_iter_mut().zip(shown) {
        if !columns.all[index].1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

/// After the layout, so that escapes take no room: the header, each server's name, and each verdict.
fn coloured(columns: Columns<'_>, text: &str, rows: &[Vec<String>]) -> String {
    let place = |name| columns.all.iter().position(|(column, _)| *column == name);
    let (server, verdict) = (place("server"), place("verdict"));
    let cell = |row: &Vec<String>, column: Option<usize>| {
        column
            .and_then(|column| row.get(column).cloned())
            .unwrap_or_default()
    };
    let paint = |(line, row): (&str, &Vec<String>)| {
        let (name, verdict) = (cell(row, server), cell(row, verdict));
        let (line, end) = match line.strip_suffix(verdict.as_str()) {
            Some(line) => (line, painted(&verdict, of_verdict(&verdict))),
            None => (line, String::new()),
        };
        // The first cell is a figure or a rung, and could be found in no name's place.
        let first = row.first().map_or(0, |first| {
            line.find(first.as_str()).unwrap_or(0) + first.len()
        });
        match line[first..]
            .find(name.as_str())
            .filter(|_| !name.is_empty())
        {
            Some(at) => {
                let (before, after) = (&line[..first + at], &line[first + at + name.len()..]);
                format!(
                    "{before}{}{after}{end}",
                    painted(&name, Style::new().bold())
                )
            }
            None => format!("{line}{end}"),
        }
    };
    let mut lines = text.lines();
    let header = lines
        .next()
        .map(|line| painted(line, Style::new().dimmed()));
    let rows = lines.zip(rows).map(paint);
    header
        .into_iter()
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Good, bad, or to be looked at; others, such as a theory's row without one, as they are.
fn of_verdict(verdict: &str) -> Style {
    match verdict {
        "valid" => AnsiColor::Green.on_default(),
        "FAILED" => AnsiColor::Red.on_default().bold(),
        "INVALID" | "MISCONFIGURED" => AnsiColor::Yellow.on_default().bold(),
        _ => Style::new(),
    }
}

fn painted(text: &str, style: Style) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: Columns<'_> = Columns {
        all: &[
            ("conns", false),
            ("server", true),
            ("req/s", false),
            ("threads", false),
            ("RSS MiB", false),
            ("verdict", true),
        ],
        dispensable: &["RSS MiB", "threads"],
    };

    fn rows() -> Vec<Vec<String>> {
        let row = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        vec![
            row("8 deadpool 16249 2 6 valid"),
            vec![String::new(); 6],
            row("8 r2d2 10720 21 7 FAILED"),
        ]
    }

    fn wide(width: usize) -> String {
        let look = Look {
            width: Some(width),
            colours: false,
        };
        lay_out(COLUMNS, &rows(), look)
    }

    #[test]
    fn a_narrow_terminal_loses_the_least_important_columns_in_order_and_never_wraps() {
        let whole = lay_out(COLUMNS, &rows(), Look::PLAIN);
        assert_eq!(wide(widest(&whole)), whole);
        let narrower = wide(widest(&whole) - 1);
        assert!(
            narrower.ends_with("\nleft out for want of width: RSS MiB"),
            "{narrower}"
        );
        assert!(narrower.contains("threads") && !narrower.contains("RSS MiB  "));
        let narrow = wide(30);
        assert!(
            narrow.ends_with("left out for want of width: RSS MiB, threads"),
            "{narrow}"
        );
        // What is left cannot be done without.
        for text in [narrow, wide(1)] {
            assert_eq!(text.lines().count(), 1 + 3 + 1, "{text}");
            assert!(text.contains("r2d2") && text.contains("FAILED"));
        }
    }

    #[test]
    fn colours_take_no_room_and_say_nothing_new() {
        let look = Look {
            width: None,
            colours: true,
        };
        let text = lay_out(COLUMNS, &rows(), look);
        assert!(text.contains("\u{1b}[32mvalid\u{1b}[0m"), "{text:?}");
        assert!(
            text.contains("\u{1b}[31mFAILED\u{1b}[0m") || text.contains("31mFAILED"),
            "{text:?}"
        );
        assert!(text.contains("\u{1b}[1mr2d2\u{1b}[0m"), "{text:?}");
        let stripped = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(stripped, lay_out(COLUMNS, &rows(), Look::PLAIN));
    }
}
