//! One route a workload, by its shape, beside `/about` and `/usage`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody, PathRejection};
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use bytes::Bytes;
use workloads::{
    Catalog, Delay, EVENTS, FeedEntry, Fortune, Greeting, HTML, Item, JSON, Method, NDJSON, Query,
    Shape, TEXT, TransferBody,
};

use crate::app::App;
use crate::lane::{StatementId, Statements};
use crate::work::{
    Create, Export, FindItem, FindItems, FindItemsAtOnce, ListFortunes, Object, OrderStatements,
    ReadFeed, ReadOrder, Retry, Select, Transfer, TransferStatements, Wait,
};
use crate::{Failure, Lane, live, observe, parameters, streamed};

type Shared<L> = Arc<App<L>>;
type Id = Result<Path<i32>, PathRejection>;
type Ids = Result<Path<String>, PathRejection>;
type RequestBody = Result<Bytes, BytesRejection>;

/// The routes of a catalog, and the statements that their handlers name by place.
pub(crate) fn of<L: Lane>(catalog: &Catalog) -> (Router<Shared<L>>, Statements) {
    let mut statements = Statements::default();
    let mut router = Router::new();
    for workload in &catalog.workloads {
        let name = &workload.name;
        let plain = format!("/{name}");
        let with_id = format!("/{name}/{{id}}");
        let mut add = |sql: &str| statements.add(sql);
        router = match &workload.shape {
            Shape::Text { body } => router.route(&plain, text(body.clone())),
            Shape::Greeting { greeting } => router.route(&plain, greet(greeting.clone())),
            Shape::Item { sql, .. } => router.route(&with_id, item(add(sql))),
            Shape::Items { sql, .. } => router.route(&with_id, items(add(sql))),
            Shape::ItemsAtOnce { sql, .. } => router.route(&with_id, items_at_once(add(sql))),
            Shape::Delay { sql } => router.route(&plain, delay(add(sql), false)),
            Shape::Held { sql } => router.route(&plain, delay(add(sql), true)),
            Shape::Free { wait_ms } => router.route(&plain, free(*wait_ms)),
            Shape::Fortunes { sql } => router.route(&plain, fortunes(add(sql))),
            Shape::Feed { sql, .. } => router.route(&with_id, feed(add(sql))),
            Shape::Order {
                item,
                owner,
                comments,
                ..
            } => {
                let statements = OrderStatements {
                    item: add(item),
                    owner: add(owner),
                    comments: add(comments),
                };
                router.route(&with_id, order(statements))
            }
            Shape::Transfer {
                lock,
                update,
                record,
                ..
            } => {
                let statements = TransferStatements {
                    lock: add(lock),
                    update: add(update),
                    record: add(record),
                };
                router.route(&plain, transfer(statements))
            }
            Shape::Create(query) => router.route(&plain, create(add(&query.sql), query)),
            Shape::Table(query) => router.route(&plain, table(add(&query.sql), query)),
            Shape::Export(query) => router.route(&plain, export(add(&query.sql), query)),
            Shape::Live { channel } => router.route(&plain, subscribe(channel.as_str().into())),
            Shape::Mix { .. } => router,
        };
    }
    let router = router
        .route("/about", get(observe::about::<L>))
        .route("/usage", get(observe::usage::<L>))
        .fallback(async |State(app): State<Shared<L>>| app.fail(Failure::NoRoute))
        .method_not_allowed_fallback(async |State(app): State<Shared<L>>| {
            app.fail(Failure::WrongMethod)
        });
    (router, statements)
}

fn text<L: Lane>(body: Bytes) -> MethodRouter<Shared<L>> {
    get(async move || answer(TEXT, body))
}

fn greet<L: Lane>(greeting: String) -> MethodRouter<Shared<L>> {
    get(async move || {
        let greeting = Greeting {
            greeting: &greeting,
        };
        answer(JSON, greeting.encode())
    })
}

fn item<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, id: Id| {
        let found = async {
            let id = valid(id)?;
            let encode = |item: Option<Item>| Ok(item.ok_or(Failure::Absent)?.encode());
            app.ask_the_database(FindItem { statement, id }, encode)
                .await
        };
        reply(&app, JSON, found.await)
    })
}

fn items<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, ids: Ids| {
        let found = async {
            let ids = valid_list(ids)?;
            let encode =
                |items: Option<Vec<Item>>| Ok(Item::encode_all(&items.ok_or(Failure::Absent)?));
            app.ask_the_database(FindItems { statement, ids }, encode)
                .await
        };
        reply(&app, JSON, found.await)
    })
}

fn items_at_once<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, ids: Ids| {
        let found = async {
            let ids = valid_list(ids)?;
            let encode = |items: Vec<Item>| Ok(Item::encode_all(&items));
            app.ask_the_database(FindItemsAtOnce { statement, ids }, encode)
                .await
        };
        reply(&app, JSON, found.await)
    })
}

fn delay<L: Lane>(statement: StatementId, in_server: bool) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>| {
        let wait = Wait {
            statement,
            in_server,
        };
        let waited = app.ask_the_database(wait, |delay| Ok(delay.encode())).await;
        reply(&app, JSON, waited)
    })
}

/// It takes no place: a full database is no reason to refuse what does not use it.
fn free<L: Lane>(wait_ms: u32) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>| {
        let waited = app.lane.wait(Duration::from_millis(wait_ms.into())).await;
        let delay = Delay {
            waited_ms: i32::try_from(wait_ms).unwrap_or(i32::MAX),
        };
        reply(&app, JSON, waited.map(|()| delay.encode()))
    })
}

