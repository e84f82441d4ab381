//! From the fields of a definition to its [`Shape`]: which fields a shape has a use for, and what each may be.

use std::fs;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use toml::Spanned;

use super::{
    DefinitionError, Source, WireBind, WireDistribution, WireRange, WireShape, WireWorkload,
};
use crate::bind::UNIQUE;
use crate::{Bind, Distribution, Draw, Method, PgType, Query, Shape};

/// Longest body of the shape `text`, in bytes: a typing mistake should not become a gigabyte.
const LONGEST_BODY_BYTES: usize = 16 << 20;
/// Most rows that a request asks for by their ids: a URL has to hold them.
const MOST_ROWS: usize = 500;

/// # Errors
/// A field that the shape has no use for, one that it lacks, or one that it cannot use.
pub(super) fn read(
    source: &Source<'_>,
    wire: &WireWorkload,
    queries: &Path,
) -> Result<Shape, DefinitionError> {
    let fields = Fields {
        source,
        wire,
        queries,
    };
    fields.allow()?;
    match wire.shape.get_ref() {
        WireShape::Text => Ok(Shape::Text {
            body: fields.body()?,
        }),
        WireShape::Greeting => Ok(Shape::Greeting {
            greeting: fields.text()?.get_ref().clone(),
        }),
        WireShape::Item => Ok(Shape::Item {
            sql: fields.sql()?,
            id: fields.param("id")?,
        }),
        WireShape::Items => Ok(Shape::Items {
            sql: fields.sql()?,
            id: fields.param("id")?,
            count: fields.count(&fields.param("id")?)?,
        }),
        WireShape::ItemsAtOnce => Ok(Shape::ItemsAtOnce {
            sql: fields.sql()?,
            id: fields.param("id")?,
            count: fields.count(&fields.param("id")?)?,
        }),
        WireShape::Delay => Ok(Shape::Delay { sql: fields.sql()? }),
        WireShape::Held => Ok(Shape::Held { sql: fields.sql()? }),
        WireShape::Free => Ok(Shape::Free {
            wait_ms: fields.wait_ms()?,
        }),
        WireShape::Fortunes => Ok(Shape::Fortunes { sql: fields.sql()? }),
        WireShape::Feed => Ok(Shape::Feed {
            sql: fields.sql()?,
            before: fields.param("before")?,
        }),
        WireShape::Order => {
            let [item, owner, comments] = fields.statements()?;
            Ok(Shape::Order {
                item,
                owner,
                comments,
                id: fields.param("id")?,
            })
        }
        WireShape::Transfer => fields.transfer(),
        WireShape::Create => Ok(Shape::Create(fields.query(Method::Post)?)),
        WireShape::Table => Ok(Shape::Table(fields.query(Method::Get)?)),
        WireShape::Export => Ok(Shape::Export(fields.query(Method::Get)?)),
        // Its parts are looked up when every definition has been read.
        WireShape::Mix => match wire.mix {
            Some(_) => Ok(Shape::Mix { parts: Vec::new() }),
            None => Err(fields.lacks("`[mix]`, workloads with their weights")),
        },
        WireShape::Live => Ok(Shape::Live {
            channel: fields.channel()?,
        }),
    }
}

/// The text of a file of statements, without its last `;`.
pub(super) fn statement(
    source: &Source<'_>,
    name: &Spanned<String>,
    queries: &Path,
) -> Result<String, DefinitionError> {
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

/// The optional fields that shapes have a use for, and their parameters.
fn uses(shape: WireShape) -> (&'static [&'static str], &'static [&'static str]) {
    match shape {
        WireShape::Text => (&["body", "body_bytes"], &[]),
        WireShape::Greeting => (&["body"], &[]),
        WireShape::Item => (&["sql"], &["id"]),
        WireShape::Items | WireShape::ItemsAtOnce => (&["sql", "count"], &["id"]),
        WireShape::Delay | WireShape::Held | WireShape::Fortunes => (&["sql"], &[]),
        WireShape::Free => (&["wait_ms"], &[]),
        WireShape::Feed => (&["sql"], &["before"]),
        WireShape::Order => (&["sql"], &["id"]),
        WireShape::Transfer => (&["sql"], &["account", "amount_cents"]),
        WireShape::Create | WireShape::Table => (&["sql", "method", "bind"], &[]),
        WireShape::Export => (&["sql", "bind"], &[]),
        WireShape::Mix => (&["mix"], &[]),
        WireShape::Live => (&["channel"], &[]),
    }
}

