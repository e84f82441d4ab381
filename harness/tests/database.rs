//! The database from outside: what the seed makes and refuses, and that a private cluster leaves nothing behind.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;

use harness::database::Choice;
use harness::database::seed::{self, Scale, Seeded};
use postgres::{Client, NoTls};
use proptest::prelude::*;
use support::{TestDatabase, say};

/// Of the shop at scale 0.01. It changes with every change of sql/, and with nothing else: no machine, no version, no
/// locale. A campaign of another content is another benchmark.
const FINGERPRINT_AT_A_HUNDREDTH: &str = "2146235f34c3b2c35900fd3ed2ab9d63";
/// Of the shop at scale 1.
const FINGERPRINT: &str = "6537461dc96b7759fe6084152089a998";

fn seed(url: &str, scale: &str) -> anyhow::Result<Seeded> {
    seed::ensure(url, scale.parse()?, &AtomicBool::new(false))
}

fn one<T: for<'a> postgres::types::FromSql<'a>>(client: &mut Client, query: &str) -> T {
    client.query_one(query, &[]).unwrap().get(0)
}

#[test]
fn the_seed_makes_the_bytes_that_everybody_has() {
    let database = TestDatabase::fresh();
    let seeded = seed(&database.url, "0.01").unwrap();
    assert_eq!(seeded.fingerprint, FINGERPRINT_AT_A_HUNDREDTH);
    assert!(!seeded.skipped);
}

#[test]
fn the_bytes_do_not_depend_on_the_settings_of_the_session() {
    let database = TestDatabase::fresh();
    let settings = [
        "timezone=Asia/Kathmandu",
        "datestyle=German",
        "extra_float_digits=0",
        "statement_timeout=100",
    ];
    let options = settings.map(|setting| format!("-c%20{}", setting.replace('=', "%3D")));
    let url = format!("{}?options={}", database.url, options.join("%20"));
    assert_eq!(
        seed(&url, "0.01").unwrap().fingerprint,
        FINGERPRINT_AT_A_HUNDREDTH
    );
    assert!(seed(&database.url, "0.01").unwrap().skipped);
}

#[test]
fn the_bytes_are_the_same_on_postgresql_15_and_17() {
    for image in ["postgres:15", "postgres:17"] {
        match support::container(image) {
            Ok(database) => assert_eq!(
                seed(&database.url, "1").unwrap().fingerprint,
                FINGERPRINT,
                "{image}"
            ),
            Err(refusal) if support::forced().as_deref() == Some("container") => {
                panic!("{image}: {refusal:#}")
            }
            Err(refusal) => say(&format!(
                "not compared on {image}, since there is no container: {refusal:#}"
            )),
        }
    }
}

#[test]
fn the_default_scale_is_seeded_in_less_than_15_seconds() {
    let database = TestDatabase::fresh();
    let seeded = seed(&database.url, "1").unwrap();
    assert_eq!(seeded.fingerprint, FINGERPRINT);
    assert!(seeded.took.as_secs() < 15, "{seeded:?}");
    let again = seed(&database.url, "1").unwrap();
    say(&format!(
        "the default scale: seeded in {:.1?}, checked in {:.1?}",
        seeded.took, again.took
    ));
    assert!(again.skipped && again.took < seeded.took);
}

#[test]
fn a_second_seed_finds_everything_there_and_does_nothing() {
    let database = TestDatabase::fresh();
    let first = seed(&database.url, "0.01").unwrap();
    let made = "SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_class WHERE relnamespace = 'shop'::regnamespace";
    let before: String = one(&mut database.client(), made);
    let second = seed(&database.url, "0.01").unwrap();
    assert!(second.skipped);
    assert_eq!(second.fingerprint, first.fingerprint);
    assert_eq!(second.tables, first.tables);
    assert_eq!(one::<String>(&mut database.client(), made), before);
}

#[test]
fn whatever_changes_in_the_shop_is_noticed_and_made_good() {
    let database = TestDatabase::fresh();
    let original = seed(&database.url, "0.01").unwrap().fingerprint;
    for damage in [
        "UPDATE shop.items SET stock = stock + 1 WHERE id = 7",
        "UPDATE shop.items SET description = '' WHERE id = (SELECT min(id) FROM shop.items WHERE description IS NULL)",
        "DELETE FROM shop.comments WHERE id = 3000",
        "INSERT INTO shop.fortunes VALUES (13, 'Unlucky.')",
        "UPDATE shop.views SET seen = 1 WHERE item_id = 9",
        "INSERT INTO shop.members (email, name) VALUES ('a@b.example', 'A')",
        "SELECT nextval('shop.ledger_id_seq')",
        "UPDATE shop.documents SET body = jsonb_set(body, '{stock}', '-1') WHERE id = 7",
        "ALTER TABLE shop.ledger ALTER created_at DROP DEFAULT",
        "DROP INDEX shop.comments_item_id_idx",
        "ALTER TABLE shop.accounts ALTER balance_cents TYPE numeric",
        "DROP TABLE shop.measurements",
        "COMMENT ON SCHEMA shop IS 'Made by lanebench, which drops and remakes it at will. Incomplete.'",
    ] {
        database.client().batch_execute(damage).unwrap();
        let seeded = seed(&database.url, "0.01").unwrap();
        assert!(!seeded.skipped, "unnoticed: {damage}");
        assert_eq!(seeded.fingerprint, original, "not made good: {damage}");
    }
}

