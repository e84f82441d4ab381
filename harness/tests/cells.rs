//! Columns and parameters against a real PostgreSQL: a column's JSON is what `row_to_json` gives, and a parameter in the
//! binary form is the value that PostgreSQL's own input reads from the same text.

#![allow(clippy::unwrap_used)]

mod support;

use std::error::Error;

use bytes::BytesMut;
use postgres::Client;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use support::TestDatabase;
use workloads::{Cell, PgType, Value};

/// Texts that both PostgreSQL and `Value` take, per type.
#[rustfmt::skip] // A row of the table is a line here, and not one a value.
const TAKEN: &[(&str, &[&str])] = &[
    ("bool", &["true", "false", "t", "F", "yes", "OFF", "1", "0"]),
    ("int2", &["0", "-32768", "32767", "+5"]),
    ("int4", &["0", "-2147483648", "2147483647", "007"]),
    ("int8", &["-9223372036854775808", "9223372036854775807", "1000000"]),
    ("oid", &["0", "4294967295"]),
    ("float4", &[
        "0", "-0", "1", "0.1", "123456", "1234567", "1e6", "1e-4", "1e-5", "3.4028235e38", "1e-45", "NaN",
        "Infinity", "-inf", ".5", "5.", "16777217", "1.17549435e-38"
    ]),
    ("float8", &[
        "0", "-0", "1.5", "0.1", "1e15", "123456789012345", "1234567890123456", "1e23", "9007199254740993", "1e-4",
        "0.00001", "5e-324", "1.7976931348623157e308", "2.2250738585072014e-308", "nan", "infinity", "-Infinity",
        "1E+5", "0e999999", "5.684341886080801e-14"
    ]),
    ("numeric", &[
        "0", "0.00", "-0.0", "1", "-1", "10000", "9999.9999", "0.0001", "0.00001", "12345.678900", "1e30",
        "1.5e-20", "-12.3e1", "NaN", "Infinity", "-inf", ".5", "5.", "1e131071", "1e-16383",
        "100000000000000000000000000000000000000000.0000000000000000000000000000000000001"
    ]),
    ("text", &["", "plain", "a\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f} ö 🦀", "{}", "NULL", "\u{2028}"]),
    ("varchar", &["", "x"]),
    ("bpchar", &["", "x", "x  "]),
    ("name", &["", "pg_class"]),
    ("uuid", &[
        "0b0f8a5e-3c57-4c1f-9c5a-5f6f2d1f4a10", "00000000000000000000000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"
    ]),
    ("bytea", &["\\x", "\\x00ff", "\\xDEADBEEF"]),
    ("date", &[
        "2000-01-01", "2024-02-29", "1900-03-01", "1999-12-31", "0001-01-01", "0001-12-31 BC", "4714-11-24 BC",
        "5874897-12-31", "12024-05-06", "infinity", "-infinity"
    ]),
    ("time", &[
        "00:00:00", "23:59:59.999999", "08:30", "24:00:00", "12:00:00.1", "12:00:00.1234565", "12:00:00.0000005"
    ]),
    ("timestamp", &[
        "2000-01-01 00:00:00", "2024-02-29T23:59:59.5", "1970-01-01", "0044-03-15 12:00:00 BC",
        "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999", "infinity", "-infinity",
        "1999-12-31T23:59:59.999999", "2024-01-01T00:00:00.1234567"
    ]),
    ("timestamptz", &[
        "2024-01-01T00:00:00Z", "2024-01-01 00:00:00+00", "2024-01-01T00:00:00.123456+05:30",
        "2024-01-01T00:00:00-0800", "1890-01-01 00:00:00+00:19:32", "0044-03-15 12:00:00+00 BC",
        "2024-01-01 00:00:00 +01", "infinity", "-infinity", "1582-10-15T00:00:00z"
    ]),
    ("interval", &[
        "00:00:00", "1 day", "-1 days", "1 year 2 mons 3 days 04:05:06.789", "-1 year +2 days -00:00:01",
        "1 mon -1 day +01:00", "13 months", "2 weeks", "90 minutes", "1.5 seconds", "-0.000001 secs", "100:00:00",
        "-13 mons", "1 hour 30 min", "-1 year -1 mons 1 day", "-1 days 00:00:01", "2 years -1 months"
    ]),
    ("json", &["{\"b\": 1,  \"a\":[1,2]}", "null", "\"\\u0000\"", " 1.50 ", "[]"]),
    ("jsonb", &["{\"b\": 1,  \"a\":[1,2.50]}", "null", "\"\\u00e4\\ud83e\\udd80\"", "1.50", "[]", "\"\\\\u0000\""]),
    ("inet", &[
        "192.168.0.1", "192.168.0.1/24", "::1", "2001:db8::1/64", "::ffff:1.2.3.4", "::1.2.3.4", "::", "::/0",
        "1:0:0:2:0:0:0:3", "0.0.0.0/0", "1:2:3:4:5:6:7:8", "1:0:2:3:4:5:6:7", "::1:2", "fe80::"
    ]),
    ("cidr", &["192.168.0.0/24", "10.0.0.1", "2001:db8::/32", "::/0", "0.0.0.0/0"]),
    ("int4[]", &["{}", "{1,2,NULL}", "{ 1 , -2 }", "{null}"]),
    ("text[]", &["{a,b c,ö}", "{NULL,x}"]),
    ("timestamptz[]", &["{2024-01-01T00:00:00Z,infinity}"]),
    ("numeric[]", &["{1.50,NaN,0}"]),
    ("bool[]", &["{t,f}"]),
    ("float8[]", &["{1e23,NaN,1}"]),
];

