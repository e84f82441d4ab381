//! The workloads' statements on the seeded shop: what they answer, that writes do not wait for each other in a circle, and
//! that the audits notice what they are there for.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;
use std::thread;

use harness::database::seed;
use postgres::types::ToSql;
use postgres::{Client, NoTls};
use support::TestDatabase;

/// The statements of a file in sql/queries.
fn statements(file: &str) -> Vec<String> {
    let path = format!("{}/../sql/queries/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text
        .trim()
        .split(";\n")
        .map(|part| part.trim_end_matches(';'));
    parts.map(str::to_owned).collect()
}

/// A query's rows in JSON, as the server is to answer them.
fn answers(client: &mut Client, file: &str, params: &[&(dyn ToSql + Sync)]) -> Vec<String> {
    let [statement] = &statements(file)[..] else {
        panic!("{file} holds more than a statement")
    };
    let as_json =
        format!("WITH answer AS ({statement}) SELECT row_to_json(answer)::text FROM answer");
    let rows = client.query(&as_json, params).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// What an audit finds.
fn violations(client: &mut Client, file: &str) -> Vec<String> {
    let rows = client.query(&statements(file)[0], &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn effects(client: &mut Client, file: &str) -> Vec<(String, i64)> {
    let rows = client.query(&statements(file)[0], &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn shop() -> TestDatabase {
    let database = TestDatabase::fresh();
    seed::ensure(
        &database.url,
        "0.01".parse().unwrap(),
        &AtomicBool::new(false),
    )
    .unwrap();
    database
}

fn transfer(client: &mut Client, from: i32, to: i32, amount_cents: i32) {
    let [lock, moving, record] = &statements("transfer.sql")[..] else {
        panic!("a transfer is three statements")
    };
    let mut transaction = client.transaction().unwrap();
    transaction.query(lock, &[&from, &to]).unwrap();
    transaction
        .execute(moving, &[&from, &to, &amount_cents])
        .unwrap();
    transaction
        .query_one(record, &[&from, &to, &amount_cents])
        .unwrap();
    transaction.commit().unwrap();
}

#[test]
fn every_statement_is_accepted_with_the_types_that_its_workload_binds() {
    let database = shop();
    let mut client = database.client();
    for (file, types) in [
        ("item.sql", vec!["int4"]),
        ("item-any.sql", vec!["_int4"]),
        ("ten-ms.sql", vec![]),
        ("held.sql", vec![]),
        ("fortunes.sql", vec![]),
        ("feed.sql", vec!["int4"]),
        ("search.sql", vec!["text"]),
        ("bump.sql", vec!["_int4"]),
        ("signup.sql", vec!["text", "text"]),
        ("document-read.sql", vec!["int4"]),
        ("document-find.sql", vec!["text"]),
        ("document-patch.sql", vec!["int4", "int4"]),
        ("report.sql", vec!["int4"]),
        ("export.sql", vec![]),
    ] {
        let prepared = client.prepare(&statements(file)[0]).unwrap();
        let inferred: Vec<&str> = prepared.params().iter().map(|bound| bound.name()).collect();
        assert_eq!(inferred, types, "{file}");
    }
    for (file, types) in [
        ("order.sql", [1, 1, 1].as_slice()),
        ("transfer.sql", &[2, 3, 3]),
    ] {
        let prepared = statements(file)
            .into_iter()
            .map(|statement| client.prepare(&statement));
        let counts: Vec<usize> = prepared.map(|done| done.unwrap().params().len()).collect();
        assert_eq!(counts, types, "{file}");
    }
}

#[test]
fn an_export_is_a_thousand_rows_of_twelve_types_with_nulls_in_all_but_the_key() {
    let database = shop();
    let mut client = database.client();
    let rows = client.query(&statements("export.sql")[0], &[]).unwrap();
    assert_eq!(rows.len(), 1000);
    let types: Vec<&str> = rows[0]
        .columns()
        .iter()
        .map(|column| column.type_().name())
        .collect();
    assert_eq!(
        types,
        [
            "int4",
            "int2",
            "int8",
            "bool",
            "float8",
            "numeric",
            "text",
            "timestamptz",
            "date",
            "uuid",
            "jsonb",
            "_int4"
        ]
    );
    let nulls = "SELECT count(*) - count(sensor) > 0 AND count(*) - count(ticks) > 0 AND count(*) - count(valid) > 0
             AND count(*) - count(reading) > 0 AND count(*) - count(exact) > 0 AND count(*) - count(label) > 0
             AND count(*) - count(taken_at) > 0 AND count(*) - count(day) > 0 AND count(*) - count(device) > 0
             AND count(*) - count(details) > 0 AND count(*) - count(samples) > 0 FROM shop.measurements";
    assert!(client.query_one(nulls, &[]).unwrap().get::<_, bool>(0));
}

#[test]
fn reads_answer_in_an_order_of_their_own_and_find_something() {
    let database = shop();
    let mut client = database.client();
    let ids = |answers: &[String]| -> Vec<i64> {
        let id = |answer: &String| {
            serde_json::from_str::<serde_json::Value>(answer).unwrap()["id"].as_i64()
        };
        answers.iter().map(|answer| id(answer).unwrap()).collect()
    };
    let any = answers(&mut client, "item-any.sql", &[&vec![9, 3, 3, 5, 5000]]);
    assert_eq!(ids(&any), [3, 5, 9]);
    let feed = answers(&mut client, "feed.sql", &[&500]);
    assert_eq!(ids(&feed), (480..500).rev().collect::<Vec<i64>>());
    let found = answers(&mut client, "document-find.sql", &[&"kitchen-oak"]);
    assert!(ids(&found).is_sorted() && found.len() <= 20, "{found:?}");
    assert!(!answers(&mut client, "search.sql", &[&"walnut desk"]).is_empty());
    let hours = answers(&mut client, "report.sql", &[&1]);
    assert!(
        hours[0].starts_with(r#"{"hour":"2025-01-01T00:00:00+00:00","comments":37,"#),
        "{hours:?}"
    );
}

#[test]
fn a_report_does_not_depend_on_the_time_zone_of_the_session() {
    let database = shop();
    let mut client = database.client();
    let text = format!(
        "SELECT md5(string_agg(hour AT TIME ZONE 'UTC' || ' ' || comments, ' ' ORDER BY hour)) FROM ({}) AS hours",
        statements("report.sql")[0]
    );
    let mut report = |zone: &str| -> String {
        client
            .batch_execute(&format!("SET timezone = '{zone}'"))
            .unwrap();
        client.query_one(&text, &[&2]).unwrap().get(0)
    };
    assert_eq!(report("UTC"), report("Asia/Kathmandu"));
}

#[test]
fn bumps_of_the_same_rows_side_by_side_answer_in_order_and_lose_nothing() {
    let database = shop();
    thread::scope(|scope| {
        for worker in 0..4 {
            let url = &database.url;
            scope.spawn(move || {
                let mut client = Client::connect(url, NoTls).unwrap();
                for round in 0..50 {
                    // Each in another order, one id twice, one that there is not.
                    let mut ids: Vec<i32> = (1..=20).map(|n| (n * 7 + round) % 20 + 1).collect();
                    ids.rotate_left(worker * 5);
                    ids.extend([7, 1_000_000]);
                    let expected: Vec<String> =
                        (1..=20).map(|id| format!("{{\"item_id\":{id}}}")).collect();
                    assert_eq!(answers(&mut client, "bump.sql", &[&ids]), expected);
                }
            });
        }
    });
    let mut client = database.client();
    let mut seen = effects(&mut client, "bump-effects.sql");
    seen.sort();
    assert_eq!(seen.len(), 20);
    assert!(seen.iter().all(|(_, times)| *times == 200), "{seen:?}");
    assert_eq!(violations(&mut client, "bump-violations.sql"), [""; 0]);
}

#[test]
fn transfers_between_few_accounts_side_by_side_conserve_money_without_a_deadlock() {
    let database = shop();
    thread::scope(|scope| {
        for worker in 0..4 {
            let url = &database.url;
            scope.spawn(move || {
                let mut client = Client::connect(url, NoTls).unwrap();
                for round in 0..50 {
                    transfer(
                        &mut client,
                        (worker + round) % 3 + 1,
                        round % 3 + 1,
                        round + 1,
                    );
                }
            });
        }
    });
    let mut client = database.client();
    assert_eq!(violations(&mut client, "transfer-violations.sql"), [""; 0]);
    let times: i64 = effects(&mut client, "transfer-effects.sql")
        .iter()
        .map(|(_, times)| times)
        .sum();
    assert_eq!(times, 200);
}

#[test]
fn the_audit_of_transfers_notices_money_that_was_lost_or_moved_without_a_record() {
    let database = shop();
    let mut client = database.client();
    transfer(&mut client, 1, 2, 5);
    assert_eq!(
        effects(&mut client, "transfer-effects.sql"),
        [(
            r#"{"from_account":1,"to_account":2,"amount_cents":5}"#.to_owned(),
            1
        )]
    );
    client
        .batch_execute("UPDATE shop.accounts SET balance_cents = balance_cents + 1 WHERE id = 3")
        .unwrap();
    let found = violations(&mut client, "transfer-violations.sql");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("the accounts hold"), "{found:?}");
    assert!(found[1].starts_with("account 3 holds"), "{found:?}");
    client
        .batch_execute(
            "UPDATE shop.accounts SET balance_cents = balance_cents - 1 WHERE id = 3; DELETE FROM shop.ledger",
        )
        .unwrap();
    assert_eq!(violations(&mut client, "transfer-violations.sql").len(), 2);
}

#[test]
fn a_second_signup_with_the_same_address_is_answered_with_nothing() {
    let database = shop();
    let mut client = database.client();
    let ada: [&(dyn ToSql + Sync); 2] = [&"ada@example.org", &"Ada \"A.\" Żak"];
    let answer = r#"{"name":"Ada \"A.\" Żak"}"#;
    assert_eq!(answers(&mut client, "signup.sql", &ada), [answer]);
    assert_eq!(answers(&mut client, "signup.sql", &ada), [""; 0]);
    assert_eq!(
        effects(&mut client, "signup-effects.sql"),
        [(answer.to_owned(), 1)]
    );
    assert_eq!(violations(&mut client, "signup-violations.sql"), [""; 0]);
    client
        .batch_execute(
            "ALTER TABLE shop.members DROP CONSTRAINT members_email_key;
             INSERT INTO shop.members (email, name) SELECT email, name FROM shop.members",
        )
        .unwrap();
    assert_eq!(
        violations(&mut client, "signup-violations.sql"),
        ["ada@example.org signed up 2 times"]
    );
}

#[test]
fn a_patch_changes_the_stock_and_its_audit_notices_whatever_else_changes() {
    let database = shop();
    let mut client = database.client();
    assert_eq!(
        answers(&mut client, "document-patch.sql", &[&7, &42]),
        [r#"{"id":7,"stock":42}"#]
    );
    assert_eq!(
        violations(&mut client, "document-patch-violations.sql"),
        [""; 0]
    );
    client
        .batch_execute(
            "UPDATE shop.documents SET body = jsonb_set(body, '{title}', '\"x\"') WHERE id = 1;
             UPDATE shop.documents SET body = body - 'stock' WHERE id = 2; DELETE FROM shop.documents WHERE id = 3",
        )
        .unwrap();
    assert_eq!(
        violations(&mut client, "document-patch-violations.sql"),
        [
            "document 1 has another text than it was seeded with",
            "document 3 is lost",
            "document 2 has no number for a stock"
        ]
    );
}