#[test]
fn another_scale_is_seeded_anew() {
    let database = TestDatabase::fresh();
    let small = seed(&database.url, "0.001").unwrap();
    let large = seed(&database.url, "0.002").unwrap();
    assert!(!large.skipped);
    assert_ne!(small.fingerprint, large.fingerprint);
    assert_eq!(
        one::<i64>(&mut database.client(), "SELECT count(*) FROM shop.items"),
        200
    );
}

#[test]
fn a_schema_shop_that_lanebench_did_not_make_is_refused_and_kept() {
    let database = TestDatabase::fresh();
    for comment in ["NULL", "'my shop'"] {
        database
            .client()
            .batch_execute(&format!(
                "DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; COMMENT ON SCHEMA shop IS {comment};
                 CREATE TABLE shop.items AS SELECT 1 AS mine"
            ))
            .unwrap();
        let refusal = format!("{:#}", seed(&database.url, "0.001").unwrap_err());
        assert!(
            refusal.contains("schema shop that lanebench did not make"),
            "{refusal}"
        );
        assert!(!refusal.contains('\n'), "more than a line: {refusal}");
        assert_eq!(
            one::<i32>(&mut database.client(), "SELECT mine FROM shop.items"),
            1
        );
    }
}

#[test]
fn what_a_user_adds_to_the_shop_is_never_dropped() {
    let database = TestDatabase::fresh();
    seed(&database.url, "0.001").unwrap();
    for addition in [
        "CREATE TABLE shop.orders (id int)",
        "CREATE VIEW cheap AS SELECT id FROM shop.items",
    ] {
        database.client().batch_execute(addition).unwrap();
        let refusal = format!("{:#}", seed(&database.url, "0.002").unwrap_err());
        assert!(
            refusal.contains("holds what lanebench did not make"),
            "{refusal}"
        );
        assert!(!refusal.contains('\n'), "more than a line: {refusal}");
    }
    assert!(
        seed(&database.url, "0.001").unwrap().skipped,
        "the refusal changed something"
    );
}

