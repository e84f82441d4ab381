//! What PostgreSQL itself says a request's answer is.
//!
//! Its own `row_to_json` makes the JSON, and its own parser reads the parameters, so that the derivation shares no code
//! with any server's driver, decoder or encoder. What a writing statement answers is found in a transaction that is
//! rolled back.

use std::collections::HashMap;
use std::error::Error;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};
use workloads::{
    ADDED_FORTUNE, Args, Method, PROBLEM, Query, Request, Shape, TransferBody, UNIQUE,
    UNIQUE_DIGITS, Workload,
};

use super::Answer;
use crate::database::connection::connect;

/// What a `create` answers where the row is there already.
const EXISTS: &str =
    r#"{"detail":"it exists already","status":409,"title":"Conflict","type":"about:blank"}"#;

/// A session that asks for answers.
pub(super) struct Deriver {
    client: Client,
    prepared: HashMap<String, Statement>,
    /// Of statements with one `int4`, by its value: what is asked for in lists is asked for again and again.
    by_id: HashMap<(String, i32), Vec<String>>,
}

impl Deriver {
    pub(super) fn connect(url: &str) -> Result<Deriver> {
        let mut client = connect(url)?;
        client.batch_execute("SET timezone = 'UTC'")?;
        Ok(Deriver {
            client,
            prepared: HashMap::new(),
            by_id: HashMap::new(),
        })
    }

