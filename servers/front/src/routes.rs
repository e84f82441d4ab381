//! One route a workload, by its shape, beside `/about` and `/usage`.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use workloads::{Catalog, Item, JSON, Shape, TEXT};

use crate::app::App;
use crate::lane::{StatementId, Statements};
use crate::{Failure, Lane, Laps, observe};

type Shared<L> = Arc<App<L>>;
type Id = Result<Path<i32>, PathRejection>;

/// The routes of a catalog, and the statements that their handlers name by place.
pub(crate) fn of<L: Lane>(catalog: &Catalog) -> (Router<Shared<L>>, Statements) {
    let mut statements = Statements::default();
    let mut router = Router::new();
    for workload in &catalog.workloads {
        let name = &workload.name;
        router = match &workload.shape {
            Shape::Text { body } => router.route(&format!("/{name}"), text(body.clone())),
            Shape::Item { sql, .. } => {
                router.route(&format!("/{name}/{{id}}"), item(statements.add(sql)))
            }
            Shape::Delay { sql } => router.route(&format!("/{name}"), delay(statements.add(sql))),
        };
    }
    let router = router
        .route("/about", get(observe::about::<L>))
        .route("/usage", get(observe::usage::<L>))
        .fallback(async |State(app): State<Shared<L>>| app.fail(Failure::NoRoute))
        .method_not_allowed_fallback(async |State(app): State<Shared<L>>| {
            app.fail(Failure::NotGet)
        });
    (router, statements)
}

fn text<L: Lane>(body: Bytes) -> MethodRouter<Shared<L>> {
    get(async move || answer(TEXT, body))
}

fn item<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, id: Id| {
        let found = find_item(&app, statement, id).await;
        found.map_or_else(|failure| app.fail(failure), |body| answer(JSON, body))
    })
}

async fn find_item<L: Lane>(
    app: &App<L>,
    statement: StatementId,
    id: Id,
) -> Result<Bytes, Failure> {
    let id = valid(id)?;
    let find = async |laps: &mut Laps| app.lane.item(statement, id, laps).await;
    let encode = |item: Option<Item>| Ok(item.ok_or(Failure::Absent)?.encode());
    app.ask_the_database(find, encode).await
}

fn delay<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>| {
        let wait = async |laps: &mut Laps| app.lane.delay(statement, laps).await;
        let waited = app.ask_the_database(wait, |delay| Ok(delay.encode())).await;
        waited.map_or_else(|failure| app.fail(failure), |body| answer(JSON, body))
    })
}

/// Ids start at 1, as the definitions' ranges do.
fn valid(id: Id) -> Result<i32, Failure> {
    match id {
        Ok(Path(id)) if id >= 1 => Ok(id),
        Ok(_) | Err(_) => Err(Failure::BadId),
    }
}

pub(crate) fn answer(media_type: &'static str, body: Bytes) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(media_type))], body).into_response()
}
