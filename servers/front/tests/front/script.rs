//! What the database would have answered: rows by statement and parameters. A statement is a name here; what a request
//! meets is decided by its id.

use std::sync::atomic::{AtomicU32, Ordering};

use front::Failure;
use workloads::Value;

use crate::row::{Row, int4, null, number, row, text, value};

/// What a driver might say, which no client may ever see.
pub(crate) const DRIVER_TEXT: &str = "password authentication failed";

pub(crate) const CONFLICT: i32 = 409;
pub(crate) const ABSENT: i32 = 404;
pub(crate) const DATABASE: i32 = 500;
pub(crate) const NO_CONNECTION: i32 = 5030;
pub(crate) const CONNECTION_LOST: i32 = 5031;
pub(crate) const STATEMENT_TIMEOUT: i32 = 504;
/// An export of so many rows gives none, and does not end.
pub(crate) const SILENT: i32 = -1;
/// Somebody has this address already.
pub(crate) const TAKEN: &str = "taken@example.com";

/// The rows of a statement. `conflicts` updates are still to be ended for the sake of another transaction.
pub(crate) fn rows(
    statement: &str,
    params: &[Value],
    conflicts: &AtomicU32,
) -> Result<Vec<Row>, Failure> {
    match (statement, params) {
        ("item" | "order item", [id]) => Ok(item(number(id))?.into_iter().collect()),
        ("items at once", [ids]) => {
            let mut ids = listed(ids);
            ids.sort_unstable();
            let items = ids.into_iter().map(item).collect::<Result<Vec<_>, _>>()?;
            Ok(items.into_iter().flatten().collect())
        }
        ("ten ms" | "held", []) => Ok(vec![row([("waited_ms", int4(10))])]),
        ("fortunes", []) => Ok(fortunes()),
        ("feed", [before]) => Ok(feed(number(before))),
        ("order owner", [id]) => Ok(vec![row([("id", id.clone()), ("name", text("Zoë"))])]),
        ("order comments", [_]) => Ok(vec![comment(3, "“Bright”\n"), comment(9, "")]),
        ("transfer lock", [from, to]) => Ok([from, to]
            .into_iter()
            .filter(|account| number(account) != ABSENT)
            .map(|account| row([("id", account.clone()), ("balance_cents", int4(0))]))
            .collect()),
        ("transfer update", [_, _, _]) => transfer_update(conflicts),
        ("transfer record", [from, to, amount]) => Ok(vec![row([
            ("from_account", from.clone()),
            ("to_account", to.clone()),
            ("amount_cents", amount.clone()),
        ])]),
        ("signup", [email, _]) if email.to_text().as_deref() == Some(TAKEN) => Ok(Vec::new()),
        ("signup", [email, name]) => Ok(vec![row([
            ("email", email.clone()),
            ("name", name.clone()),
        ])]),
        ("table", [words, most, since]) => Ok(table(words, most, since)),
        ("empty", []) => Ok(Vec::new()),
        _ => panic!("no answer is known to {statement}{params:?}"),
    }
}

fn listed(ids: &Value) -> Vec<i32> {
    let listed = ids.to_text().unwrap();
    let listed = listed.trim_matches(['{', '}']).split(',');
    listed
        .map(|id| id.trim_matches('"').parse().unwrap())
        .collect()
}

fn item(id: i32) -> Result<Option<Row>, Failure> {
    match id {
        ABSENT => Ok(None),
        CONFLICT => Err(Failure::from_sqlstate("40001", DRIVER_TEXT)),
        DATABASE => Err(Failure::from_sqlstate("42P01", DRIVER_TEXT)),
        CONNECTION_LOST => Err(Failure::from_sqlstate("57P01", DRIVER_TEXT)),
        STATEMENT_TIMEOUT => Err(Failure::from_sqlstate("57014", DRIVER_TEXT)),
        NO_CONNECTION => Err(Failure::NoConnection),
        _ => Ok(Some(lamp(id))),
    }
}

fn lamp(id: i32) -> Row {
    row([
        ("id", int4(id)),
        ("owner_id", int4(7)),
        ("title", text("Lamp")),
        ("description", null("text")),
        ("price_cents", int4(1999)),
        ("stock", int4(3)),
    ])
}

/// In no order, as a table has none.
fn fortunes() -> Vec<Row> {
    let fortune = |id, message| row([("id", int4(id)), ("message", text(message))]);
    vec![
        fortune(2, "żółw"),
        fortune(3, "<script>alert(\"1\" & '2')</script>"),
        fortune(1, "A bad word"),
        fortune(4, "Zebra"),
    ]
}

/// Three entries below an id, or as many as there are.
fn feed(before: i32) -> Vec<Row> {
    let entry = |id| {
        row([
            ("id", int4(id)),
            ("title", text("Lamp")),
            ("price_cents", int4(1999)),
            (
                "created_at",
                value("timestamptz", "2025-01-02T03:04:05.678Z"),
            ),
            ("seller", text("Zoë")),
        ])
    };
    (1..before).rev().take(3).map(entry).collect()
}

fn comment(id: i32, body: &str) -> Row {
    row([("id", int4(id)), ("user_id", int4(8)), ("body", text(body))])
}

fn transfer_update(conflicts: &AtomicU32) -> Result<Vec<Row>, Failure> {
    let one_less = |left: u32| left.checked_sub(1);
    match conflicts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
        Ok(_) => Err(Failure::from_sqlstate("40001", DRIVER_TEXT)),
        Err(_) => Ok(Vec::new()),
    }
}

/// The parameters as they came, and a few types that no shape has of its own.
fn table(words: &Value, most: &Value, since: &Value) -> Vec<Row> {
    let first = row([
        ("words", words.clone()),
        ("most", most.clone()),
        ("since", since.clone()),
        ("price", value("numeric", "12.50")),
        ("tags", value("text[]", "{a,b}")),
    ]);
    let second = row([
        ("words", null("text")),
        ("most", null("int4")),
        ("since", null("timestamptz")),
        ("price", null("numeric")),
        ("tags", null("text[]")),
    ]);
    vec![first, second]
}

/// A row of the export, of about a kilobyte.
pub(crate) fn measurement(id: i32) -> Row {
    row([("id", int4(id)), ("label", text(&"x".repeat(1000)))])
}
