//! What is accepted, what is refused and with which words, and that text and binary form are one value.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Cell;

fn ty(name: &str) -> PgType {
    PgType::from_name(name).unwrap()
}

fn read(name: &str, text: &str) -> Value {
    Value::from_text(ty(name), text).unwrap()
}

fn refusal(name: &str, text: &str) -> String {
    Value::from_text(ty(name), text).unwrap_err().to_string()
}

/// The row_to_json of the value.
fn encoded(value: &Value) -> String {
    let mut out = Vec::new();
    let cell = Cell::new(value.oid(), value.binary());
    cell.encode(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_refusal_names_the_value_the_type_and_what_it_takes() {
    assert_eq!(
        refusal("int4", "abc"),
        r#""abc" is no int4: give a whole number from -2147483648 to 2147483647, such as 42"#
    );
    assert_eq!(
        refusal("int4[]", "{1,2,x}"),
        r#""x" is no int4: give a whole number from -2147483648 to 2147483647, such as 42"#
    );
    assert!(refusal("int4[]", "1,2").starts_with(r#""1,2" is no int4[]: give a JSON array"#));
    let long = refusal("uuid", &"line\n".repeat(1_000_000));
    assert!(long.len() < 200 && !long.contains('\n'), "{long}");
}

#[test]
fn what_no_type_takes_is_refused() {
    for (name, text) in [
        ("bool", "maybe"),
        ("int2", "32768"),
        ("int4", ""),
        ("int4", "1.0"),
        ("int8", "9223372036854775808"),
        ("oid", "-1"),
        ("oid", "010"),
        ("float4", "1e39"),
        ("float8", "1e400"),
        ("float8", "1e-400"),
        ("float8", "1_000"),
        ("numeric", "."),
        ("numeric", "1e131072"),
        ("numeric", "1e-16384"),
        ("numeric", "1e99999999999999999999"),
        ("numeric", "1 2"),
        ("text", "a\0b"),
        ("uuid", "0b0f8a5e-3c57-4c1f-9c5a-5f6f2d1f4a1"),
        ("uuid", "0b0f8a5e3-c57-4c1f-9c5a-5f6f2d1f4a10"),
        ("bytea", "00ff"),
        ("bytea", r"\x0"),
        ("date", "2023-02-29"),
        ("date", "0000-01-01"),
        ("date", "5874898-01-01"),
        ("time", "24:00:00.1"),
        ("timestamp", "2024-01-01T00:00:00Z"),
        ("timestamp", "294277-01-01T00:00:00"),
        ("timestamptz", "2024-01-01T00:00:00"),
        ("timestamptz", "2024-01-01T00:00:00 00:00"),
        ("timestamptz", "2024-01-01T00:00:00+16"),
        ("interval", "1 fortnight"),
        ("interval", "99999999 years 9999999999 months"),
        ("interval", ""),
        ("json", "{"),
        ("jsonb", r#""\u0000""#),
        ("jsonb", r#""\ud800""#),
        ("inet", "1.2.3"),
        ("inet", "1.2.3.4/33"),
        ("cidr", "192.168.0.1/24"),
        ("int4[]", "{1,,2}"),
        ("int4[]", "[[1]]"),
        ("text[]", r#"{"a"}"#),
    ] {
        assert!(
            Value::from_text(ty(name), text).is_err(),
            "{name} took {text:?}"
        );
    }
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    assert!(Value::from_text(ty("name"), &long).is_err());
}

#[test]
fn values_of_json_are_taken_for_types_of_their_kind() {
    for (name, json, expected) in [
        ("int4", json!(5), "5"),
        ("int4", json!("5"), "5"),
        ("float8", json!(0.1), "0.1"),
        ("numeric", json!(0.25), "0.25"),
        ("numeric", json!("1.50"), "1.50"),
        ("bool", json!(true), "true"),
        ("text", json!("5"), "\"5\""),
        ("json", json!({"a": [1, null]}), r#"{"a":[1,null]}"#),
        ("json", json!("text"), "\"text\""),
        ("jsonb", json!("\\u0000"), r#""\\u0000""#),
        ("int4[]", json!([1, null]), "[1,null]"),
        ("int4[]", json!("{1,2}"), "[1,2]"),
        ("jsonb[]", json!([{"a": 1}, [2]]), r#"[{"a":1},[2]]"#),
        ("int4", json!(null), "null"),
    ] {
        let value = Value::from_json(ty(name), &json).unwrap();
        assert_eq!(encoded(&value), expected, "{name}");
    }
}

#[test]
fn values_of_json_are_refused_for_types_of_another_kind() {
    for (name, json) in [
        ("int4", json!(1.5)),
        ("int4", json!(true)),
        ("text", json!(5)),
        ("bool", json!(1)),
        ("timestamptz", json!(1_700_000_000)),
        ("numeric", json!(1e29)),
        ("int4[]", json!({})),
        ("int4", json!([1])),
        ("jsonb", json!("a\0b")),
    ] {
        assert!(
            Value::from_json(ty(name), &json).is_err(),
            "{name} took {json}"
        );
    }
}

#[test]
fn numeric_keeps_the_scale_it_is_written_with() {
    for (text, expected) in [
        ("0", "0"),
        ("-0.00", "0.00"),
        ("12.50", "12.50"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1.5e-6", "0.0000015"),
        ("00012345.6789", "12345.6789"),
        ("-10000000.00001", "-10000000.00001"),
        ("0.00001000", "0.00001000"),
        ("1.23e1", "12.3"),
    ] {
        assert_eq!(encoded(&read("numeric", text)), expected);
    }
}

#[test]
fn times_are_read_to_the_microsecond_and_to_utc() {
    for (name, text, expected) in [
        (
            "timestamptz",
            "2024-01-31T08:30:00Z",
            "2024-01-31T08:30:00+00:00",
        ),
        (
            "timestamptz",
            "2024-03-01 00:30+01:30",
            "2024-02-29T23:00:00+00:00",
        ),
        (
            "timestamptz",
            "1999-12-31 23:59:59.999999-00",
            "1999-12-31T23:59:59.999999+00:00",
        ),
        ("timestamp", "2024-01-31", "2024-01-31T00:00:00"),
        ("date", "0044-03-15 BC", "0044-03-15 BC"),
        ("time", "24:00", "24:00:00"),
        (
            "interval",
            "2 weeks -1 day 1.5 seconds",
            "13 days 00:00:01.5",
        ),
        (
            "interval",
            "1 year -2 mons +3 days -04:05:06.5",
            "10 mons 3 days -04:05:06.5",
        ),
    ] {
        assert_eq!(encoded(&read(name, text)), format!("{expected:?}"));
    }
}

#[test]
fn the_text_of_an_array_quotes_its_elements() {
    let value = Value::from_json(ty("text[]"), &json!(["a\"\\,", null, ""])).unwrap();
    assert_eq!(value.to_text().unwrap(), r#"{"a\"\\,",NULL,""}"#);
    assert_eq!(read("int4[]", "{ }").to_text().unwrap(), "{}");
}

#[test]
fn ten_megabytes_are_read_or_refused_like_any_other_text() {
    let long = "9".repeat(10_000_000);
    for name in PgType::NAMES {
        let taken = Value::from_text(ty(name), &long).is_ok();
        // Validated as JSON, a number of any length is one.
        assert_eq!(
            taken,
            matches!(name, "text" | "varchar" | "bpchar" | "json" | "jsonb"),
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn decimal_numbers_come_back_as_they_were(whole in "0|[1-9][0-9]{0,40}", fraction in "|[.][0-9]{1,40}") {
        let text = format!("{whole}{fraction}");
        prop_assert_eq!(encoded(&read("numeric", &text)), text.clone());
        prop_assert_eq!(read("numeric", &text).to_text(), Some(text));
    }

    #[test]
    fn every_moment_comes_back(micros in -211_813_488_000_000_000_i64..9_223_371_331_200_000_000) {
        let mut out = Vec::new();
        crate::cell::encode_timestamptz(micros, &mut out);
        let json = String::from_utf8(out).unwrap();
        let value = read("timestamptz", json.trim_matches('"'));
        let bytes = micros.to_be_bytes();
        prop_assert_eq!(value.binary(), Some(&bytes[..]));
    }

    #[test]
    fn any_interval_comes_back(micros in -i64::MAX..i64::MAX / 2, days: i32, months: i32) {
        let binary = [&micros.to_be_bytes()[..], &days.to_be_bytes(), &months.to_be_bytes()].concat();
        let cell = Cell::new(ty("interval").oid(), Some(&binary));
        let mut out = Vec::new();
        cell.encode(&mut out).unwrap();
        let json = String::from_utf8(out).unwrap();
        // Hours beyond what is read in one number are refused, not misread.
        if let Ok(value) = Value::from_text(ty("interval"), json.trim_matches('"')) {
            prop_assert_eq!(value.binary(), Some(binary.as_slice()));
        } else {
            prop_assert!(micros.unsigned_abs() / 3_600_000_000 > 9_999_999);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text: String, digits in "[-+0-9eE.:TZ /{}\\[\\],\"]{0,30}", index in 0..PgType::NAMES.len(), array: bool) {
        let scalar = ty(PgType::NAMES[index]).scalar();
        let ty = if array { PgType::array_of(scalar) } else { scalar.into() };
        for text in [text, digits] {
            if let Ok(value) = Value::from_text(ty, &text) {
                prop_assert!(value.to_text().is_some());
            }
        }
    }
}
