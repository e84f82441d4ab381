//! `report.md`: a campaign for a pull request. The answer and what speaks against it stand first; the rest is folded.

use std::fmt::Write;

use crate::campaign::Campaign;
use crate::report::scene::Scene;
use crate::report::tables::Table;
use crate::report::{facts, page, tables};
use crate::table;

/// What a reviewer looks at; the folded table has all columns.
const COMPACT: [&str; 13] = [
    "conns",
    "offered/s",
    "server",
    "req/s",
    "±",
    "achieved/s",
    "completed",
    "p50 ms",
    "p99 ms",
    "CPU µs/req",
    "threads",
    "RSS MiB",
    "verdict",
];

/// GitHub's flavour.
pub fn markdown(campaign: &Campaign) -> String {
    let scenes = Scene::all(campaign);
    let tables: Vec<Table> = scenes.iter().flat_map(tables::rows).collect();
    let mut text = String::new();
    answer(&mut text, campaign, &scenes);
    for table in &tables {
        let _ = writeln!(text, "**{}**\n", escaped(&table.caption));
        grid(&mut text, table, &|name| COMPACT.contains(&name));
    }
    let _ = writeln!(
        text,
        "`~`: fewer than 100 requests lie beyond this percentile in a trial; `-`: fewer than 10, or no figure; `*`: a block stands apart from the others.\n"
    );
    why_not_valid(&mut text, campaign);
    let _ = writeln!(text, "Measured on {}.\n", escaped(&surroundings(campaign)));
    let _ = writeln!(
        text,
        "Measure it again:\n\n{}\n",
        fenced(&facts::reproduce(campaign))
    );
    folded(&mut text, "All columns", |text| {
        for table in &tables {
            let _ = writeln!(text, "**{}**\n", escaped(&table.caption));
            grid(text, table, &|_| true);
        }
    });
    folded_list(&mut text, "Notes", &facts::notes(campaign));
    folded_list(
        &mut text,
        "What is not there, and why",
        &facts::absent(campaign, &scenes),
    );
    folded(&mut text, "Environment", |text| environment(text, campaign));
    text
}

