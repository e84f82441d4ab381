//! From files to [`Workload`]s: wire types that refuse unknown fields, one validation, and errors that name the
//! file and the line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use toml::Spanned;

use crate::{Audit, Background, Expectation, Method, Shape, Workload};

mod shapes;

/// Every workload of a folder, ordered by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub workloads: Vec<Workload>,
}

/// A definition that cannot be used. Displays as one line: file, line, what is wrong, what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("{}: {message}", place(.file, *.line))]
    Refused {
        file: PathBuf,
        line: Option<usize>,
        message: String,
    },
    #[error("cannot read {}: {source}", .file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: no workload is defined here; a definition is a file <name>.toml", .folder.display())]
    Empty { folder: PathBuf },
}

fn place(file: &Path, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{}:{line}", file.display()),
        None => file.display().to_string(),
    }
}

impl Catalog {
    /// Reads every `<name>.toml` of `definitions`; a definition's `sql` names a file in `queries`.
    ///
    /// # Errors
    /// The first file, in the order of names, that cannot be read or is refused.
    pub fn read(definitions: &Path, queries: &Path) -> Result<Catalog, DefinitionError> {
        let mut files = toml_files(definitions)?;
        files.sort();
        let drafts = files
            .iter()
            .map(|file| read_definition(file, queries))
            .collect::<Result<Vec<_>, _>>()?;
        let workloads = linked(drafts)?;
        if workloads.is_empty() {
            return Err(DefinitionError::Empty {
                folder: definitions.to_owned(),
            });
        }
        Ok(Catalog { workloads })
    }

