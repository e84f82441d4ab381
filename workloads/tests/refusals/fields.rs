//! The fields that a shape has a use for, and what each may be.

use crate::{assert_refused, of_shape};

/// A `table` with one parameter, whose fields after its name begin in line 6.
fn with_bind(method: &str, fields: &str) -> String {
    let bind = format!("[[bind]]\nname = \"x\"; {fields}").replace("; ", "\n");
    of_shape(
        "table",
        &format!("sql = \"item.sql\"\nmethod = \"{method}\"\n{bind}"),
    )
}

#[test]
fn a_field_that_a_shape_has_no_use_for_is_refused() {
    let cases = [
        (
            "free",
            "wait_ms = 1\nsql = \"item.sql\"",
            "mine.toml:4: the shape given has no use for `sql`; remove it",
        ),
        (
            "item",
            "sql = \"item.sql\"\ncount = 2",
            "mine.toml:4: the shape given has no use for `count`",
        ),
        (
            "item",
            "sql = \"item.sql\"\nmethod = \"GET\"",
            "mine.toml:4: the shape given has no use for `method`",
        ),
        (
            "export",
            "sql = \"item.sql\"\nmethod = \"POST\"",
            "mine.toml:4: the shape given has no use for `method`",
        ),
        (
            "delay",
            "sql = \"item.sql\"\nwait_ms = 2",
            "mine.toml:4: the shape given has no use for `wait_ms`",
        ),
        (
            "fortunes",
            "sql = \"item.sql\"\nbody = \"a\"",
            "mine.toml:4: the shape given has no use for `body`",
        ),
        (
            "greeting",
            "body = \"a\"\nbody_bytes = 3",
            "mine.toml:4: the shape given has no use for `body_bytes`",
        ),
        (
            "held",
            "sql = \"item.sql\"\nchannel = \"a\"",
            "mine.toml:4: the shape given has no use for `channel`",
        ),
        (
            "feed",
            "sql = \"item.sql\"\n[mix]\nhello = 1",
            "mine.toml:4: the shape given has no use for `mix`",
        ),
        (
            "order",
            "sql = \"three.sql\"\n[[bind]]\nname = \"a\"\ntype = \"int4\"",
            "mine.toml:4: the shape given has no use for `bind`",
        ),
        (
            "table",
            "sql = \"item.sql\"\n[params]\nid = { uniform = { from = 1, to = 2 } }",
            "mine.toml:5: unknown parameter `id`; the shape given takes none in `[params]`",
        ),
        (
            "transfer",
            "sql = \"three.sql\"\n[params]\nid = { uniform = { from = 1, to = 2 } }",
            "mine.toml:5: unknown parameter `id`; the shape given takes `account`, `amount_cents`",
        ),
    ];
    assert_refused(&cases.map(|(shape, fields, wanted)| (of_shape(shape, fields), wanted)));
}

#[test]
fn what_a_shape_lacks_is_named() {
    let cases = [
        ("greeting", "", "mine.toml:2: this shape needs `body`"),
        (
            "items-at-once",
            "sql = \"item.sql\"\n[params]\nid = { uniform = { from = 1, to = 9 } }",
            "mine.toml:2: this shape needs `count`",
        ),
        (
            "held",
            "",
            "mine.toml:2: this shape needs `sql`, the name of a file",
        ),
        ("free", "", "mine.toml:2: this shape needs `wait_ms`"),
        (
            "feed",
            "sql = \"item.sql\"",
            "mine.toml:2: this shape needs the parameter `before`",
        ),
        (
            "transfer",
            "sql = \"three.sql\"",
            "mine.toml:2: this shape needs the parameter `account`",
        ),
        ("create", "", "mine.toml:2: this shape needs `sql`"),
        ("mix", "", "mine.toml:2: this shape needs `[mix]`"),
        ("live", "", "mine.toml:2: this shape needs `channel`"),
    ];
    assert_refused(&cases.map(|(shape, fields, wanted)| (of_shape(shape, fields), wanted)));
}