fn answer(text: &mut String, campaign: &Campaign, scenes: &[Scene<'_>]) {
    let ladders = &campaign.plan.ladders;
    let workloads: Vec<&str> = ladders.iter().map(|of| of.workload.as_str()).collect();
    let question = page::question(campaign, &workloads);
    let _ = writeln!(text, "## {}\n", escaped(&question));
    if let Some(state) = page::state(campaign.state) {
        let _ = writeln!(text, "**{}**\n", escaped(state));
    }
    for answer in scenes.iter().flat_map(page::answers) {
        let _ = writeln!(text, "**{}**\n", escaped(&answer.heading));
        list(text, &answer.sentences);
    }
    let _ = writeln!(text, "{}\n", escaped(&page::verdicts(campaign)));
    if campaign.unpublishable.is_empty() {
        text.push_str("Nothing keeps this run from being published.\n\n");
    } else {
        text.push_str("What keeps this run from being publishable:\n\n");
        list(text, &campaign.unpublishable);
    }
}

fn why_not_valid(text: &mut String, campaign: &Campaign) {
    let ladders = campaign.plan.ladders.iter();
    let reasons: Vec<String> = ladders
        .flat_map(|ladder| table::tripped(campaign, &ladder.workload))
        .collect();
    if !reasons.is_empty() {
        text.push_str("Why rows are not valid:\n\n");
        list(text, &reasons);
    }
}

fn surroundings(campaign: &Campaign) -> String {
    let environment = &campaign.environment;
    let known =
        |of: &Option<String>, what: &str| of.clone().unwrap_or_else(|| format!("{what} not known"));
    let machine = if environment.virtual_machine {
        " of a virtual machine"
    } else {
        ""
    };
    let changed = if environment.git_dirty == Some(true) {
        ", with changes"
    } else {
        ""
    };
    format!(
        "{} CPUs{machine} ({}), Linux {}, PostgreSQL {}, {}, lanebench {} at commit {}{changed}; begun {}",
        environment.cpus,
        known(&environment.cpu_model, "model"),
        known(&environment.kernel, "kernel"),
        campaign.database.version,
        known(&environment.rustc, "rustc"),
        campaign.lanebench,
        known(&environment.git_commit, "commit"),
        campaign.started_at,
    )
}

fn environment(text: &mut String, campaign: &Campaign) {
    for (heading, facts) in facts::environment(campaign) {
        let _ = writeln!(text, "**{heading}**\n");
        let facts = facts.iter().map(|(name, what)| format!("{name}: {what}"));
        list(text, &facts.collect::<Vec<_>>());
    }
}

fn grid(text: &mut String, table: &Table, wanted: &dyn Fn(&str) -> bool) {
    let shown: Vec<usize> = (0..table.header.len())
        .filter(|&column| wanted(&table.header[column].text))
        .collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let is_text = |name: &str| matches!(name, "server" | "verdict");
    let rule = |&column: &usize| {
        if is_text(&table.header[column].text) {
            ":--"
        } else {
            "--:"
        }
    };
    let header = shown
        .iter()
        .map(|&column| escaped(&table.header[column].text));
    text.push_str(&line(header.collect()));
    text.push_str(&line(shown.iter().map(rule).map(str::to_owned).collect()));
    for row in &table.rows {
        let cell = |&column: &usize| {
            row.get(column)
                .map_or_else(String::new, |cell| escaped(&cell.text))
        };
        text.push_str(&line(shown.iter().map(cell).collect()));
    }
    text.push('\n');
}

fn list<S: AsRef<str>>(text: &mut String, items: &[S]) {
    for item in items {
        let _ = writeln!(text, "- {}", escaped(item.as_ref()));
    }
    text.push('\n');
}

fn folded_list(text: &mut String, summary: &str, items: &[String]) {
    if !items.is_empty() {
        folded(text, summary, |text| list(text, items));
    }
}

fn folded(text: &mut String, summary: &str, content: impl FnOnce(&mut String)) {
    let _ = writeln!(text, "<details><summary>{summary}</summary>\n");
    content(text);
    text.push_str("</details>\n\n");
}

/// As words that mean nothing to Markdown, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' => {
                escaped.extend(['\\', letter]);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// With a fence that the code has not in it.
fn fenced(code: &str) -> String {
    let mut fence = String::from("```");
    while code.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}sh\n{code}\n{fence}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::made_up::{self, closed, open, scatter};

    fn text() -> String {
        let servers = ["deadpool", "sq|lx<b>"];
        let mut made_up = made_up::campaign(
            &servers,
            &[closed(8), open(1_440.0)],
            6,
            &|server, rung, block| {
                let scatter = scatter(block + server, 0.01);
                if rung == 0 {
                    1e4 * (1.0 + server as f64) * scatter
                } else {
                    20.0 * scatter
                }
            },
        );
        made_up["unpublishable"] = json!(["3 blocks; at least 10 are wanted"]);
        for trial in made_up["trials"].as_array_mut().unwrap() {
            if trial["server"] == "deadpool" && trial["block"] == 2 {
                trial["verdict"] = json!("failed");
                trial["checks"] = json!([{ "code": "HTTP", "outcome": "tripped", "verdict": "failed", "figure": "3 of 9 | wrong" }]);
            }
        }
        markdown(&serde_json::from_value(made_up).unwrap())
    }

    #[test]
    fn the_answer_and_what_speaks_against_it_come_before_the_figures() {
        let text = text();
        let order = [
            "## deadpool (nonblocking), sq\\|lx\\<b\\> (nonblocking) with a pool of 16",
            "- At 8 connections sq\\|lx\\<b\\> answers ",
            "What keeps this run from being publishable:\n\n- 3 blocks; at least 10",
            "| conns | server | req/s | ± | p50 ms | p99 ms |",
            "Why rows are not valid:\n\n- deadpool FAILED at 8 connections, block 3: HTTP: 3 of 9 \\| wrong\n",
            "Measured on 2 CPUs (Made Up 9000), Linux 6.1, PostgreSQL 17.2, ",
            "```sh\ngit checkout 0123456789abcdef && cargo lanebench run point-read\n```",
            "<details><summary>All columns</summary>",
            "<details><summary>Environment</summary>",
        ];
        let mut from = 0;
        for part in order {
            let at = text[from..].find(part);
            from += at.unwrap_or_else(|| panic!("{part:?} is not there in its place:\n{text}"));
        }
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_header() {
        let text = text();
        let mut cells = None;
        for line in text.lines() {
            if !line.starts_with('|') {
                cells = None;
                continue;
            }
            let unescaped = line.replace("\\|", "");
            let count = unescaped.matches('|').count();
            assert_eq!(*cells.get_or_insert(count), count, "{line}");
        }
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
        assert!(!text.contains("<b>"));
    }

    #[test]
    fn a_command_with_a_fence_in_it_does_not_end_the_block() {
        assert_eq!(fenced("a ``` b"), "````sh\na ``` b\n````");
    }
}