/// Expressions whose values no parameter of one text or dimension can be.
const SELECTED: &[&str] = &[
    "NULL::int4",
    "NULL::text[]",
    "ARRAY[[1,2],[3,NULL]]",
    "'[0:1][5:6]={{a,b},{c,NULL}}'::text[]",
    "ARRAY[[[1.50,2],[3,4]],[[5,6],[7,'NaN']]]::numeric[]",
    "ARRAY['{\"a\": 1}', 'null', NULL]::json[]",
    "ARRAY['{\"a\": 1}', '2.50']::jsonb[]",
    "ARRAY['a\"b\\c', '', E'\\n', NULL]",
    "ARRAY['\\x00ff'::bytea, '']",
    "ARRAY['1 day 02:03:04'::interval]",
    "ARRAY['::1'::inet], ARRAY['10.0.0.0/8'::cidr]",
    "ARRAY[1::oid], ARRAY['x'::name], ARRAY['a'::bpchar], ARRAY['2024-01-01'::date], ARRAY['08:00'::time]",
    "ARRAY['0b0f8a5e-3c57-4c1f-9c5a-5f6f2d1f4a10'::uuid]",
    "'x'::char(5), 1.10::numeric(10,4), 'abc'::varchar(2)",
    "repeat(chr(1), 3), chr(127), chr(55), E'\\u00e4'",
    "1 AS \"quoted \"\" name\", 2 AS \"ö\"",
];

/// Texts to make of each type's.
const MUTANTS: usize = 1_000;

/// A value's bytes as they came.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value bound by its binary form alone.
#[derive(Debug)]
struct Bound(Value);