    pub fn find(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, DefinitionError> {
    let unreadable = |source| DefinitionError::Unreadable {
        file: folder.to_owned(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    Ok(paths)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWorkload {
    about: Spanned<String>,
    shape: Spanned<WireShape>,
    sql: Option<Spanned<String>>,
    body: Option<Spanned<String>>,
    /// The body is repeated to exactly this length.
    body_bytes: Option<Spanned<usize>>,
    /// How many rows a request asks for.
    count: Option<Spanned<usize>>,
    wait_ms: Option<Spanned<u32>>,
    method: Option<Spanned<Method>>,
    channel: Option<Spanned<String>>,
    /// Weights by workload.
    mix: Option<Spanned<BTreeMap<String, Spanned<u32>>>>,
    #[serde(default)]
    params: BTreeMap<String, Spanned<WireDistribution>>,
    bind: Option<Spanned<Vec<Spanned<WireBind>>>>,
    expect: Option<Spanned<WireExpectation>>,
    audit: Option<Spanned<WireAudit>>,
    background: Option<Spanned<WireBackground>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireShape {
    Text,
    Greeting,
    Item,
    Items,
    ItemsAtOnce,
    Delay,
    Held,
    Free,
    Fortunes,
    Feed,
    Order,
    Transfer,
    Create,
    Table,
    Export,
    Mix,
    Live,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum WireDistribution {
    Uniform(WireRange),
    Zipf { from: i64, to: i64, exponent: f64 },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRange {
    from: i64,
    to: i64,
}

/// A parameter of the shapes that take any statement. It has exactly one of `uniform`, `zipf`, `choice` and `unique`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireBind {
    name: Spanned<String>,
    #[serde(rename = "type")]
    pg_type: Spanned<String>,
    draw: Option<Spanned<WireDistribution>>,
    /// Text around the number, which goes in the place of `{}`.
    format: Option<Spanned<String>>,
    /// An array of so many distinct numbers, ascending.
    count: Option<Spanned<usize>>,
    choice: Option<Spanned<Vec<String>>>,
    /// A text with `{n}`, where a number goes that no other request has.
    unique: Option<Spanned<String>>,
    /// So many requests in a hundred have a text that others have had.
    repeats: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireExpectation {
    statements: u32,
    transactions: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireAudit {
    effects: Option<Spanned<String>>,
    violations: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireBackground {
    workload: Spanned<String>,
    connections: Spanned<usize>,
    /// The same workload without it.
    alone: Option<Spanned<String>>,
    /// Requests a second that are measured beside it, unless something else is asked for.
    rate: Option<Spanned<u32>>,
}

/// One file being read: what an error needs to say where it is.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn refuse(&self, span: Option<Range<usize>>, message: impl Into<String>) -> DefinitionError {
        let line = span.map(|span| {
            1 + self.text[..span.start.min(self.text.len())]
                .matches('\n')
                .count()
        });
        DefinitionError::Refused {
            file: self.file.to_owned(),
            line,
            message: message.into(),
        }
    }
}

/// A workload whose mention of others is not looked up yet.
struct Draft {
    workload: Workload,
    file: PathBuf,
    text: String,
    mix: Option<Spanned<BTreeMap<String, Spanned<u32>>>>,
    background: Option<Spanned<WireBackground>>,
}

fn read_definition(file: &Path, queries: &Path) -> Result<Draft, DefinitionError> {
    let text = read_text(file)?;
    let source = Source { file, text: &text };
    let wire: WireWorkload = toml::from_str(&text)
        .map_err(|error| source.refuse(error.span(), one_line(error.message())))?;
    let name = name_of(&source)?;
    if wire.about.get_ref().trim().is_empty() {
        return Err(source.refuse(
            Some(wire.about.span()),
            "`about` is empty; say in a sentence what the workload is",
        ));
    }
    let workload = Workload {
        name,
        about: wire.about.get_ref().trim().to_owned(),
        shape: shapes::read(&source, &wire, queries)?,
        expect: expectation_of(&source, &wire)?,
        audit: audit_of(&source, &wire, queries)?,
        background: None,
    };
    Ok(Draft {
        workload,
        file: file.to_owned(),
        mix: wire.mix,
        background: wire.background,
        text,
    })
}

/// Puts the workloads that others name in their places.
fn linked(drafts: Vec<Draft>) -> Result<Vec<Workload>, DefinitionError> {
    let plain: Vec<Workload> = drafts.iter().map(|draft| draft.workload.clone()).collect();
    let link = |draft: Draft| {
        let source = Source {
            file: &draft.file,
            text: &draft.text,
        };
        let mut workload = draft.workload;
        if let Some(mix) = &draft.mix {
            workload.shape = Shape::Mix {
                parts: parts_of(&source, mix, &plain)?,
            };
        }
        if let Some(background) = &draft.background {
            workload.background = Some(background_of(&source, background.get_ref(), &plain)?);
        }
        Ok(workload)
    };
    drafts.into_iter().map(link).collect()
}

fn parts_of(
    source: &Source<'_>,
    mix: &Spanned<BTreeMap<String, Spanned<u32>>>,
    plain: &[Workload],
) -> Result<Vec<(Workload, u32)>, DefinitionError> {
    let weights = mix.get_ref();
    if weights.len() < 2 {
        let message =
            "`mix` names at least two workloads with their weights, such as point-read = 99";
        return Err(source.refuse(Some(mix.span()), message));
    }
    let part = |(name, weight): (&String, &Spanned<u32>)| {
        if !(1..=10_000).contains(weight.get_ref()) {
            let message = format!("the weight of `{name}` may be 1 to 10000");
            return Err(source.refuse(Some(weight.span()), message));
        }
        let workload = named(source, name, weight.span(), plain)?;
        Ok((workload.clone(), *weight.get_ref()))
    };
    weights.iter().map(part).collect()
}

fn background_of(
    source: &Source<'_>,
    wire: &WireBackground,
    plain: &[Workload],
) -> Result<Background, DefinitionError> {
    let connections = *wire.connections.get_ref();
    if !(1..=10_000).contains(&connections) {
        let message = "`connections` of a background may be 1 to 10000";
        return Err(source.refuse(Some(wire.connections.span()), message));
    }
    let workload = named(source, wire.workload.get_ref(), wire.workload.span(), plain)?;
    let alone = wire.alone.as_ref().map(|alone| {
        let found = named(source, alone.get_ref(), alone.span(), plain)?;
        Ok(found.name.clone())
    });
    Ok(Background {
        workload: Box::new(workload.clone()),
        connections,
        alone: alone.transpose()?,
        rate: rate_of(source, wire)?,
    })
}

fn rate_of(source: &Source<'_>, wire: &WireBackground) -> Result<Option<u32>, DefinitionError> {
    match &wire.rate {
        Some(rate) if !(1..=1_000_000).contains(rate.get_ref()) => {
            Err(source.refuse(Some(rate.span()), "`rate` may be 1 to 1000000 a second"))
        }
        rate => Ok(rate.as_ref().map(|rate| *rate.get_ref())),
    }
}

/// A workload that another one names: one that can be requested by itself and waits for an answer.
fn named<'a>(
    source: &Source<'_>,
    name: &str,
    span: Range<usize>,
    plain: &'a [Workload],
) -> Result<&'a Workload, DefinitionError> {
    let fitting =
        |workload: &&Workload| !matches!(workload.shape, Shape::Mix { .. } | Shape::Live { .. });
    let fitting: Vec<&Workload> = plain.iter().filter(fitting).collect();
    let found = fitting.iter().find(|workload| workload.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = fitting
            .iter()
            .map(|workload| workload.name.as_str())
            .collect();
        let message = format!(
            "`{name}` is no workload to be used here; there are {}",
            names.join(", ")
        );
        source.refuse(Some(span), message)
    })
}

fn read_text(file: &Path) -> Result<String, DefinitionError> {
    fs::read_to_string(file).map_err(|source| DefinitionError::Unreadable {
        file: file.to_owned(),
        source,
    })
}

fn one_line(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The name becomes a path segment and a folder name, so it is kept to what needs no escaping in either.
fn name_of(source: &Source<'_>) -> Result<String, DefinitionError> {
    let stem = source
        .file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    // The front answers these itself.
    let reserved = ["about", "usage"];
    if stem.is_empty() || !stem.chars().all(plain) || reserved.contains(&stem) {
        let message = format!(
            "`{stem}` cannot be a workload's name; use a-z, 0-9 and `-`, and neither of {}",
            reserved.join(", ")
        );
        return Err(source.refuse(None, message));
    }
    Ok(stem.to_owned())
}

fn expectation_of(
    source: &Source<'_>,
    wire: &WireWorkload,
) -> Result<Expectation, DefinitionError> {
    let derived = matches!(wire.shape.get_ref(), WireShape::Mix | WireShape::Live);
    let Some(given) = &wire.expect else {
        let message = "`[expect]` is missing: how many `statements` and `transactions` a request is to PostgreSQL";
        return match derived {
            true => Ok(Expectation::default()),
            false => Err(source.refuse(Some(wire.shape.span()), message)),
        };
    };
    if derived {
        let message = "this shape has no `[expect]` of its own; remove it";
        return Err(source.refuse(Some(given.span()), message));
    }
    let WireExpectation {
        statements,
        transactions,
    } = *given.get_ref();
    let has_statement = wire.sql.is_some();
    if has_statement != (statements > 0) || has_statement != (transactions > 0) {
        let message = if has_statement {
            "`statements` and `transactions` must be at least 1 where there is `sql`"
        } else {
            "`statements` and `transactions` must be 0 where there is no `sql`"
        };
        return Err(source.refuse(Some(given.span()), message));
    }
    Ok(Expectation {
        statements,
        transactions,
    })
}

fn audit_of(
    source: &Source<'_>,
    wire: &WireWorkload,
    queries: &Path,
) -> Result<Audit, DefinitionError> {
    let Some(audit) = &wire.audit else {
        return Ok(Audit::default());
    };
    let WireAudit {
        effects,
        violations,
    } = audit.get_ref();
    if effects.is_none() && violations.is_none() {
        let message = "`[audit]` names a file as `effects`, as `violations`, or both";
        return Err(source.refuse(Some(audit.span()), message));
    }
    let read = |file: &Option<Spanned<String>>| {
        let text = file
            .as_ref()
            .map(|name| shapes::statement(source, name, queries));
        text.transpose()
    };
    Ok(Audit {
        effects: read(effects)?,
        violations: read(violations)?,
    })
}