    /// Every answer that is right.
    pub(super) fn answers(
        &mut self,
        workload: &Workload,
        request: &Request,
    ) -> Result<Vec<Answer>> {
        let right = |rows: u64, body: String| Answer {
            status: 200,
            media_type: workload.shape.media_type(),
            body: Bytes::from(body),
            rows,
        };
        let answer = match (&workload.shape, &request.args) {
            (Shape::Text { body }, _) => Answer {
                body: body.clone(),
                ..right(0, String::new())
            },
            (Shape::Greeting { greeting }, _) => right(0, self.greeting(greeting)?),
            (Shape::Free { wait_ms }, _) => right(0, format!(r#"{{"waited_ms":{wait_ms}}}"#)),
            (Shape::Delay { sql } | Shape::Held { sql }, _) => right(1, self.one(sql, &[])?),
            (Shape::Item { sql, .. }, Args::Id(id)) => right(1, self.of_id(sql, *id)?),
            (Shape::Items { sql, .. }, Args::Ids(ids)) => {
                let items = ids.iter().map(|id| self.of_id(sql, *id));
                let items: Vec<String> = items.collect::<Result<_>>()?;
                right(items.len() as u64, array(&items))
            }
            (Shape::ItemsAtOnce { sql, .. }, Args::Ids(ids)) => {
                let items = self.rows(sql, &[(Type::INT4_ARRAY, literal(ids))])?;
                right(items.len() as u64, array(&items))
            }
            (Shape::Feed { sql, .. }, Args::Id(before)) => {
                let entries = self.rows(sql, &[int4(*before)])?;
                right(entries.len() as u64, array(&entries))
            }
            (Shape::Fortunes { sql }, _) => {
                let (rows, page) = self.fortunes(sql)?;
                right(rows, page)
            }
            (
                Shape::Order {
                    item,
                    owner,
                    comments,
                    ..
                },
                Args::Id(id),
            ) => {
                let (rows, order) = self.order([item, owner, comments], *id)?;
                right(rows, order)
            }
            (Shape::Transfer { record, .. }, Args::Transfer(body)) => {
                // Two rows are locked, two changed, and one is recorded.
                right(5, self.transfer(record, body)?)
            }
            (Shape::Table(query), Args::Texts(texts)) => {
                let rows = self.of_query(query, texts)?;
                right(rows.len() as u64, array(&rows))
            }
            (Shape::Export(query), Args::Texts(texts)) => {
                let rows = self.of_query(query, texts)?;
                right(
                    rows.len() as u64,
                    rows.iter().map(|row| format!("{row}\n")).collect(),
                )
            }
            (Shape::Create(query), Args::Texts(texts)) => return self.create(query, texts, right),
            (shape, args) => bail!("the shape `{}` has no request with {args:?}", shape.name()),
        };
        Ok(vec![answer])
    }

    fn greeting(&mut self, greeting: &str) -> Result<String> {
        self.one(
            "SELECT $1 AS greeting",
            &[(Type::TEXT, greeting.to_owned())],
        )
    }

    fn create(
        &mut self,
        query: &Query,
        texts: &[String],
        right: impl Fn(u64, String) -> Answer,
    ) -> Result<Vec<Answer>> {
        let number = "0".repeat(usize::from(UNIQUE_DIGITS));
        let texts: Vec<String> = texts
            .iter()
            .map(|text| text.replace(UNIQUE, &number))
            .collect();
        let rows = self.of_query(query, &texts)?;
        let [row] = rows.as_slice() else {
            bail!(
                "the statement gave {} rows for a row that is not there yet; it must return one",
                rows.len()
            );
        };
        let created = Answer {
            status: 201,
            ..right(1, row.clone())
        };
        let conflict = Answer {
            status: 409,
            media_type: PROBLEM,
            ..right(0, EXISTS.to_owned())
        };
        Ok(vec![created, conflict])
    }

    fn transfer(&mut self, record: &str, body: &TransferBody) -> Result<String> {
        let TransferBody {
            from,
            to,
            amount_cents,
        } = *body;
        let rows = self.rolled_back(record, &[int4(from), int4(to), int4(amount_cents)])?;
        only(rows)
    }

    /// The page by string functions alone, ordered by the bytes of the messages.
    fn fortunes(&mut self, sql: &str) -> Result<(u64, String)> {
        let page = format!(
            "WITH fortunes AS ({sql}\n), listed AS (SELECT id, message FROM fortunes UNION ALL SELECT 0, $1)
             SELECT '<tr><td>' || id || '</td><td>' || replace(replace(replace(replace(replace(
                 message, '&', '&#38;'), '<', '&#60;'), '>', '&#62;'), '\"', '&#34;'), '''', '&#39;') || '</td></tr>'
             FROM listed ORDER BY message COLLATE \"C\""
        );
        let rows = self.ask(&page, &[(Type::TEXT, ADDED_FORTUNE.to_owned())])?;
        let body = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fortunes</title></head>\
             <body><table><tr><th>id</th><th>message</th></tr>{}</table></body></html>",
            rows.concat()
        );
        Ok((rows.len() as u64 - 1, body))
    }

    fn order(&mut self, [item, owner, comments]: [&String; 3], id: i32) -> Result<(u64, String)> {
        let item = self.of_id(item, id)?;
        let fields: serde_json::Value = serde_json::from_str(&item)?;
        let owner_id = fields["owner_id"]
            .as_i64()
            .context("the item has no owner_id")?;
        let owner = self.of_id(owner, i32::try_from(owner_id)?)?;
        let comments = self.rows(comments, &[int4(id)])?;
        let body = format!(
            "{},\"owner\":{owner},\"comments\":{}}}",
            item.strip_suffix('}').unwrap_or(&item),
            array(&comments)
        );
        Ok((2 + comments.len() as u64, body))
    }

    fn of_query(&mut self, query: &Query, texts: &[String]) -> Result<Vec<String>> {
        let types = query.binds.iter().map(|bind| {
            let oid = bind.pg_type.oid();
            Type::from_oid(oid).with_context(|| format!("the type with the OID {oid}"))
        });
        let types: Vec<Type> = types.collect::<Result<_>>()?;
        let params: Vec<_> = types.into_iter().zip(texts.iter().cloned()).collect();
        match query.method {
            Method::Get => self.rows(&query.sql, &params),
            _ => self.rolled_back(&query.sql, &params),
        }
    }

    fn of_id(&mut self, sql: &str, id: i32) -> Result<String> {
        let key = (sql.to_owned(), id);
        if let Some(rows) = self.by_id.get(&key) {
            return only(rows.clone());
        }
        let rows = self.rows(sql, &[int4(id)])?;
        self.by_id.insert(key, rows.clone());
        only(rows)
    }

    fn one(&mut self, sql: &str, params: &[(Type, String)]) -> Result<String> {
        only(self.rows(sql, params)?)
    }

    fn rolled_back(&mut self, sql: &str, params: &[(Type, String)]) -> Result<Vec<String>> {
        self.client.batch_execute("BEGIN")?;
        let rows = self.rows(sql, params);
        self.client.batch_execute("ROLLBACK")?;
        rows
    }

    /// The rows of a statement, each as JSON.
    fn rows(&mut self, sql: &str, params: &[(Type, String)]) -> Result<Vec<String>> {
        let as_json =
            format!("WITH answer AS ({sql}\n) SELECT row_to_json(answer)::text FROM answer");
        self.ask(&as_json, params)
    }

    fn ask(&mut self, sql: &str, params: &[(Type, String)]) -> Result<Vec<String>> {
        let statement = match self.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let types: Vec<Type> = params.iter().map(|(kind, _)| kind.clone()).collect();
                let statement = self.client.prepare_typed(sql, &types);
                let statement = statement.context("its statement is refused")?;
                self.prepared.insert(sql.to_owned(), statement.clone());
                statement
            }
        };
        let texts: Vec<Text<'_>> = params.iter().map(|(_, text)| Text(text)).collect();
        let params: Vec<&(dyn ToSql + Sync)> = texts.iter().map(|text| text as _).collect();
        let rows = self.client.query(&statement, &params)?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

fn only(rows: Vec<String>) -> Result<String> {
    let count = rows.len();
    let [row]: [String; 1] = rows.try_into().map_err(|_| {
        let hint = match count {
            0 => "; is it seeded at a smaller scale than the definition's range?",
            _ => "",
        };
        anyhow::anyhow!("the database has {count} rows for it, where it takes one{hint}")
    })?;
    Ok(row)
}

fn array(rows: &[String]) -> String {
    format!("[{}]", rows.join(","))
}

fn int4(value: i32) -> (Type, String) {
    (Type::INT4, value.to_string())
}

fn literal(ids: &[i32]) -> String {
    let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
    format!("{{{}}}", ids.join(","))
}

/// A parameter in PostgreSQL's own text form, whatever its type.
#[derive(Debug)]
struct Text<'a>(&'a str);

impl ToSql for Text<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
