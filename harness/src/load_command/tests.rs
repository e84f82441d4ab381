//! The command against the null server: what it prints, what it writes, what it refuses.

use std::sync::atomic::AtomicBool;

use clap::Parser;
use load::NullServer;
use serde_json::Value;

use super::*;

const BODY: &[u8] = b"{\"answer\":42}";

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    args: LoadArgs,
}

fn args(url: &str, flags: &[&str]) -> LoadArgs {
    let words = ["load", url].into_iter().chain(flags.iter().copied());
    CommandLine::try_parse_from(words).unwrap().args
}

fn server() -> (NullServer, String) {
    let server = NullServer::start(None, "application/json", BODY).unwrap();
    let url = format!("http://{}/some?thing", server.address());
    (server, url)
}

/// A quarter of a second of load, as the document and as the summary.
fn measured(url: &str, flags: &[&str]) -> (Value, String) {
    let short = ["-d", "250ms", "--warmup", "50ms", "-c", "2"];
    let args = args(url, &[&short, flags].concat());
    let plan = plan(&args, &Target::parse(url).unwrap()).unwrap();
    let outcome = load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let document = json::document(url, &plan, &outcome).unwrap();
    (
        serde_json::from_str(&document).unwrap(),
        summary::of(url, &plan, &outcome),
    )
}

/// As much of JSON Schema as docs/load.schema.json uses. Panics with the path of what does not fit.
fn check(schema: &Value, root: &Value, value: &Value, path: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        check(&root["$defs"][name], root, value, path);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allows = |allowed: &Value| allowed == kind || (kind == "integer" && allowed == "number");
    match &schema["type"] {
        Value::Null => {}
        Value::Array(kinds) => assert!(kinds.iter().any(allows), "{path} is {kind}"),
        one => assert!(allows(one), "{path} is {kind}, not {one}"),
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{path} is {value}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{path}");
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], root, item, &format!("{path}[{index}]"));
    }
    let Some(fields) = value.as_object().filter(|_| schema["type"] != Value::Null) else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            fields.contains_key(name.as_str().unwrap()),
            "{path} lacks {name}"
        );
    }
    for (name, field) in fields {
        let path = format!("{path}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => panic!("{path} is not in the schema"),
            (Value::Null, rest) => check(rest, root, field, &path),
            (property, _) => check(property, root, field, &path),
        }
    }
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/load.schema.json")).unwrap();
    let (_server, url) = server();
    for flags in [
        &["--expect-body", "{\"answer\":42}"][..],
        &["--rate", "500", "--poisson"],
        &["--think", "1ms", "--expect-status", "201"],
        &["--rate", "5000000"],
    ] {
        let (document, _) = measured(&url, flags);
        check(&schema, &schema, &document, "$");
    }
}

#[test]
fn the_document_has_the_figures_of_the_run() {
    let (_server, url) = server();
    let (document, summary) =
        measured(&url, &["--rate", "400", "--expect-body", "{\"answer\":42}"]);
    assert_eq!(document["counts"]["scheduled"], 100);
    assert_eq!(document["counts"]["correct"], 100);
    assert_eq!(document["warmup_counts"]["scheduled"], 20);
    assert_eq!(document["rate"]["offered"], 400.0);
    assert_eq!(document["connections"]["established"], 2);
    assert_eq!(document["seconds"], 0.25);
    assert!(document["response_ns"]["p50"].as_u64() >= document["service_ns"]["p50"].as_u64());
    for text in [
        "100 scheduled = 100 correct",
        "400.0 /s offered",
        "open loop, 400/s",
        "response",
        "service",
        "p99.9",
        "##",
    ] {
        assert!(summary.contains(text), "no {text:?} in\n{summary}");
    }
}

#[test]
fn a_wrong_answer_is_shown_with_what_was_expected_and_what_came() {
    let (_server, url) = server();
    let (document, summary) = measured(&url, &["--expect-body", "something else"]);
    assert_eq!(document["counts"]["wrong"], document["counts"]["scheduled"]);
    assert_eq!(
        document["errors"]["wrong body"],
        document["counts"]["wrong"]
    );
    assert_eq!(document["response_ns"], Value::Null);
    assert!(
        summary.contains("something else") && summary.contains("42"),
        "{summary}"
    );
}

#[test]
fn a_rate_out_of_reach_shows_lower_bounds() {
    let (_server, url) = server();
    let (document, summary) = measured(&url, &["--rate", "5000000"]);
    assert!(document["response_lower_bounds"].as_u64() > Some(0));
    assert_ne!(document["verdict"], "valid");
    assert!(summary.contains(">= "), "{summary}");
}

#[test]
fn nonsense_is_refused_with_one_line_that_names_it() {
    let (_server, url) = server();
    let stop = AtomicBool::new(false);
    let cases: &[(&[&str], &str)] = &[
        (&["--rate", "0"], "rate of 0"),
        (&["--rate", "-1"], "rate of -1"),
        (&["--rate", "1e12"], "10,000,000"),
        (&["-c", "0"], "0 connections"),
        (&["-c", "100000000"], "file descriptors"),
        (&["-d", "0s"], "0 s"),
        (&["--timeout", "0s"], "timeout"),
        (&["-X", "GE T"], "GE T"),
        (&["-H", "no colon"], "no colon"),
        (&["-H", "a b: c"], "a b"),
        (&["--body", "@/no/such/file"], "/no/such/file"),
        (&["--cpus", "1023"], "CPU 1023"),
        (&["--records", "/no/such/folder/x"], "/no/such/folder/x"),
    ];
    for (flags, text) in cases {
        let error = format!("{:#}", run(&args(&url, flags), &stop).unwrap_err());
        assert!(
            error.contains(text) && !error.contains('\n'),
            "{flags:?}: {error}"
        );
    }
    for flags in [
        &["--rate", "fast"][..],
        &["-d", "10"],
        &["--poisson"],
        &["--expect-status", "99"],
        &["--rate", "5", "--think", "1s"],
    ] {
        let words = ["load", &url].into_iter().chain(flags.iter().copied());
        assert!(
            CommandLine::try_parse_from(words).is_err(),
            "{flags:?} was accepted"
        );
    }
}

#[test]
fn durations_carry_their_unit() {
    assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(duration("0s"), Ok(Duration::ZERO));
    for refused in [
        "", "2", "s", "-1s", "2 s", "1h", "nans", "infs", "1e3s", "90000s",
    ] {
        assert!(duration(refused).is_err(), "{refused:?} was accepted");
    }
}