#[test]
fn the_shop_holds_the_cases_that_trip_servers_up() {
    let database = TestDatabase::fresh();
    seed(&database.url, "0.01").unwrap();
    let mut client = database.client();
    assert_eq!(
        one::<i64>(&mut client, "SELECT count(*) FROM shop.fortunes"),
        12
    );
    assert_eq!(
        one::<i64>(
            &mut client,
            "SELECT count(*) FROM shop.fortunes WHERE message LIKE '%<script>%'"
        ),
        1
    );
    assert_eq!(
        one::<i64>(
            &mut client,
            "SELECT count(*) FROM shop.fortunes WHERE length(message) < octet_length(message)"
        ),
        1
    );
    let without: i64 = one(
        &mut client,
        "SELECT count(*) FROM shop.items WHERE description IS NULL",
    );
    assert!(
        (80..170).contains(&without),
        "{without} of 1000 items have no description, about 125 should"
    );
    let read = client.prepare(
        "SELECT id, owner_id, title, description, price_cents, stock FROM shop.items WHERE id = $1",
    );
    let types = read
        .unwrap()
        .columns()
        .iter()
        .map(|column| column.type_().name().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(types, ["int4", "int4", "text", "text", "int4", "int4"]);
}

#[test]
fn a_role_without_the_right_to_make_a_schema_is_told_so() {
    let database = TestDatabase::fresh();
    let role = format!("lanebench_reader_{}", std::process::id());
    database
        .client()
        .batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'reader'"))
        .unwrap();
    let mut url = url::Url::parse(&database.url).unwrap();
    url.set_username(&role).unwrap();
    url.set_password(Some("reader")).unwrap();
    let refusal = format!("{:#}", seed(url.as_str(), "0.001").unwrap_err());
    database
        .client()
        .batch_execute(&format!("DROP ROLE {role}"))
        .unwrap();
    assert!(
        refusal.contains("may not create the schema shop"),
        "{refusal}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_table_has_its_size_times_the_scale_and_at_least_one_row(scale in 0.000_001_f64..0.01) {
        let database = TestDatabase::fresh();
        let seeded = seed(&database.url, &scale.to_string()).unwrap();
        for table in &seeded.tables {
            let at_scale_one = match table.name {
                "items" => 100_000.0,
                "comments" => 300_000.0,
                "views" => 100_000.0,
                "document_originals" | "documents" => 5_000.0,
                "fortunes" => 12.0 / scale,
                "measurements" => 1_000.0 / scale,
                _ => 10_000.0,
            };
            let expected = match table.name {
                "ledger" | "members" => 0,
                _ => ((at_scale_one * scale).round() as i64).max(1),
            };
            prop_assert_eq!(table.rows, expected, "{}", table.name);
        }
    }
}

proptest! {
    #[test]
    fn a_scale_reads_back_as_it_is_printed(scale in 0.000_001_f64..=100.0) {
        let read: Scale = scale.to_string().parse().unwrap();
        prop_assert_eq!(read.to_string(), scale.to_string());
    }

    #[test]
    fn a_scale_that_makes_no_sense_is_refused(scale in prop_oneof![
        Just("0".to_owned()), Just("nan".to_owned()), Just("inf".to_owned()), Just(String::new()),
        (-1e9_f64..0.0).prop_map(|scale| scale.to_string()), (100.1_f64..1e9).prop_map(|scale| scale.to_string()),
        "[a-z ]{1,5}",
    ]) {
        prop_assert!(scale.parse::<Scale>().is_err());
    }

    #[test]
    fn what_is_no_database_is_refused_in_one_line(text in "\\PC{0,40}") {
        if let Err(refusal) = text.parse::<Choice>() {
            prop_assert!(!refusal.to_string().contains('\n'));
        }
    }
}

#[test]
fn a_database_that_cannot_be_reached_is_one_line_without_the_password() {
    let database = TestDatabase::fresh();
    let mut missing = url::Url::parse(&database.url).unwrap();
    missing.set_path("no_such_database");
    let mut wrong = url::Url::parse(&database.url).unwrap();
    wrong.set_password(Some("s3cret")).unwrap();
    let place = format!("{}:{}", wrong.host_str().unwrap(), wrong.port().unwrap());
    let mut cases = vec![
        (
            missing.as_str(),
            format!("there is no database no_such_database on {place}"),
        ),
        (
            "postgres://me:s3cret@127.0.0.1:1/shop",
            "nothing listens on 127.0.0.1:1".to_owned(),
        ),
        (
            "postgres://me:s3cret@no-such-host.invalid/shop",
            "cannot connect to no-such-host.invalid:5432".to_owned(),
        ),
    ];
    // A server of the user's own may trust everybody.
    if Client::connect(wrong.as_str(), NoTls).is_err() {
        cases.push((wrong.as_str(), format!("{place}/")));
        cases.push((wrong.as_str(), "wrong password for user".to_owned()));
    }
    for (url, expected) in cases {
        let refusal = format!("{:#}", seed(url, "0.001").unwrap_err());
        assert!(
            refusal.contains(&expected),
            "{expected:?} is missing in: {refusal}"
        );
        assert!(
            !refusal.contains("s3cret") && !refusal.contains('\n'),
            "{refusal}"
        );
    }
}

#[test]
fn a_url_with_a_typing_error_is_one_line_without_the_password() {
    for typo in [
        "postgres://me:s3cret@host:port/shop",
        "postgres://me:s3cret@:5432/shop",
        "postgres:///shop",
    ] {
        let refusal = typo.parse::<Choice>().unwrap_err().to_string();
        assert!(refusal.contains("a PostgreSQL URL"), "{refusal}");
        assert!(
            !refusal.contains("s3cret") && !refusal.contains('\n'),
            "{refusal}"
        );
    }
}

#[test]
fn a_seed_that_is_interrupted_leaves_nothing_half_done() {
    let database = TestDatabase::fresh();
    let stop = AtomicBool::new(false);
    let refusal = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Into the middle of the load: past its first statement, long before its end.
            let mut client = Client::connect(&database.url, NoTls).unwrap();
            let busy = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND query LIKE 'INSERT INTO shop.comments%'";
            while one::<i64>(&mut client, busy) == 0 {
                std::thread::yield_now();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        seed::ensure(&database.url, "1".parse().unwrap(), &stop).unwrap_err()
    });
    assert!(refusal.is::<harness::signals::Interrupted>(), "{refusal:#}");
    assert!(!one::<bool>(
        &mut database.client(),
        "SELECT to_regnamespace('shop') IS NOT NULL"
    ));
}