fn fortunes<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>| {
        let encode = |fortunes| Ok(Fortune::page(fortunes)?);
        let page = app.ask_the_database(ListFortunes(statement), encode).await;
        reply(&app, HTML, page)
    })
}

fn feed<L: Lane>(statement: StatementId) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, before: Id| {
        let found = async {
            let before = valid(before)?;
            let encode = |entries: Vec<FeedEntry>| Ok(FeedEntry::encode_all(&entries));
            app.ask_the_database(ReadFeed { statement, before }, encode)
                .await
        };
        reply(&app, JSON, found.await)
    })
}

fn order<L: Lane>(statements: OrderStatements) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>, id: Id| {
        let found = async {
            let id = valid(id)?;
            app.ask_the_database(ReadOrder { statements, id }, |order| {
                Ok(order.ok_or(Failure::Absent)?.encode())
            })
            .await
        };
        reply(&app, JSON, found.await)
    })
}

fn transfer<L: Lane>(statements: TransferStatements) -> MethodRouter<Shared<L>> {
    const FORM: &str =
        r#"such as {"from":1,"to":2,"amount_cents":500}, of two accounts and an amount above 0"#;
    post(
        async move |State(app): State<Shared<L>>, body: RequestBody| {
            let transferred = async {
                let body: TransferBody =
                    serde_json::from_slice(&received(body)?).map_err(|_| Failure::BadBody(FORM))?;
                if body.from == body.to || body.amount_cents < 1 {
                    return Err(Failure::BadBody(FORM));
                }
                let transfer = Retry {
                    work: Transfer { statements, body },
                    retries: Arc::clone(&app.retries),
                };
                app.ask_the_database(transfer, |transferred| Ok(transferred.encode()))
                    .await
            };
            reply(&app, JSON, transferred.await)
        },
    )
}

fn create<L: Lane>(statement: StatementId, query: &Query) -> MethodRouter<Shared<L>> {
    let binds: Arc<[_]> = query.binds.clone().into();
    let create = async move |State(app): State<Shared<L>>, body: RequestBody| {
        let created = async {
            let values = parameters::of_body(&binds, &received(body)?)?;
            let encode = |object: Option<Object>| Ok(object.ok_or(Failure::Exists)?.0);
            app.ask_the_database(Create { statement, values }, encode)
                .await
        };
        match created.await {
            Ok(object) => (StatusCode::CREATED, answer(JSON, object)).into_response(),
            Err(failure) => app.fail(failure),
        }
    };
    on(filter(query.method), create)
}

fn table<L: Lane>(statement: StatementId, query: &Query) -> MethodRouter<Shared<L>> {
    let (binds, method): (Arc<[_]>, _) = (query.binds.clone().into(), query.method);
    let select = async move |State(app): State<Shared<L>>, url: RawQuery, body: RequestBody| {
        let selected = async {
            let values = match method {
                Method::Get => parameters::of_url(&binds, url.0.as_deref().unwrap_or_default())?,
                _ => parameters::of_body(&binds, &received(body)?)?,
            };
            app.ask_the_database(Select { statement, values }, |table| {
                Ok(Bytes::from(table.encode()))
            })
            .await
        };
        reply(&app, JSON, selected.await)
    };
    on(filter(method), select)
}

fn export<L: Lane>(statement: StatementId, query: &Query) -> MethodRouter<Shared<L>> {
    let binds: Arc<[_]> = query.binds.clone().into();
    get(async move |State(app): State<Shared<L>>, url: RawQuery| {
        let values = parameters::of_url(&binds, url.0.as_deref().unwrap_or_default());
        let begun = match values {
            Ok(values) => {
                let export = |lines| Export {
                    statement,
                    values,
                    lines,
                };
                streamed::begin(&app, export).await
            }
            Err(failure) => Err(failure),
        };
        match begun {
            Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static(NDJSON))], body).into_response(),
            Err(failure) => app.refuse(failure),
        }
    })
}

fn subscribe<L: Lane>(channel: Arc<str>) -> MethodRouter<Shared<L>> {
    get(async move |State(app): State<Shared<L>>| {
        match live::subscribe(&app, &channel).await {
            Ok(body) => {
                let never_cached = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
                (never_cached, answer(EVENTS, body)).into_response()
            }
            // What became of the session has been noted.
            Err(failure) => app.refuse(failure),
        }
    })
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// Ids start at 1, as the definitions' ranges do.
fn valid(id: Id) -> Result<i32, Failure> {
    match id {
        Ok(Path(id)) if id >= 1 => Ok(id),
        Ok(_) | Err(_) => Err(Failure::BadId),
    }
}

/// Ids that are separated by commas.
fn valid_list(ids: Ids) -> Result<Vec<i32>, Failure> {
    let Ok(Path(ids)) = ids else {
        return Err(Failure::BadId);
    };
    let valid = |id: &str| id.parse().ok().filter(|id| *id >= 1).ok_or(Failure::BadId);
    ids.split(',').map(valid).collect()
}

fn received(body: RequestBody) -> Result<Bytes, Failure> {
    body.map_err(|rejection| match rejection {
        BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
            Failure::TooLarge
        }
        _ => Failure::ClientGone,
    })
}

fn reply<L: Lane>(
    app: &App<L>,
    media_type: &'static str,
    body: Result<impl Into<Body>, Failure>,
) -> Response {
    match body {
        Ok(body) => answer(media_type, body),
        Err(failure) => app.fail(failure),
    }
}

pub(crate) fn answer(media_type: &'static str, body: impl Into<Body>) -> Response {
    (
        [(CONTENT_TYPE, HeaderValue::from_static(media_type))],
        body.into(),
    )
        .into_response()
}
