//! From files to [`Workload`]s: wire types that refuse unknown fields, one validation, and errors that name the
//! file and the line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bytes::Bytes;
use serde::Deserialize;
use toml::Spanned;

use crate::{Distribution, Expectation, Shape, Workload};

/// Longest body of the shape `text`, in bytes: a typing mistake should not become a gigabyte.
const LONGEST_BODY_BYTES: usize = 16 << 20;

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
        let workloads = files
            .iter()
            .map(|file| read_definition(file, queries))
            .collect::<Result<Vec<_>, _>>()?;
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
    #[serde(default)]
    params: BTreeMap<String, Spanned<WireDistribution>>,
    expect: Spanned<WireExpectation>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireShape {
    Text,
    Item,
    Delay,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum WireDistribution {
    Uniform { from: i64, to: i64 },
    Zipf { from: i64, to: i64, exponent: f64 },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireExpectation {
    statements: u32,
    transactions: u32,
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

fn read_definition(file: &Path, queries: &Path) -> Result<Workload, DefinitionError> {
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
    Ok(Workload {
        name,
        about: wire.about.get_ref().trim().to_owned(),
        shape: shape_of(&source, &wire, queries)?,
        expect: expectation_of(&source, &wire)?,
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

fn shape_of(
    source: &Source<'_>,
    wire: &WireWorkload,
    queries: &Path,
) -> Result<Shape, DefinitionError> {
    match wire.shape.get_ref() {
        WireShape::Text => {
            allow(
                source,
                wire,
                Allowed {
                    sql: false,
                    body: true,
                    params: &[],
                },
            )?;
            Ok(Shape::Text {
                body: body_of(source, wire)?,
            })
        }
        WireShape::Item => {
            allow(
                source,
                wire,
                Allowed {
                    sql: true,
                    body: false,
                    params: &["id"],
                },
            )?;
            let Some(id) = wire.params.get("id") else {
                let message = "the shape `item` needs the parameter `id`, such as `[params]` `id = { uniform = { from = 1, to = 100 } }`";
                return Err(source.refuse(Some(wire.shape.span()), message));
            };
            Ok(Shape::Item {
                sql: sql_of(source, wire, queries)?,
                id: distribution_of(source, id)?,
            })
        }
        WireShape::Delay => {
            allow(
                source,
                wire,
                Allowed {
                    sql: true,
                    body: false,
                    params: &[],
                },
            )?;
            Ok(Shape::Delay {
                sql: sql_of(source, wire, queries)?,
            })
        }
    }
}

/// Which of the optional fields a shape has a use for. One without a use is refused rather than ignored.
struct Allowed {
    sql: bool,
    body: bool,
    params: &'static [&'static str],
}

fn allow(
    source: &Source<'_>,
    wire: &WireWorkload,
    allowed: Allowed,
) -> Result<(), DefinitionError> {
    let given = [
        ("sql", allowed.sql, wire.sql.as_ref().map(Spanned::span)),
        ("body", allowed.body, wire.body.as_ref().map(Spanned::span)),
        (
            "body_bytes",
            allowed.body,
            wire.body_bytes.as_ref().map(Spanned::span),
        ),
    ];
    for (field, has_use, span) in given {
        if span.is_some() && !has_use {
            return Err(source.refuse(
                span,
                format!("the shape given has no use for `{field}`; remove it"),
            ));
        }
    }
    for (name, value) in &wire.params {
        if !allowed.params.contains(&name.as_str()) {
            let message = match allowed.params {
                [] => format!("unknown parameter `{name}`; the shape given takes none"),
                names => format!(
                    "unknown parameter `{name}`; the shape given takes `{}`",
                    names.join("`, `")
                ),
            };
            return Err(source.refuse(Some(value.span()), message));
        }
    }
    Ok(())
}

fn body_of(source: &Source<'_>, wire: &WireWorkload) -> Result<Bytes, DefinitionError> {
    let Some(body) = &wire.body else {
        return Err(source.refuse(Some(wire.shape.span()), "the shape `text` needs `body`"));
    };
    let text = body.get_ref();
    if text.is_empty() {
        return Err(source.refuse(Some(body.span()), "`body` is empty"));
    }
    let Some(length) = &wire.body_bytes else {
        return Ok(Bytes::from(text.clone()));
    };
    if !(1..=LONGEST_BODY_BYTES).contains(length.get_ref()) {
        let message = format!(
            "`body_bytes` is {}; it may be 1 to {LONGEST_BODY_BYTES}",
            length.get_ref()
        );
        return Err(source.refuse(Some(length.span()), message));
    }
    if !text.is_ascii() {
        let message = "a `body` repeated to `body_bytes` must be ASCII, lest a character be cut";
        return Err(source.refuse(Some(body.span()), message));
    }
    Ok(text.bytes().cycle().take(*length.get_ref()).collect())
}

fn sql_of(
    source: &Source<'_>,
    wire: &WireWorkload,
    queries: &Path,
) -> Result<String, DefinitionError> {
    let Some(name) = &wire.sql else {
        return Err(source.refuse(
            Some(wire.shape.span()),
            "this shape needs `sql`, the name of a file with its statement",
        ));
    };
    let plain_name = Path::new(name.get_ref())
        .file_name()
        .is_some_and(|file| file == name.get_ref().as_str());
    if !plain_name {
        let message = format!(
            "`sql` is `{}`; it must be a file's name, without a folder",
            name.get_ref()
        );
        return Err(source.refuse(Some(name.span()), message));
    }
    let file = queries.join(name.get_ref());
    let text = fs::read_to_string(&file).map_err(|error| {
        source.refuse(
            Some(name.span()),
            format!("cannot read {}: {error}", file.display()),
        )
    })?;
    let statement = text.trim().trim_end_matches(';').trim_end();
    if statement.is_empty() {
        return Err(source.refuse(
            Some(name.span()),
            format!("{} holds no statement", file.display()),
        ));
    }
    Ok(statement.to_owned())
}

fn distribution_of(
    source: &Source<'_>,
    wire: &Spanned<WireDistribution>,
) -> Result<Distribution, DefinitionError> {
    let refuse = |message: String| Err(source.refuse(Some(wire.span()), message));
    let (from, to) = match *wire.get_ref() {
        WireDistribution::Uniform { from, to } | WireDistribution::Zipf { from, to, .. } => {
            (from, to)
        }
    };
    if from > to {
        return refuse(format!(
            "the range {from} to {to} is empty; `from` must not be above `to`"
        ));
    }
    let (Ok(narrow_from), Ok(narrow_to)) = (i32::try_from(from), i32::try_from(to)) else {
        return refuse(format!(
            "the range {from} to {to} does not fit a PostgreSQL integer (1 to {})",
            i32::MAX
        ));
    };
    if narrow_from < 1 {
        return refuse(format!("the range {from} to {to} starts below 1"));
    }
    match *wire.get_ref() {
        WireDistribution::Uniform { .. } => Ok(Distribution::Uniform {
            from: narrow_from,
            to: narrow_to,
        }),
        WireDistribution::Zipf { exponent, .. } if exponent.is_finite() && exponent > 0.0 => {
            Ok(Distribution::Zipf {
                from: narrow_from,
                to: narrow_to,
                exponent,
            })
        }
        WireDistribution::Zipf { exponent, .. } => {
            refuse(format!("`exponent` is {exponent}; it must be above 0"))
        }
    }
}

fn expectation_of(
    source: &Source<'_>,
    wire: &WireWorkload,
) -> Result<Expectation, DefinitionError> {
    let WireExpectation {
        statements,
        transactions,
    } = *wire.expect.get_ref();
    let has_statement = wire.sql.is_some();
    if has_statement != (statements > 0) || has_statement != (transactions > 0) {
        let message = if has_statement {
            "`statements` and `transactions` must be at least 1 where there is `sql`"
        } else {
            "`statements` and `transactions` must be 0 where there is no `sql`"
        };
        return Err(source.refuse(Some(wire.expect.span()), message));
    }
    Ok(Expectation {
        statements,
        transactions,
    })
}
