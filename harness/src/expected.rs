//! The answers that are right, derived from the database by the harness itself.

mod derive;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use load::{Expect, ExpectBody, RequestCounts, RequestTable, Unique, body_hash};
use workloads::{Expectation, Request, Shape, UNIQUE_DIGITS, Workload};

use crate::beside::Loop;
use derive::Deriver;

/// How many requests are drawn; they are sent in this order, over and over. Each distinct one is asked for before every
/// window, so there are fewer of those that cost more.
fn drawn(workload: &Workload) -> usize {
    let several = workload
        .parts()
        .iter()
        .any(|part| part.expect.statements > 1);
    if several || workload.writes() {
        1024
    } else {
        4096
    }
}

/// The requests of one workload with the right answers of each.
#[derive(Debug)]
pub struct Answers {
    /// Distinct requests, in the order of their first draw.
    pub distinct: Vec<Known>,
    /// The drawn sequence, as indices into `distinct`.
    pub order: Vec<u32>,
    /// How long one request waits by the workload's own account.
    pub delay: Option<Delay>,
    /// Of every request, where they are the same statements for all.
    pub statements_of_each: Option<u32>,
    /// What goes on beside the workload.
    pub beside: Option<Box<Loop>>,
}

/// A request, and what it may be answered.
#[derive(Debug)]
pub struct Known {
    pub request: Request,
    /// Never empty.
    pub answers: Vec<Answer>,
    pub expect: Expectation,
}

/// An answer that is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub media_type: &'static str,
    pub body: Bytes,
    /// Rows that its statements give or change.
    pub rows: u64,
}

/// A wait, and what it keeps busy meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delay {
    pub milliseconds: f64,
    pub holds: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A statement that waits.
    Statement,
    /// A connection without a statement.
    Connection,
    Nothing,
}

/// What requests should have cost the database: exactly `least`, and up to `most` if some of them got no right answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    pub statements: Bounds,
    pub rows: Bounds,
    pub transactions: Bounds,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub least: u64,
    pub most: u64,
}

impl Bounds {
    fn add(&mut self, certain: u64, uncertain: u64) {
        self.least += certain;
        self.most += certain + uncertain;
    }

    pub fn contains(self, count: u64) -> bool {
        (self.least..=self.most).contains(&count)
    }

    pub fn plus(self, other: Bounds) -> Bounds {
        Bounds {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }
}

impl Cost {
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            statements: self.statements.plus(other.statements),
            rows: self.rows.plus(other.rows),
            transactions: self.transactions.plus(other.transactions),
        }
    }
}

impl Answers {
    /// Draws the workload's requests and asks the database at `url` for their answers.
    ///
    /// # Errors
    /// The database does not answer, or lacks a row that the workload asks for.
    pub fn derive(workload: &Workload, url: &str, seed: u64) -> Result<Answers> {
        if matches!(workload.shape, Shape::Live { .. }) {
            bail!(
                "workload `{}` has subscribers rather than requests: `lanebench live {}` measures it",
                workload.name,
                workload.name
            );
        }
        let (requests, order) = distinct(workload.draw(drawn(workload), seed))?;
        let parts = workload.parts();
        let mut deriver = Deriver::connect(url)?;
        let mut known = |request: Request| {
            let part = parts[request.part];
            let answers = deriver
                .answers(part, &request)
                .with_context(|| format!("the answer to {}", request.path))?;
            Ok(Known {
                request,
                answers,
                expect: part.expect,
            })
        };
        let distinct = requests
            .into_iter()
            .map(&mut known)
            .collect::<Result<Vec<Known>>>()
            .with_context(|| format!("workload `{}`", workload.name))?;
        let beside = workload.background.as_ref().map(|background| {
            let workload = &background.workload;
            anyhow::Ok(Box::new(Loop {
                workload: workload.name.clone(),
                connections: background.connections,
                answers: Answers::derive(workload, url, seed)?,
            }))
        });
        Ok(Answers {
            delay: delay_of(workload, &distinct),
            statements_of_each: statements_of(&distinct)
                .filter(|_| parts.len() == 1 && beside.is_none()),
            distinct,
            order,
            beside: beside.transpose()?,
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

    /// What requests that were sent so often should have cost the database.
    pub fn cost(&self, counts: &[RequestCounts]) -> Cost {
        let mut cost = Cost::default();
        for (known, counts) in self.distinct.iter().zip(counts) {
            let (correct, uncertain) = (counts.correct.iter().sum::<u64>(), counts.uncertain());
            let each = |per_request: u32| u64::from(per_request);
            let statements = each(known.expect.statements);
            cost.statements
                .add(correct * statements, uncertain * statements);
            let transactions = each(known.expect.transactions);
            cost.transactions
                .add(correct * transactions, uncertain * transactions);
            let rows = known.answers.iter().map(|answer| answer.rows);
            let certain = rows
                .clone()
                .zip(&counts.correct)
                .map(|(rows, times)| rows * times);
            cost.rows
                .add(certain.sum(), uncertain * rows.max().unwrap_or(0));
        }
        cost
    }

    fn requests(&self, expect_body: impl Fn(&Bytes) -> ExpectBody) -> Vec<load::Request> {
        let expect = |answer: &Answer| Expect {
            media_type: Some(answer.media_type.to_owned()),
            length: Some(answer.body.len() as u64),
            body: expect_body(&answer.body),
            ..Expect::status(answer.status)
        };
        let requests = self.distinct.iter().map(|known| {
            let Request {
                method, path, body, ..
            } = &known.request;
            let mut accepted = known.answers.iter().map(&expect);
            let json = ("Content-Type".to_owned(), workloads::JSON.to_owned());
            load::Request {
                method: method.as_str().to_owned(),
                headers: body.iter().map(|_| json.clone()).collect(),
                body: body.clone().unwrap_or_default().into_bytes(),
                expect: accepted.next().unwrap_or_else(|| Expect::status(200)),
                or: accepted.collect(),
                unique: known.request.is_unique().then_some(Unique {
                    digits: UNIQUE_DIGITS,
                }),
                ..load::Request::get(path)
            }
        });
        requests.collect()
    }
}

/// The requests without those that come again, and the sequence as indices into them.
fn distinct(drawn: Vec<Request>) -> Result<(Vec<Request>, Vec<u32>)> {
    let mut distinct = Vec::new();
    let mut index_of = HashMap::new();
    let mut order = Vec::with_capacity(drawn.len());
    for request in drawn {
        let index = *index_of.entry(request.clone()).or_insert_with(|| {
            distinct.push(request);
            distinct.len() - 1
        });
        order.push(u32::try_from(index)?);
    }
    Ok((distinct, order))
}

fn delay_of(workload: &Workload, distinct: &[Known]) -> Option<Delay> {
    let holds = match workload.shape {
        Shape::Delay { .. } => Holds::Statement,
        Shape::Held { .. } => Holds::Connection,
        Shape::Free { .. } => Holds::Nothing,
        _ => return None,
    };
    let body = &distinct.first()?.answers.first()?.body;
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let milliseconds = answer["waited_ms"].as_f64().filter(|delay| *delay > 0.0)?;
    Some(Delay {
        milliseconds,
        holds,
    })
}

fn statements_of(distinct: &[Known]) -> Option<u32> {
    let first = distinct.first()?.expect.statements;
    let same = distinct
        .iter()
        .all(|known| known.expect.statements == first);
    same.then_some(first)
}
