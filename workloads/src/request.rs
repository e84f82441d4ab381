//! The requests of a workload, drawn from its distributions.

use serde::{Deserialize, Serialize};

use crate::bind::{Drawn, UNIQUE, distinct, json_object};
use crate::{Bind, Distribution, Query, Shape, Workload};

/// The HTTP methods a workload may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// One distinct request of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    pub method: Method,
    /// With its query.
    pub path: String,
    /// JSON; only where the method has a body.
    pub body: Option<String>,
    pub args: Args,
    /// Which of [`Workload::parts`] it belongs to.
    pub part: usize,
}

impl Request {
    /// Whether each time it is sent it is another: it holds [`UNIQUE`].
    pub fn is_unique(&self) -> bool {
        self.path.contains(UNIQUE) || self.body.as_ref().is_some_and(|body| body.contains(UNIQUE))
    }
}

/// What the statements of a request are given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Args {
    None,
    Id(i32),
    Ids(Vec<i32>),
    Transfer(TransferBody),
    /// In PostgreSQL's text form, in the order of the parameters.
    Texts(Vec<String>),
}

/// The body of a request of the shape `transfer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferBody {
    pub from: i32,
    pub to: i32,
    pub amount_cents: i32,
}

impl Workload {
    /// The workloads that requests belong to: a mix has several, any other has itself.
    pub fn parts(&self) -> Vec<&Workload> {
        match &self.shape {
            Shape::Mix { parts } => parts.iter().map(|(part, _)| part).collect(),
            _ => vec![self],
        }
    }

    /// `count` requests drawn from the workload's distributions. The same seed gives the same requests.
    pub fn draw(&self, count: usize, seed: u64) -> Vec<Request> {
        let drawn = |mut sampler: crate::Sampler, args: &dyn Fn(&mut crate::Sampler) -> Args| {
            let request = |_| self.with_args(args(&mut sampler));
            (0..count).map(request).collect()
        };
        match &self.shape {
            Shape::Text { .. }
            | Shape::Greeting { .. }
            | Shape::Delay { .. }
            | Shape::Held { .. }
            | Shape::Free { .. }
            | Shape::Fortunes { .. }
            | Shape::Live { .. } => vec![self.with_args(Args::None); count],
            Shape::Item { id, .. } | Shape::Feed { before: id, .. } | Shape::Order { id, .. } => {
                drawn(id.sampler(seed), &|ids| Args::Id(ids.draw()))
            }
            Shape::Items { id, count, .. } | Shape::ItemsAtOnce { id, count, .. } => {
                drawn(id.sampler(seed), &|ids| {
                    let first = ids.draw();
                    Args::Ids(distinct(first, ids, *count))
                })
            }
            Shape::Transfer {
                account,
                amount_cents,
                ..
            } => self.draw_transfers(count, seed, account, amount_cents),
            Shape::Create(query) | Shape::Table(query) | Shape::Export(query) => {
                self.draw_binds(count, seed, query)
            }
            Shape::Mix { parts } => draw_mix(count, seed, parts),
        }
    }

    /// How many distinct requests the workload can make; nothing where that is not to be told.
    pub fn population(&self) -> Option<usize> {
        match &self.shape {
            Shape::Text { .. }
            | Shape::Greeting { .. }
            | Shape::Delay { .. }
            | Shape::Held { .. }
            | Shape::Free { .. }
            | Shape::Fortunes { .. }
            | Shape::Live { .. } => Some(1),
            Shape::Item { id, .. } | Shape::Feed { before: id, .. } | Shape::Order { id, .. } => {
                Some(id.population())
            }
            Shape::Create(query) | Shape::Table(query) | Shape::Export(query) => {
                query.binds.iter().map(Bind::population).product()
            }
            Shape::Items { .. }
            | Shape::ItemsAtOnce { .. }
            | Shape::Transfer { .. }
            | Shape::Mix { .. } => None,
        }
    }