impl ToSql for Bound {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(bytes) = self.0.binary() else {
            return Ok(IsNull::Yes);
        };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn connect(database: &TestDatabase) -> Client {
    let mut client = database.client();
    client
        .batch_execute("SET TimeZone = 'UTC'; SET client_min_messages = warning")
        .unwrap();
    client
}

fn cell_json(row: &postgres::Row, column: usize) -> String {
    let oid = row.columns()[column].type_().oid();
    let raw: Option<Raw> = row.get(column);
    let mut out = Vec::new();
    Cell::new(oid, raw.as_ref().map(|Raw(bytes)| bytes.as_slice()))
        .encode(&mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_columns_json_is_that_of_row_to_json() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    for (ty, texts) in TAKEN {
        for text in *texts {
            let sql =
                format!("SELECT v, row_to_json(t)::text FROM (SELECT $1::text::{ty} AS v) AS t");
            let row = client.query_one(&sql, &[text]).unwrap();
            let expected: String = row.get(1);
            assert_eq!(
                format!("{{\"v\":{}}}", cell_json(&row, 0)),
                expected,
                "{ty} {text:?}"
            );
        }
    }
}

#[test]
fn nulls_and_nested_arrays_are_encoded_as_row_to_json_does() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    for columns in SELECTED {
        let sql = format!("SELECT row_to_json(t)::text, t.* FROM (SELECT {columns}) AS t");
        let row = client.query_one(&sql, &[]).unwrap();
        let mut pairs = Vec::new();
        for column in 1..row.len() {
            let mut key = Vec::new();
            workloads::encode_text(row.columns()[column].name(), &mut key);
            pairs.push(format!(
                "{}:{}",
                String::from_utf8(key).unwrap(),
                cell_json(&row, column)
            ));
        }
        let expected: String = row.get(0);
        assert_eq!(format!("{{{}}}", pairs.join(",")), expected, "{columns}");
    }
}

#[test]
fn a_bound_value_is_what_postgresql_reads_from_the_same_text() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    // Nothing that a session sets may change what a text means.
    client
        .batch_execute("SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kathmandu'")
        .unwrap();
    for (name, texts) in TAKEN {
        for text in *texts {
            let value = Value::from_text(PgType::from_name(name).unwrap(), text)
                .unwrap_or_else(|error| panic!("{error}"));
            let ours = value.to_text().unwrap();
            let sql = format!("SELECT $1::{name}, $2::text::{name}, $3::text::{name}");
            let row = client
                .query_one(&sql, &[&Bound(value), text, &ours])
                .unwrap();
            let [bound, read, rendered] = [0, 1, 2].map(|column| row.get::<_, Raw>(column).0);
            assert_eq!(bound, read, "{name} {text:?}");
            assert_eq!(rendered, read, "{name} {text:?} as {ours:?}");
        }
    }
}

/// Texts like those that are taken, with a character or two left out, put twice or replaced by one of another's.
fn mutants(texts: &[&str], random: &mut impl FnMut() -> u64) -> Vec<String> {
    let alphabet: Vec<char> = texts.iter().flat_map(|text| text.chars()).collect();
    let mut pick = |count: usize| (random() % count.max(1) as u64) as usize;
    let mutate = |_| {
        let mut text: Vec<char> = texts[pick(texts.len())].chars().collect();
        for _ in 0..=pick(2) {
            let at = pick(text.len());
            let other = alphabet[pick(alphabet.len())];
            match pick(3) {
                0 if !text.is_empty() => drop(text.remove(at)),
                1 if !text.is_empty() => text[at] = other,
                _ => text.insert(at, other),
            }
        }
        text.into_iter().collect()
    };
    (0..MUTANTS).map(mutate).collect()
}

#[test]
fn whatever_is_taken_is_taken_by_postgresql_as_the_same_value() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    let mut random = random();
    for (name, texts) in TAKEN {
        let statement = client
            .prepare(&format!("SELECT $1::{name}, $2::text::{name}"))
            .unwrap();
        for text in mutants(texts, &mut random) {
            let Ok(value) = Value::from_text(PgType::from_name(name).unwrap(), &text) else {
                continue;
            };
            let row = client
                .query_one(&statement, &[&Bound(value), &text])
                .unwrap_or_else(|error| panic!("{name} {text:?}: {error:?}"));
            let [bound, read] = [0, 1].map(|column| row.get::<_, Raw>(column).0);
            assert_eq!(bound, read, "{name} {text:?}");
        }
    }
}