/// One definition's fields.
struct Fields<'a> {
    source: &'a Source<'a>,
    wire: &'a WireWorkload,
    queries: &'a Path,
}

impl Fields<'_> {
    /// A field without a use is refused rather than ignored.
    fn allow(&self) -> Result<(), DefinitionError> {
        let wire = self.wire;
        let (fields, params) = uses(*wire.shape.get_ref());
        let given = [
            ("sql", wire.sql.as_ref().map(Spanned::span)),
            ("body", wire.body.as_ref().map(Spanned::span)),
            ("body_bytes", wire.body_bytes.as_ref().map(Spanned::span)),
            ("count", wire.count.as_ref().map(Spanned::span)),
            ("wait_ms", wire.wait_ms.as_ref().map(Spanned::span)),
            ("method", wire.method.as_ref().map(Spanned::span)),
            ("channel", wire.channel.as_ref().map(Spanned::span)),
            ("mix", wire.mix.as_ref().map(Spanned::span)),
            ("bind", wire.bind.as_ref().map(Spanned::span)),
        ];
        for (field, span) in given {
            if span.is_some() && !fields.contains(&field) {
                let message = format!("the shape given has no use for `{field}`; remove it");
                return Err(self.source.refuse(span, message));
            }
        }
        for (name, value) in &wire.params {
            if !params.contains(&name.as_str()) {
                let message = match params {
                    [] => format!(
                        "unknown parameter `{name}`; the shape given takes none in `[params]`"
                    ),
                    names => format!(
                        "unknown parameter `{name}`; the shape given takes `{}`",
                        names.join("`, `")
                    ),
                };
                return Err(self.source.refuse(Some(value.span()), message));
            }
        }
        Ok(())
    }

    fn refuse(&self, span: Range<usize>, message: impl Into<String>) -> DefinitionError {
        self.source.refuse(Some(span), message)
    }

    fn lacks(&self, what: &str) -> DefinitionError {
        let message = format!("this shape needs {what}");
        self.refuse(self.wire.shape.span(), message)
    }

    fn text(&self) -> Result<&Spanned<String>, DefinitionError> {
        let body = self
            .wire
            .body
            .as_ref()
            .ok_or_else(|| self.lacks("`body`"))?;
        match body.get_ref().is_empty() {
            true => Err(self.refuse(body.span(), "`body` is empty")),
            false => Ok(body),
        }
    }

    fn body(&self) -> Result<Bytes, DefinitionError> {
        let body = self.text()?;
        let text = body.get_ref();
        let Some(length) = &self.wire.body_bytes else {
            return Ok(Bytes::from(text.clone()));
        };
        if !(1..=LONGEST_BODY_BYTES).contains(length.get_ref()) {
            let message = format!(
                "`body_bytes` is {}; it may be 1 to {LONGEST_BODY_BYTES}",
                length.get_ref()
            );
            return Err(self.refuse(length.span(), message));
        }
        if !text.is_ascii() {
            let message =
                "a `body` repeated to `body_bytes` must be ASCII, lest a character be cut";
            return Err(self.refuse(body.span(), message));
        }
        Ok(text.bytes().cycle().take(*length.get_ref()).collect())
    }

    fn sql(&self) -> Result<String, DefinitionError> {
        self.statements().map(|[sql]| sql)
    }

    /// The statements of a file: each but the last ends with a `;` at the end of its line.
    fn statements<const N: usize>(&self) -> Result<[String; N], DefinitionError> {
        let sql = match &self.wire.sql {
            Some(name) => statement(self.source, name, self.queries)?,
            None => return Err(self.lacks("`sql`, the name of a file with its statement")),
        };
        let statements: Vec<String> = sql
            .split(";\n")
            .map(|statement| statement.trim().to_owned())
            .collect();
        let found = statements.len();
        statements.try_into().map_err(|_| {
            let span = self.wire.sql.as_ref().map_or(0..0, Spanned::span);
            let message = format!(
                "the file has {found} statement(s), this shape takes {N}; each ends with a `;` at the end of a line"
            );
            self.refuse(span, message)
        })
    }

    fn param(&self, name: &str) -> Result<Distribution, DefinitionError> {
        match self.wire.params.get(name) {
            Some(wire) => self.distribution(wire),
            None => Err(self.lacks(&format!(
                "the parameter `{name}`, such as `[params]` `{name} = {{ uniform = {{ from = 1, to = 100 }} }}`"
            ))),
        }
    }

    fn count(&self, of: &Distribution) -> Result<usize, DefinitionError> {
        let count = self.wire.count.as_ref();
        let count = count.ok_or_else(|| self.lacks("`count`, how many rows a request asks for"))?;
        self.distinct(count, of)
    }

    /// A number of distinct values that a distribution can give.
    fn distinct(
        &self,
        count: &Spanned<usize>,
        of: &Distribution,
    ) -> Result<usize, DefinitionError> {
        // Distinct values of a skewed distribution take many draws when few are left.
        let most = MOST_ROWS.min(of.population() / 2).max(1);
        match (1..=most).contains(count.get_ref()) {
            true => Ok(*count.get_ref()),
            false => Err(self.refuse(
                count.span(),
                format!("`count` may be 1 to {most} distinct values of this range"),
            )),
        }
    }

    fn wait_ms(&self) -> Result<u32, DefinitionError> {
        match &self.wire.wait_ms {
            Some(wait) if (1..=10_000).contains(wait.get_ref()) => Ok(*wait.get_ref()),
            Some(wait) => Err(self.refuse(wait.span(), "`wait_ms` may be 1 to 10000")),
            None => Err(self.lacks("`wait_ms`, how long the server waits")),
        }
    }

    /// It goes into a statement, since LISTEN takes no parameter.
    fn channel(&self) -> Result<String, DefinitionError> {
        let Some(channel) = &self.wire.channel else {
            return Err(self.lacks("`channel`, the name that NOTIFY uses"));
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let name = channel.get_ref();
        match !name.is_empty() && name.len() < 64 && name.chars().all(plain) {
            true => Ok(name.clone()),
            false => Err(self.refuse(
                channel.span(),
                "`channel` has 1 to 63 characters of a-z, 0-9 and `_`",
            )),
        }
    }

    fn transfer(&self) -> Result<Shape, DefinitionError> {
        let [lock, update, record] = self.statements()?;
        let account = self.param("account")?;
        if account.population() < 2 {
            let span = self.wire.params.get("account").map_or(0..0, Spanned::span);
            return Err(self.refuse(span, "a transfer takes two accounts at least"));
        }
        Ok(Shape::Transfer {
            lock,
            update,
            record,
            account,
            amount_cents: self.param("amount_cents")?,
        })
    }

    fn query(&self, usual: Method) -> Result<Query, DefinitionError> {
        let method = self
            .wire
            .method
            .as_ref()
            .map_or(usual, |given| *given.get_ref());
        let is_create = *self.wire.shape.get_ref() == WireShape::Create;
        if let (true, Some(given)) = (is_create && method == Method::Get, &self.wire.method) {
            return Err(self.refuse(given.span(), "what is created is not got; use POST or PUT"));
        }
        let mut binds: Vec<Bind> = Vec::new();
        for wire in self.wire.bind.iter().flat_map(|binds| binds.get_ref()) {
            let bind = self.bind(wire.get_ref(), wire.span(), method)?;
            if binds.iter().any(|earlier| earlier.name == bind.name) {
                let message = format!("the parameter `{}` is there already", bind.name);
                return Err(self.refuse(wire.get_ref().name.span(), message));
            }
            binds.push(bind);
        }
        Ok(Query {
            method,
            sql: self.sql()?,
            binds,
        })
    }

    fn bind(
        &self,
        wire: &WireBind,
        span: Range<usize>,
        method: Method,
    ) -> Result<Bind, DefinitionError> {
        let name = wire.name.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            let message =
                format!("`{name}` cannot be a parameter's name; use letters, digits and `_`");
            return Err(self.refuse(wire.name.span(), message));
        }
        let pg_type = PgType::from_name(wire.pg_type.get_ref())
            .map_err(|error| self.refuse(wire.pg_type.span(), error.to_string()))?;
        let bind = Bind {
            name: name.clone(),
            pg_type,
            draw: self.draw(wire, span.clone(), method)?,
        };
        match bind.check(method) {
            Ok(()) => Ok(bind),
            Err(error) => Err(self.refuse(span, error.to_string())),
        }
    }

    fn draw(
        &self,
        wire: &WireBind,
        span: Range<usize>,
        method: Method,
    ) -> Result<Draw, DefinitionError> {
        let WireBind {
            draw,
            format,
            count,
            choice,
            unique,
            repeats,
            ..
        } = wire;
        let mut others = choice.iter().flat_map(|choice| choice.get_ref());
        if others.any(|text| text.contains(UNIQUE)) {
            let message = "`{n}` stands for a number in `unique` alone";
            return Err(self.refuse(span, message));
        }
        match (draw, format, count, choice, unique, repeats) {
            (Some(draw), None, None, None, None, None) => {
                Ok(Draw::Number(self.distribution(draw)?))
            }
            (Some(draw), Some(format), None, None, None, None) => {
                let once = format.get_ref().matches("{}").count() == 1;
                if !once || format.get_ref().contains(UNIQUE) {
                    let message = "`format` holds `{}` once, where the number goes, and no `{n}`";
                    return Err(self.refuse(format.span(), message));
                }
                Ok(Draw::Formatted(
                    self.distribution(draw)?,
                    format.get_ref().clone(),
                ))
            }
            (Some(draw), None, Some(count), None, None, None) => {
                let distribution = self.distribution(draw)?;
                let count = self.distinct(count, &distribution)?;
                Ok(Draw::Numbers(distribution, count))
            }
            (None, None, None, Some(choice), None, None) if !choice.get_ref().is_empty() => {
                Ok(Draw::Choice(choice.get_ref().clone()))
            }
            (None, None, None, None, Some(unique), repeats) => {
                let once = unique.get_ref().matches(UNIQUE).count() == 1;
                if !once || method == Method::Get {
                    let message = "`unique` holds `{n}` once, where the number goes, and needs a method with a body";
                    return Err(self.refuse(unique.span(), message));
                }
                let percent = repeats.as_ref().map_or(0, |repeats| *repeats.get_ref());
                if percent > 100 {
                    return Err(self.refuse(span, "`repeats` is a percentage, 0 to 100"));
                }
                Ok(Draw::Unique {
                    text: unique.get_ref().clone(),
                    repeats: percent,
                })
            }
            _ => Err(self.refuse(
                span,
                "a parameter is drawn by one of `draw` (with `format` or `count`, perhaps), `choice` with at least one \
                 text, and `unique` (with `repeats`, perhaps)",
            )),
        }
    }

    fn distribution(
        &self,
        wire: &Spanned<WireDistribution>,
    ) -> Result<Distribution, DefinitionError> {
        let refuse = |message: String| Err(self.refuse(wire.span(), message));
        let (WireDistribution::Uniform(WireRange { from, to })
        | WireDistribution::Zipf { from, to, .. }) = *wire.get_ref();
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
            WireDistribution::Uniform(_) => Ok(Distribution::Uniform {
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
}
