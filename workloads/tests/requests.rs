//! The requests that are drawn: the same from the same seed, and as the definition says.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use workloads::{Args, Catalog, Request, UNIQUE, Workload};

const EXPECT: &str = "[expect]\nstatements = 1\ntransactions = 1\n";

/// The workloads of these definitions, by their names.
fn catalog(definitions: &[(&str, String)]) -> Catalog {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in definitions {
        fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    fs::write(folder.path().join("one.sql"), "SELECT 1\n").unwrap();
    fs::write(
        folder.path().join("three.sql"),
        "SELECT 1;\nSELECT 2;\nSELECT 3;\n",
    )
    .unwrap();
    Catalog::read(folder.path(), folder.path()).unwrap()
}

/// The requests of one workload.
fn drawn(shape: &str, fields: &str, count: usize) -> Vec<Request> {
    let text = format!("about = \"Mine.\"\nshape = \"{shape}\"\n{fields}\n{EXPECT}");
    let catalog = catalog(&[("mine", text)]);
    catalog.find("mine").unwrap().draw(count, 1)
}

fn body(request: &Request) -> Json {
    serde_json::from_str(request.body.as_ref().unwrap()).unwrap()
}

fn shipped() -> Vec<Workload> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let definitions = root.join("workloads/definitions");
    let catalog = Catalog::read(&definitions, &root.join("sql/queries")).unwrap();
    catalog.workloads
}

#[test]
fn the_same_seed_draws_the_same_requests_of_every_shape() {
    let mut several = 0;
    for workload in shipped() {
        let name = &workload.name;
        let requests = workload.draw(4096, 1);
        assert_eq!(requests.len(), 4096, "{name}");
        assert_eq!(requests, workload.draw(4096, 1), "{name}");
        let prefix = workload.draw(10, 1);
        assert_eq!(
            requests[..10],
            prefix,
            "{name}: fewer are the first of more"
        );
        // Some have but one request.
        if requests.iter().any(|request| *request != requests[0]) {
            assert_ne!(requests, workload.draw(4096, 2), "{name}");
            several += 1;
        }
    }
    assert!(several > 10, "{several}");
}

#[test]
fn a_population_is_all_that_may_be_drawn() {
    for workload in shipped() {
        let distinct: HashSet<_> = workload.draw(4096, 1).into_iter().collect();
        if let Some(population) = workload.population() {
            assert!(distinct.len() <= population, "{}", workload.name);
            assert_eq!(distinct.len() == 1, population == 1, "{}", workload.name);
        }
    }
}

#[test]
fn the_parts_of_a_mix_take_turns_by_their_weights() {
    for workload in shipped() {
        let requests = workload.draw(4096, 1);
        let parts = workload.parts();
        for request in &requests {
            let segment = request.path.split(['/', '?']).nth(1).unwrap();
            assert_eq!(segment, parts[request.part].name);
        }
    }
    let part = |name: &str| {
        let text = format!("about = \"A {name}.\"\nshape = \"delay\"\nsql = \"one.sql\"\n{EXPECT}");
        (name.to_owned(), text)
    };
    let weights = [("a", 15), ("b", 3), ("c", 2)];
    let mix = weights
        .map(|(name, weight)| format!("{name} = {weight}\n"))
        .concat();
    let mix = format!("about = \"Mine.\"\nshape = \"mix\"\n[mix]\n{mix}");
    let parts = weights.map(|(name, _)| part(name));
    let mut definitions: Vec<(&str, String)> = parts
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    definitions.push(("mine", mix));
    let catalog = catalog(&definitions);
    let requests = catalog.find("mine").unwrap().draw(4096, 1);
    for (part, (name, weight)) in weights.iter().enumerate() {
        let share = requests
            .iter()
            .filter(|request| request.part == part)
            .count();
        let (percent, wanted) = (share as f64 * 100.0 / 4096.0, f64::from(*weight) * 5.0);
        assert!(
            (percent - wanted).abs() < 2.0,
            "{name}: {percent} %, not {wanted} %"
        );
    }
}

#[test]
fn the_parts_of_a_mix_draw_from_different_sequences() {
    let read = |name| {
        let params = "[params]\nid = { uniform = { from = 1, to = 100_000 } }";
        (
            name,
            format!("about = \"A.\"\nshape = \"item\"\nsql = \"one.sql\"\n{params}\n{EXPECT}"),
        )
    };
    let mix = "about = \"Mine.\"\nshape = \"mix\"\n[mix]\na = 1\nb = 1\n".to_owned();
    let catalog = catalog(&[read("a"), read("b"), ("mine", mix)]);
    let mut ids: BTreeMap<usize, Vec<Args>> = BTreeMap::new();
    for request in catalog.find("mine").unwrap().draw(200, 1) {
        ids.entry(request.part).or_default().push(request.args);
    }
    let alike = ids[&0].iter().zip(&ids[&1]).filter(|(a, b)| a == b).count();
    assert!(alike < 5, "{alike} of a hundred ids are the same in both");
}