    fn draw_transfers(
        &self,
        count: usize,
        seed: u64,
        account: &Distribution,
        amount_cents: &Distribution,
    ) -> Vec<Request> {
        let mut accounts = account.sampler(seed);
        let mut amounts = amount_cents.sampler(seed.wrapping_add(1));
        let mut transfer = || {
            let from = accounts.draw();
            // The definition's validation sees to it that there are two.
            let to = accounts.draw_other(|account| account == from);
            Args::Transfer(TransferBody {
                from,
                to,
                amount_cents: amounts.draw(),
            })
        };
        (0..count).map(|_| self.with_args(transfer())).collect()
    }

    fn draw_binds(&self, count: usize, seed: u64, query: &Query) -> Vec<Request> {
        let mut values: Vec<_> = query
            .binds
            .iter()
            .zip(0..)
            .map(|(bind, place)| bind.values(seed.wrapping_add(place)))
            .collect();
        let mut request = || {
            let drawn: Vec<Drawn> = values.iter_mut().map(|values| values.draw()).collect();
            self.with_binds(query, &drawn)
        };
        (0..count).map(|_| request()).collect()
    }

    fn with_binds(&self, query: &Query, drawn: &[Drawn]) -> Request {
        let given = || query.binds.iter().zip(drawn);
        let (path, body) = match query.method {
            Method::Get => {
                let mut encoded = form_urlencoded::Serializer::new(String::new());
                for (bind, drawn) in given() {
                    encoded.append_pair(&bind.name, &drawn.text);
                }
                let encoded = encoded.finish();
                let question_mark = if encoded.is_empty() { "" } else { "?" };
                (format!("/{}{question_mark}{encoded}", self.name), None)
            }
            _ => (format!("/{}", self.name), Some(json_object(given()))),
        };
        Request {
            method: query.method,
            path,
            body,
            args: Args::Texts(drawn.iter().map(|drawn| drawn.text.clone()).collect()),
            part: 0,
        }
    }

    fn with_args(&self, args: Args) -> Request {
        let name = &self.name;
        let (method, path, body) = match &args {
            Args::None | Args::Texts(_) => (Method::Get, format!("/{name}"), None),
            Args::Id(id) => (Method::Get, format!("/{name}/{id}"), None),
            Args::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
                (Method::Get, format!("/{name}/{}", ids.join(",")), None)
            }
            Args::Transfer(body) => {
                let TransferBody {
                    from,
                    to,
                    amount_cents,
                } = body;
                let body = format!(r#"{{"from":{from},"to":{to},"amount_cents":{amount_cents}}}"#);
                (Method::Post, format!("/{name}"), Some(body))
            }
        };
        Request {
            method,
            path,
            body,
            args,
            part: 0,
        }
    }
}

/// The parts take turns as their weights say, at random: the mix of a short window is that of a long one only if nobody
/// could guess what comes next.
fn draw_mix(count: usize, seed: u64, parts: &[(Workload, u32)]) -> Vec<Request> {
    let total: u32 = parts.iter().map(|(_, weight)| weight).sum();
    let tickets = Distribution::Uniform {
        from: 1,
        to: i32::try_from(total).unwrap_or(i32::MAX),
    };
    let mut tickets = tickets.sampler(seed);
    let part_of = |ticket: u32| {
        let mut left = ticket;
        parts.iter().position(|(_, weight)| {
            let here = left <= *weight;
            left = left.saturating_sub(*weight);
            here
        })
    };
    let turns: Vec<usize> = (0..count)
        .map(|_| part_of(tickets.draw().unsigned_abs()).unwrap_or(0))
        .collect();
    let mut drawn: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(part, (workload, _))| {
            let turns = turns.iter().filter(|&&turn| turn == part).count();
            // Each from a seed of its own: with one, a read and a write of the same ids would take turns. A workload's
            // own parameters have the seeds that follow one another.
            let seed = seed.wrapping_add((part as u64 + 1) << 32);
            workload.draw(turns, seed).into_iter()
        })
        .collect();
    let request = |&part: &usize| {
        Some(Request {
            part,
            ..drawn[part].next()?
        })
    };
    turns.iter().filter_map(request).collect()
}
