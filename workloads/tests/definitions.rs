//! Definitions as a user writes them: the shipped ones are as promised, and every mistake gets one line that says
//! where it is and what is allowed.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use workloads::{Catalog, Shape};

/// What `Catalog::read` says of one definition, with the folder cut from it.
fn refusal(definition: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.toml"), definition).unwrap();
    fs::write(folder.path().join("item.sql"), "SELECT 1;\n").unwrap();
    fs::write(folder.path().join("empty.sql"), " \n").unwrap();
    let error = Catalog::read(folder.path(), folder.path()).expect_err("the definition is wrong");
    error
        .to_string()
        .replace(&format!("{}/", folder.path().display()), "")
}

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
    assert_eq!(catalog.workloads[0].shape.sql(), Some("SELECT 1"));
}

#[test]
fn every_mistake_gets_one_line_with_its_place_and_what_is_allowed() {
    let wrong_exponent = item_with("id = { zipf = { from = 1, to = 2, exponent = -1.0 } }");
    let cases = [
        ("about = ", "mine.toml:1: "),
        (
            "about = \"A.\"\nshape = \"itme\"\n",
            "mine.toml:2: unknown variant `itme`, expected one of `text`, `item`, `delay`",
        ),
        (
            &item_with("id = { gauss = { from = 1 } }"),
            "mine.toml:5: unknown variant `gauss`, expected `uniform` or `zipf`",
        ),
        (
            &item_with("id = { uniform = { from = 9, to = 1 } }"),
            "mine.toml:5: the range 9 to 1 is empty",
        ),
        (
            &item_with("id = { uniform = { from = 0, to = 1 } }"),
            "mine.toml:5: the range 0 to 1 starts below 1",
        ),
        (
            &item_with("id = { uniform = { from = 1, to = 3000000000 } }"),
            "does not fit a PostgreSQL integer",
        ),
        (
            &item_with("id = { uniform = { from = 1, til = 3 } }"),
            "mine.toml:5: unexpected keys in table: til, available keys: from, to",
        ),
        (
            &wrong_exponent,
            "mine.toml:5: `exponent` is -1; it must be above 0",
        ),
        (
            &item_with("key = { uniform = { from = 1, to = 2 } }"),
            "mine.toml:5: unknown parameter `key`; the shape given takes `id`",
        ),
        (
            &item_with(""),
            "mine.toml:2: the shape `item` needs the parameter `id`",
        ),
        (
            "about = \"A.\"\nshape = \"delay\"\nsql = \"no.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n",
            "mine.toml:3: cannot read no.sql: No such file",
        ),
        (
            "about = \"A.\"\nshape = \"delay\"\nsql = \"../item.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n",
            "it must be a file's name, without a folder",
        ),
        (
            "about = \"A.\"\nshape = \"delay\"\nsql = \"empty.sql\"\n[expect]\nstatements = 1\ntransactions = 1\n",
            "empty.sql holds no statement",
        ),
        (
            "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\nsql = \"item.sql\"\n[expect]\nstatements = 0\ntransactions = 0\n",
            "mine.toml:4: the shape given has no use for `sql`",
        ),
        (
            "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\n[expect]\nstatements = 1\ntransactions = 0\n",
            "must be 0 where there is no `sql`",
        ),
        (
            "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\nbody_bytes = 0\n[expect]\nstatements = 0\ntransactions = 0\n",
            "mine.toml:4: `body_bytes` is 0",
        ),
        (
            "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\ncolour = 1\n[expect]\nstatements = 0\ntransactions = 0\n",
            "mine.toml:4: unknown field `colour`, expected one of `about`, `shape`",
        ),
        (
            "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\n",
            "missing field `expect`",
        ),
    ];
    for (definition, wanted) in cases {
        let said = refusal(definition);
        assert!(
            said.contains(wanted),
            "{definition}\nsaid: {said}\nwanted: {wanted}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_name_that_is_no_path_segment_is_refused() {
    for name in ["Point", "a b", "about", "usage", "ö"] {
        let folder = tempfile::tempdir().unwrap();
        let text = "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\n[expect]\nstatements = 0\ntransactions = 0\n";
        fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        let said = Catalog::read(folder.path(), folder.path())
            .expect_err(name)
            .to_string();
        assert!(said.contains("cannot be a workload's name"), "{said}");
    }
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