#[test]
fn several_ids_are_distinct_and_ascending() {
    for range in [
        "uniform = { from = 3, to = 12 }",
        "zipf = { from = 3, to = 12, exponent = 1.0 }",
    ] {
        for shape in ["items", "items-at-once"] {
            let fields = format!("sql = \"one.sql\"\ncount = 5\n[params]\nid = {{ {range} }}");
            for request in drawn(shape, &fields, 500) {
                let Args::Ids(ids) = &request.args else {
                    panic!("{:?}", request.args);
                };
                assert_eq!(ids.len(), 5);
                assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
                assert!(ids.iter().all(|id| (3..=12).contains(id)), "{ids:?}");
                let listed: Vec<String> = ids.iter().map(i32::to_string).collect();
                assert_eq!(request.path, format!("/mine/{}", listed.join(",")));
            }
        }
    }
}

#[test]
fn distinct_values_of_a_steep_distribution_are_found_in_the_end() {
    let steep = "zipf = { from = 1, to = 1000, exponent = 60.0 }";
    let fields = format!("sql = \"one.sql\"\ncount = 4\n[params]\nid = {{ {steep} }}");
    assert_eq!(drawn("items", &fields, 1)[0].path, "/mine/1,2,3,4");
    let fields = format!(
        "sql = \"three.sql\"\n[params]\naccount = {{ {steep} }}\namount_cents = {{ {steep} }}"
    );
    let body = r#"{"from":1,"to":2,"amount_cents":1}"#;
    assert_eq!(drawn("transfer", &fields, 1)[0].body.as_deref(), Some(body));
}

#[test]
fn a_transfer_is_between_two_accounts() {
    let params = "account = { uniform = { from = 1, to = 2 } }\namount_cents = { uniform = { from = 5, to = 6 } }";
    let fields = format!("sql = \"three.sql\"\n[params]\n{params}");
    let requests = drawn("transfer", &fields, 200);
    let distinct: HashSet<&str> = requests
        .iter()
        .map(|request| request.body.as_deref().unwrap())
        .collect();
    assert_eq!(distinct.len(), 4, "{distinct:?}");
    for request in &requests {
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/mine")
        );
        let body = body(request);
        assert_ne!(body["from"], body["to"]);
    }
}

#[test]
fn the_parameters_of_a_get_are_in_its_url_and_those_of_others_in_a_body() {
    let bind = r#"
[[bind]]
name = "words"
type = "text"
choice = ["a b+ö&c=1"]
[[bind]]
name = "most"
type = "int4"
choice = ["20"]
[[bind]]
name = "ids"
type = "int4[]"
draw = { uniform = { from = 1, to = 4 } }
count = 2
[[bind]]
name = "label"
type = "text"
draw = { uniform = { from = 7, to = 7 } }
format = "item {}"
"#;
    let fields = |method: &str| format!("sql = \"one.sql\"\nmethod = \"{method}\"{bind}");
    let get = &drawn("table", &fields("GET"), 1)[0];
    let Args::Texts(texts) = &get.args else {
        panic!("{:?}", get.args);
    };
    let ids = &texts[2];
    let encoded = ids
        .replace('{', "%7B")
        .replace('}', "%7D")
        .replace(',', "%2C");
    let query = format!("words=a+b%2B%C3%B6%26c%3D1&most=20&ids={encoded}&label=item+7");
    assert_eq!(
        (get.path.as_str(), &get.body),
        (format!("/mine?{query}").as_str(), &None)
    );
    let patch = &drawn("table", &fields("PATCH"), 1)[0];
    assert_eq!(
        (patch.method.as_str(), patch.path.as_str()),
        ("PATCH", "/mine")
    );
    assert_eq!(
        patch.args, get.args,
        "the values are the same, whatever carries them"
    );
    let body = body(patch);
    assert_eq!(
        (&body["words"], &body["most"], &body["label"]),
        (&"a b+ö&c=1".into(), &20.into(), &"item 7".into())
    );
    assert_eq!(
        format!("{{{}}}", body["ids"].to_string().trim_matches(['[', ']'])),
        *ids
    );
}

#[test]
fn a_unique_text_is_one_that_was_there_as_often_as_its_definition_says() {
    for repeats in [0, 1, 20, 100] {
        let bind = format!(
            "[[bind]]\nname = \"email\"\ntype = \"text\"\nunique = \"u{UNIQUE}@x\"\nrepeats = {repeats}"
        );
        let requests = drawn("create", &format!("sql = \"one.sql\"\n{bind}"), 4096);
        let again: Vec<&Request> = requests
            .iter()
            .filter(|request| !request.is_unique())
            .collect();
        let percent = again.len() as f64 * 100.0 / 4096.0;
        assert!(
            (percent - f64::from(repeats)).abs() < 2.0,
            "{repeats}: {percent} %"
        );
        let distinct: HashSet<_> = again.iter().map(|request| &request.body).collect();
        assert!(distinct.len() <= 64, "{}", distinct.len());
        assert!(repeats < 20 || distinct.len() == 64, "{}", distinct.len());
    }
}