#[test]
fn a_number_out_of_its_range_is_refused() {
    let items = |count: u32, to: u32| {
        let fields = format!(
            "sql = \"item.sql\"\ncount = {count}\n[params]\nid = {{ uniform = {{ from = 1, to = {to} }} }}"
        );
        of_shape("items", &fields)
    };
    let free = |wait_ms: u32| of_shape("free", &format!("wait_ms = {wait_ms}"));
    let one_account = "sql = \"three.sql\"\n[params]\naccount = { uniform = { from = 7, to = 7 } }\namount_cents = { uniform = { from = 1, to = 2 } }";
    assert_refused(&[
        (items(0, 1000), "mine.toml:4: `count` may be 1 to 500"),
        (items(501, 100_000), "mine.toml:4: `count` may be 1 to 500"),
        (
            items(6, 10),
            "mine.toml:4: `count` may be 1 to 5 distinct values of this range",
        ),
        (free(0), "mine.toml:3: `wait_ms` may be 1 to 10000"),
        (free(10_001), "mine.toml:3: `wait_ms` may be 1 to 10000"),
        (
            of_shape("transfer", one_account),
            "mine.toml:5: a transfer takes two accounts at least",
        ),
    ]);
}

#[test]
fn a_method_that_a_shape_cannot_have_is_refused() {
    let create = of_shape("create", "sql = \"item.sql\"\nmethod = \"GET\"");
    assert_refused(&[
        (
            create,
            "mine.toml:4: what is created is not got; use POST or PUT",
        ),
        (
            with_bind("FETCH", "type = \"int4\""),
            "mine.toml:4: unknown variant `FETCH`, expected one of `GET`, `POST`",
        ),
        (
            with_bind("get", "type = \"int4\""),
            "mine.toml:4: unknown variant `get`",
        ),
    ]);
}

