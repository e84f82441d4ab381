//! The answers that are right, derived from the database by the harness itself.
//!
//! PostgreSQL's own `row_to_json` makes the JSON, so the derivation shares no code with any server's encoder.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use load::{Expect, ExpectBody, RequestTable, body_hash};
use postgres::types::Type;
use workloads::{Request, Shape, Workload};

use crate::database::connection::connect;

/// How many requests are drawn; they are sent in this order, over and over.
const DRAWN: usize = 4096;

/// The requests of one workload with the right answer of each.
#[derive(Debug)]
pub struct Answers {
    /// Distinct requests, in the order of their first draw.
    pub distinct: Vec<(Request, Bytes)>,
    /// The drawn sequence, as indices into `distinct`.
    pub order: Vec<u32>,
    /// How long one statement holds its connection by its own account: the shape `delay` answers with it.
    pub delay_ms: Option<f64>,
    media_type: &'static str,
}

impl Answers {
    /// Draws the workload's requests and asks the database at `url` for their answers.
    ///
    /// # Errors
    /// The database does not answer, or lacks a row that the workload asks for.
    pub fn derive(workload: &Workload, url: &str, seed: u64) -> Result<Answers> {
        let mut distinct = Vec::new();
        let mut index_of = HashMap::new();
        let mut order = Vec::with_capacity(DRAWN);
        for request in workload.draw(DRAWN, seed) {
            let index = *index_of.entry(request.clone()).or_insert_with(|| {
                distinct.push(request);
                distinct.len() - 1
            });
            order.push(u32::try_from(index)?);
        }
        let bodies = bodies(workload, &distinct, url)
            .with_context(|| format!("workload `{}`", workload.name))?;
        let delay_ms = match workload.shape {
            Shape::Delay { .. } => bodies.first().and_then(|body| waited_ms(body)),
            Shape::Text { .. } | Shape::Item { .. } => None,
        };
        let distinct = distinct.into_iter().zip(bodies).collect();
        Ok(Answers {
            distinct,
            order,
            delay_ms,
            media_type: workload.shape.media_type(),
        })
    }

    /// For verification: every body byte for byte.
    ///
    /// # Errors
    /// A path that is no HTTP.
    pub fn exact(&self) -> Result<Arc<RequestTable>> {
        let requests = self.requests(|body| ExpectBody::Exact(body.to_vec()));
        Ok(Arc::new(RequestTable::in_turn(requests)?))
    }

    /// For the window: every body by length and hash.
    ///
    /// # Errors
    /// As [`Answers::exact`].
    pub fn hashed(&self) -> Result<Arc<RequestTable>> {
        let requests = self.requests(|body| ExpectBody::Hash(body_hash(body)));
        Ok(Arc::new(RequestTable::new(requests, self.order.clone())?))
    }

    fn requests(&self, expect_body: impl Fn(&Bytes) -> ExpectBody) -> Vec<load::Request> {
        let requests = self.distinct.iter().map(|(request, body)| {
            let expect = Expect {
                media_type: Some(self.media_type.to_owned()),
                length: Some(body.len() as u64),
                body: expect_body(body),
                ..Expect::status(200)
            };
            load::Request {
                expect,
                ..load::Request::get(&request.path)
            }
        });
        requests.collect()
    }
}

fn waited_ms(body: &[u8]) -> Option<f64> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    answer["waited_ms"].as_f64().filter(|delay| *delay > 0.0)
}

fn bodies(workload: &Workload, requests: &[Request], url: &str) -> Result<Vec<Bytes>> {
    let (sql, types) = match &workload.shape {
        Shape::Text { body } => return Ok(vec![body.clone(); requests.len()]),
        Shape::Item { sql, .. } => (sql, &[Type::INT4][..]),
        Shape::Delay { sql } => (sql, &[][..]),
    };
    let mut client = connect(url)?;
    let as_json = format!("SELECT row_to_json(answer)::text FROM ({sql}) AS answer");
    let statement = client
        .prepare_typed(&as_json, types)
        .context("its statement is refused")?;
    requests
        .iter()
        .map(|request| {
            let row = match &request.id {
                Some(id) => client.query_opt(&statement, &[id]),
                None => client.query_opt(&statement, &[]),
            };
            match row.with_context(|| format!("the answer to {}", request.path))? {
                Some(row) => Ok(Bytes::from(row.try_get::<_, String>(0)?)),
                None => bail!(
                    "the database has no row for {}; is it seeded at a smaller scale than the definition's range?",
                    request.path
                ),
            }
        })
        .collect()
}
