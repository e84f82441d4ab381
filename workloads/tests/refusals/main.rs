//! Every mistake in a definition gets one line that says where it is and what is allowed.

#![allow(clippy::unwrap_used)]

mod fields;

use std::fs;

use workloads::Catalog;

const TEXT: &str =
    "about = \"A.\"\nshape = \"text\"\nbody = \"a\"\n[expect]\nstatements = 0\ntransactions = 0\n";
const EXPECT: &str = "[expect]\nstatements = 1\ntransactions = 1\n";

/// What `Catalog::read` says of one definition, with the folder cut from it. There are two others, which are right.
fn refusal(definition: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("mine.toml", definition),
        ("hello.toml", TEXT),
        ("other.toml", TEXT),
        ("item.sql", "SELECT 1;\n"),
        ("two.sql", "SELECT 1;\nSELECT 2;\n"),
        ("three.sql", "SELECT 1;\nSELECT 2;\nSELECT 3;\n"),
        ("empty.sql", " \n"),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
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

/// A definition of some shape; the fields begin in line 3.
fn of_shape(shape: &str, fields: &str) -> String {
    format!("about = \"Mine.\"\nshape = \"{shape}\"\n{fields}\n{EXPECT}")
}

/// Asserts that each definition is refused in one line that holds these words.
fn assert_refused(cases: &[(String, &str)]) {
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
fn every_mistake_gets_one_line_with_its_place_and_what_is_allowed() {
    let wrong_exponent = item_with("id = { zipf = { from = 1, to = 2, exponent = -1.0 } }");
    let cases = [
        ("about = ", "mine.toml:1: "),
        (
            "about = \"A.\"\nshape = \"itme\"\n",
            "mine.toml:2: unknown variant `itme`, expected one of `text`, `greeting`, `item`",
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
            "mine.toml:5: unknown field `til`, expected `from` or `to`",
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
            "mine.toml:2: this shape needs the parameter `id`, such as",
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
            "mine.toml:2: `[expect]` is missing",
        ),
    ];
    let cases = cases.map(|(definition, wanted)| (definition.to_owned(), wanted));
    assert_refused(&cases);
}

#[test]
fn a_mix_and_a_background_name_other_workloads() {
    let mix = |parts: &str| format!("about = \"Mine.\"\nshape = \"mix\"\n[mix]\n{parts}\n");
    let background = |fields: &str| format!("{TEXT}[background]\n{fields}\n");
    assert_refused(&[
        (
            mix("hello = 1\nnothing = 1"),
            "mine.toml:5: `nothing` is no workload to be used here; there are hello, other",
        ),
        (
            mix("hello = 1\nmine = 1"),
            "mine.toml:5: `mine` is no workload to be used here",
        ),
        (
            mix("hello = 1"),
            "mine.toml:3: `mix` names at least two workloads",
        ),
        (mix(""), "mine.toml:3: `mix` names at least two workloads"),
        (
            mix("hello = 0\nother = 1"),
            "mine.toml:4: the weight of `hello` may be 1 to 10000",
        ),
        (
            mix("hello = 10001\nother = 1"),
            "mine.toml:4: the weight of `hello` may be 1 to 10000",
        ),
        (mix("hello = -1\nother = 1"), "mine.toml:4: "),
        (
            background("workload = \"nothing\"\nconnections = 1"),
            "mine.toml:8: `nothing` is no workload to be used here; there are hello, mine, other",
        ),
        (
            background("workload = \"hello\"\nconnections = 0"),
            "mine.toml:9: `connections` of a background may be 1 to 10000",
        ),
        (
            background("workload = \"hello\"\nconnections = 1\nalone = \"nothing\""),
            "mine.toml:10: `nothing` is no workload to be used here",
        ),
        (
            background("workload = \"hello\""),
            "mine.toml:7: missing field `connections`",
        ),
    ]);
}

#[test]
fn what_a_request_is_to_postgresql_is_said_where_it_is_not_derived() {
    let delay = "about = \"Mine.\"\nshape = \"delay\"\nsql = \"item.sql\"\n";
    let none = "[expect]\nstatements = 0\ntransactions = 0\n";
    let mix = "[mix]\nhello = 1\nother = 1";
    assert_refused(&[
        (
            delay.to_owned(),
            "mine.toml:2: `[expect]` is missing: how many `statements` and `transactions`",
        ),
        (
            format!("{delay}{none}"),
            "mine.toml:4: `statements` and `transactions` must be at least 1 where there is `sql`",
        ),
        (
            of_shape("free", "wait_ms = 1"),
            "mine.toml:4: `statements` and `transactions` must be 0 where there is no `sql`",
        ),
        (
            format!("{delay}[expect]\nstatements = 1\n"),
            "mine.toml:4: missing field `transactions`",
        ),
        (
            of_shape("mix", mix),
            "mine.toml:6: this shape has no `[expect]` of its own; remove it",
        ),
        (
            of_shape("live", "channel = \"a\""),
            "mine.toml:4: this shape has no `[expect]` of its own; remove it",
        ),
    ]);
}

#[test]
fn an_audit_names_its_files() {
    let audit = |fields: &str| of_shape("delay", &format!("sql = \"item.sql\"\n[audit]\n{fields}"));
    assert_refused(&[
        (
            audit(""),
            "mine.toml:4: `[audit]` names a file as `effects`, as `violations`, or both",
        ),
        (
            audit("effects = \"no.sql\""),
            "mine.toml:5: cannot read no.sql: No such file",
        ),
        (audit("violations = \"../item.sql\""), "mine.toml:5: "),
        (
            audit("violations = \"empty.sql\""),
            "mine.toml:5: empty.sql holds no statement",
        ),
        (
            audit("broken = \"item.sql\""),
            "mine.toml:5: unknown field `broken`, expected `effects` or `violations`",
        ),
    ]);
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