/// Marsaglia's xorshift: any bits will do, the same in every run.
fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn every_kind_of_float_is_printed_with_the_digits_that_postgresql_chooses() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    let mut random = random();
    let mut doubles: Vec<f64> = (0..100_000).map(|_| f64::from_bits(random())).collect();
    doubles.extend((-1074..1024).map(|power| 2_f64.powi(power)));
    doubles.extend((-323..309).map(|power| format!("1e{power}").parse::<f64>().unwrap()));
    // Where decimals can lie half way between two floats: integers beyond 53 bits, with few digits.
    doubles.extend((0..100_000).map(|_| {
        let power = (random() % 8) as i32;
        (random() >> 6) as f64 * 10_f64.powi(power)
    }));
    doubles.extend((1..100_000).map(|number| f64::from(number) * 1e18));
    // Where two decimals can be equally near: fractions of few digits in binary.
    doubles.extend((0..200_000).map(|_| {
        let mantissa = random() >> (11 + random() % 50);
        mantissa as f64 * 2_f64.powi((random() % 160) as i32 - 80)
    }));
    compare(&mut client, "float8", &doubles);
    let mut singles: Vec<f32> = (0..100_000)
        .map(|_| f32::from_bits(random() as u32))
        .collect();
    singles.extend((-149..128).map(|power| 2_f32.powi(power)));
    singles.extend((0..100_000).map(|_| (random() >> 34) as f32));
    singles.extend((0..100_000).map(|number| (16_777_216 + number * 5) as f32 / 10.0));
    singles.extend((0..200_000).map(|_| {
        let mantissa = random() >> (40 + random() % 20);
        mantissa as f32 * 2_f32.powi((random() % 80) as i32 - 40)
    }));
    compare(&mut client, "float4", &singles);
}

fn compare<T: ToSql + Sync>(client: &mut Client, ty: &str, values: &[T])
where
    for<'a> Vec<T>: ToSql,
    for<'a> &'a [T]: ToSql,
{
    for part in values.chunks(50_000) {
        let sql = format!("SELECT v, to_json(v)::text FROM unnest($1::{ty}[]) AS v");
        for row in client.query(&sql, &[&part]).unwrap() {
            let expected: String = row.get(1);
            assert_eq!(cell_json(&row, 0), expected);
        }
    }
}

#[test]
fn random_moments_and_decimals_are_encoded_as_row_to_json_does() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    let sql = "SELECT v, to_json(v)::text FROM ( \
        SELECT timestamptz '2000-01-01Z' + (i * 7919 - 2400000) * interval '1 day' + i * interval '0.012345 s' AS v \
        FROM generate_series(0, 13000) AS i) AS t";
    for row in client.query(sql, &[]).unwrap() {
        assert_eq!(cell_json(&row, 0), row.get::<_, String>(1));
    }
    let sql = "SELECT v, to_json(v)::text FROM ( \
        SELECT (i * 7919 - 40000000)::numeric * power(10::numeric, i % 41 - 20) AS v FROM generate_series(0, 10000) AS i) AS t";
    for row in client.query(sql, &[]).unwrap() {
        assert_eq!(cell_json(&row, 0), row.get::<_, String>(1));
    }
    let sql = "SELECT v, to_json(v)::text FROM ( \
        SELECT make_interval(months => (i * 31) % 97 - 48, days => (i * 17) % 61 - 30, secs => (i * 7919) % 100003 / 7.0 - 7000) AS v \
        FROM generate_series(0, 10000) AS i) AS t";
    for row in client.query(sql, &[]).unwrap() {
        assert_eq!(cell_json(&row, 0), row.get::<_, String>(1));
    }
}

#[test]
fn a_type_that_is_not_known_is_refused_with_the_remedy() {
    let database = TestDatabase::fresh();
    let mut client = connect(&database);
    let row = client.query_one("SELECT point(1, 2)", &[]).unwrap();
    let raw: Raw = row.get(0);
    let mut out = Vec::new();
    let error = Cell::new(row.columns()[0].type_().oid(), Some(&raw.0))
        .encode(&mut out)
        .unwrap_err();
    assert!(error.to_string().contains("column::text"), "{error}");
    assert!(out.is_empty());
}