#[test]
fn a_parameter_that_cannot_be_bound_is_refused() {
    const DRAW: &str = "draw = { uniform = { from = 1, to = 40000 } }";
    let cases = [
        (
            "GET",
            "type = \"int5\"; choice = [\"1\"]",
            "mine.toml:7: there is no type \"int5\" here; types are bool",
        ),
        (
            "GET",
            "type = \"varchar(9)\"; choice = [\"1\"]",
            "mine.toml:7: there is no type \"varchar(9)\"",
        ),
        (
            "GET",
            "choice = [\"1\"]",
            "mine.toml:5: missing field `type`",
        ),
        (
            "GET",
            "type = \"int4\"",
            "mine.toml:5: a parameter is drawn by one of `draw`",
        ),
        (
            "GET",
            "type = \"int4\"; choice = []",
            "mine.toml:5: a parameter is drawn by one of `draw`",
        ),
        (
            "GET",
            "type = \"int4\"; choice = [\"1\"]; repeats = 2",
            "mine.toml:5: a parameter is drawn by one of `draw`",
        ),
        (
            "GET",
            "type = \"int4\"; choice = [\"1\", \"two\"]",
            "mine.toml:5: \"two\" is no int4: give a whole number",
        ),
        (
            "POST",
            "type = \"int4\"; choice = [\"1\", \"two\"]",
            "mine.toml:5: \"two\" is no int4: give a whole number",
        ),
        (
            "GET",
            "type = \"uuid\"; draw = { uniform = { from = 1, to = 2 } }",
            "is no uuid",
        ),
        (
            "POST",
            "type = \"timestamptz\"; choice = [\"2025-13-01T00:00:00Z\"]",
            "is no timestamptz",
        ),
        (
            "GET",
            "type = \"int2\"; draw = { uniform = { from = 1, to = 40000 } }",
            "mine.toml:5: \"40000\" is no int2",
        ),
        (
            "POST",
            "type = \"int2\"; draw = { zipf = { from = 1, to = 40000, exponent = 2.0 } }",
            "\"40000\" is no int2",
        ),
        (
            "GET",
            "type = \"int2[]\"; count = 2; draw = { uniform = { from = 1, to = 40000 } }",
            "\"40000\" is no int2",
        ),
        (
            "GET",
            "type = \"int4\"; count = 2; draw = { uniform = { from = 1, to = 40000 } }",
            "is no int4",
        ),
        (
            "GET",
            "type = \"int4[]\"; count = 2; draw = { uniform = { from = 1, to = 3 } }",
            "mine.toml:8: `count` may be 1 to 1 distinct values",
        ),
        (
            "GET",
            "type = \"text\"; format = \"item\"; draw = { uniform = { from = 1, to = 3 } }",
            "mine.toml:8: `format` holds `{}` once",
        ),
        (
            "GET",
            "type = \"text\"; format = \"{}{}\"; draw = { uniform = { from = 1, to = 3 } }",
            "mine.toml:8: `format` holds `{}` once",
        ),
        (
            "POST",
            "type = \"text\"; choice = [\"a\", \"b{n}\"]",
            "mine.toml:5: `{n}` stands for a number in `unique` alone",
        ),
        (
            "POST",
            "type = \"text\"; unique = \"a\"",
            "mine.toml:8: `unique` holds `{n}` once",
        ),
        (
            "POST",
            "type = \"text\"; unique = \"{n}{n}\"",
            "mine.toml:8: `unique` holds `{n}` once",
        ),
        (
            "GET",
            "type = \"text\"; unique = \"a{n}\"",
            "mine.toml:8: `unique` holds `{n}` once, where the number goes, and needs a method with a body",
        ),
        (
            "POST",
            "type = \"text\"; unique = \"a{n}\"; repeats = 101",
            "mine.toml:5: `repeats` is a percentage, 0 to 100",
        ),
        ("POST", "type = \"int4\"; unique = \"{n}\"", "is no int4"),
    ];
    assert_refused(&cases.map(|(method, fields, wanted)| (with_bind(method, fields), wanted)));
    let named =
        |name: &str| with_bind("GET", &format!("type = \"int4\"; {DRAW}")).replace("\"x\"", name);
    let twice = with_bind(
        "GET",
        &format!("type = \"int4\"; {DRAW}; [[bind]]; name = \"x\"; type = \"int4\"; {DRAW}"),
    );
    assert_refused(&[
        (
            named("\"\""),
            "mine.toml:6: `` cannot be a parameter's name; use letters, digits and `_`",
        ),
        (
            named("\"a b\""),
            "mine.toml:6: `a b` cannot be a parameter's name",
        ),
        (twice, "mine.toml:10: the parameter `x` is there already"),
    ]);
}

#[test]
fn a_file_with_another_number_of_statements_than_the_shape_takes_is_refused() {
    let order = |sql: &str| {
        of_shape(
            "order",
            &format!("sql = \"{sql}\"\n[params]\nid = {{ uniform = {{ from = 1, to = 9 }} }}"),
        )
    };
    let transfer = of_shape("transfer", "sql = \"two.sql\"");
    assert_refused(&[
        (
            order("item.sql"),
            "mine.toml:3: the file has 1 statement(s), this shape takes 3",
        ),
        (
            order("two.sql"),
            "mine.toml:3: the file has 2 statement(s), this shape takes 3",
        ),
        (
            transfer,
            "mine.toml:3: the file has 2 statement(s), this shape takes 3",
        ),
        (
            of_shape("delay", "sql = \"two.sql\""),
            "mine.toml:3: the file has 2 statement(s), this shape takes 1",
        ),
    ]);
}

#[test]
fn a_channel_is_a_plain_name() {
    let long = "a".repeat(64);
    for channel in ["", "News", "a-b", "a;b", "a b", "ä", &long] {
        let live = format!("about = \"Mine.\"\nshape = \"live\"\nchannel = \"{channel}\"\n");
        let wanted = "mine.toml:3: `channel` has 1 to 63 characters of a-z, 0-9 and `_`";
        assert_refused(&[(live, wanted)]);
    }
}
