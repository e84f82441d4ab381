//! Definitions as a user writes them: the shipped ones are as promised, and no text makes the reader panic.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use workloads::{Catalog, Shape};

fn item_with(params: &str) -> String {
    format!(
        "about = \"Mine.\"\nshape = \"item\"\nsql = \"item.sql\"\n[params]\n{params}\n[expect]\nstatements = 1\ntransactions = 1\n"
    )
}

fn shipped() -> Catalog {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    Catalog::read(
        &root.join("workloads/definitions"),
        &root.join("sql/queries"),
    )
    .unwrap()
}

#[test]
fn the_shipped_text_workloads_have_their_exact_bodies() {
    let catalog = shipped();
    let body = |name: &str| match &catalog.find(name).unwrap().shape {
        Shape::Text { body } => body.clone(),
        shape => panic!("{name} is {shape:?}"),
    };
    assert_eq!(body("hello"), "Hello, World!".as_bytes());
    assert_eq!(body("kilobyte").len(), 1024);
}

#[test]
fn the_shipped_reads_draw_a_thousand_distinct_requests_from_a_seed() {
    for name in ["point-read", "point-read-uniform"] {
        let catalog = shipped();
        let workload = catalog.find(name).unwrap();
        let drawn = workload.draw(4096, 1);
        let distinct: std::collections::HashSet<_> = drawn.iter().collect();
        assert!(distinct.len() >= 1024, "{name}: {}", distinct.len());
        assert_eq!(drawn, workload.draw(4096, 1));
        assert_ne!(drawn, workload.draw(4096, 2));
    }
}

#[test]
fn a_statement_loses_its_semicolon() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("mine.toml"),
        item_with("id = { uniform = { from = 1, to = 2 } }"),
    )
    .unwrap();
    fs::write(folder.path().join("item.sql"), "SELECT 1;\n").unwrap();
    let catalog = Catalog::read(folder.path(), folder.path()).unwrap();
    let Shape::Item { sql, .. } = &catalog.workloads[0].shape else {
        panic!("{:?}", catalog.workloads[0].shape);
    };
    assert_eq!(sql, "SELECT 1");
}

#[test]
fn an_empty_or_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = Catalog::read(folder.path(), folder.path())
        .expect_err("empty")
        .to_string();
    assert!(empty.contains("no workload is defined here"), "{empty}");
    let missing = Catalog::read(&folder.path().join("none"), folder.path())
        .expect_err("missing")
        .to_string();
    assert!(
        missing.contains("none") && missing.contains("No such file"),
        "{missing}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic_or_say_more_than_a_line(definition in "\\PC{0,200}|(?s).{0,200}") {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.toml"), definition).unwrap();
        if let Err(error) = Catalog::read(folder.path(), folder.path()) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn a_range_is_taken_when_it_is_one_and_refused_otherwise(from in -5i64..3_000_000_000, to in -5i64..3_000_000_000) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.toml"), item_with(&format!("id = {{ uniform = {{ from = {from}, to = {to} }} }}"))).unwrap();
        fs::write(folder.path().join("item.sql"), "SELECT 1").unwrap();
        let fits = from >= 1 && from <= to && to <= i64::from(i32::MAX);
        prop_assert_eq!(Catalog::read(folder.path(), folder.path()).is_ok(), fits);
    }
}
