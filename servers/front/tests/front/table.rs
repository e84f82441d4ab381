//! Any statement: parameters by name and type, rows by the types of their columns.

use crate::client::Answer;
use crate::fake::Server;

const SINCE: &str = "2025-01-01T00:00:00Z";
const ROWS: &str = concat!(
    r#"[{"words":"a b+ö","most":20,"since":"2025-01-01T00:00:00+00:00","price":12.50,"tags":["a","b"]},"#,
    r#"{"words":null,"most":null,"since":null,"price":null,"tags":null}]"#,
);

/// Asserts that an answer is a bad request whose detail has these words.
fn assert_bad(answer: &Answer, words: &[&str]) {
    assert_eq!(
        (answer.status, answer.media_type()),
        (400, "application/problem+json"),
        "{words:?}: {}",
        answer.body
    );
    let problem = answer.json();
    let detail = problem["detail"].as_str().unwrap();
    for word in words {
        assert!(detail.contains(word), "{word:?} is not in {detail:?}");
    }
    assert_eq!(detail.lines().count(), 1, "{detail}");
}

#[tokio::test]
async fn parameters_of_a_url_are_known_by_their_names() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let queries = [
        "words=a%20b%2B%C3%B6&most=20&since=2025-01-01T00:00:00Z",
        "since=2025-01-01T01:00:00%2B01:00&most=20&words=a+b%2B%C3%B6",
    ];
    for query in queries {
        let answer = client.get(&format!("/search?{query}")).await;
        assert_eq!(answer.told(), (200, "application/json", ROWS), "{query}");
        let [asked] = &server.control.asked()[..] else {
            panic!("one statement was expected");
        };
        assert!(
            asked.starts_with("table a b+ö 20 2025-01-01T00:00:00"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn parameters_of_a_body_are_known_by_their_names() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let body = format!(r#"{{"since":"{SINCE}","most":20,"words":"a b+ö"}}"#);
    for (method, path) in [("POST", "/bump"), ("PATCH", "/patch")] {
        let answer = client.ask(method, path, &body).await;
        assert_eq!(answer.told(), (200, "application/json", ROWS), "{method}");
    }
    let nulls = r#"{"since":null,"most":null,"words":null}"#;
    assert_eq!(client.ask("POST", "/bump", nulls).await.status, 200);
    assert_eq!(
        server.control.asked().pop().unwrap(),
        "table null null null"
    );
}

#[tokio::test]
async fn a_parameter_of_a_url_that_does_not_fit_is_named() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let cases: [(&str, &[&str]); 10] = [
        ("", &["words is missing"]),
        ("?", &["words is missing"]),
        ("?words=a&most=1", &["since is missing"]),
        (
            "?words=a&most=1&since=2025-01-01T00:00:00Z&page=2",
            &["\"page\"", "words, most, since"],
        ),
        (
            "?words=a&most=1&words=b&since=2025-01-01T00:00:00Z",
            &["words is given twice"],
        ),
        ("?words=a&words=b&most=1", &["words is given twice"]),
        (
            "?words=a&most=two&since=2025-01-01T00:00:00Z",
            &["most", "\"two\"", "int4"],
        ),
        (
            "?words=a&most=&since=2025-01-01T00:00:00Z",
            &["most", "int4"],
        ),
        (
            "?words=a&most=2147483648&since=2025-01-01T00:00:00Z",
            &["most", "2147483647"],
        ),
        ("?words=a&most=1&since=yesterday", &["since", "timestamptz"]),
    ];
    for (query, words) in cases {
        assert_bad(&client.get(&format!("/search{query}")).await, words);
    }
    assert_bad(
        &client.get("/all?page=2").await,
        &["\"page\"", "takes none"],
    );
    assert!(server.control.asked().is_empty());
    assert_eq!(client.get("/all").await.body, "[]");
}

#[tokio::test]
async fn a_parameter_of_a_body_that_does_not_fit_is_named() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let cases: [(&str, &[&str]); 9] = [
        ("", &["a JSON object"]),
        ("[1]", &["a JSON object"]),
        (r#"{"words":"a","#, &["a JSON object"]),
        ("{}", &["words is missing"]),
        (r#"{"words":"a","most":1}"#, &["since is missing"]),
        (
            r#"{"words":"a","most":1,"since":null,"page":2}"#,
            &["\"page\"", "words, most, since"],
        ),
        (
            r#"{"words":"a","most":1,"most":2,"since":null}"#,
            &["most is given twice"],
        ),
        (
            r#"{"words":"a","most":1.5,"since":null}"#,
            &["most", "int4"],
        ),
        (
            r#"{"words":["a"],"most":1,"since":null}"#,
            &["words", "text"],
        ),
    ];
    for (method, path) in [("POST", "/bump"), ("PATCH", "/patch")] {
        for (body, words) in cases {
            assert_bad(&client.ask(method, path, body).await, words);
        }
    }
    assert!(server.control.asked().is_empty());
}

#[tokio::test]
async fn a_table_answers_its_own_method_alone() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for (method, path) in [
        ("POST", "/search"),
        ("GET", "/bump"),
        ("PUT", "/patch"),
        ("POST", "/patch"),
    ] {
        let answer = client.ask(method, path, "{}").await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (405, "application/problem+json"),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::start(&[]).await;
    let large = format!(r#"{{"words":"{}"}}"#, "a".repeat(3 << 20));
    for (method, path) in [
        ("POST", "/bump"),
        ("PATCH", "/patch"),
        ("POST", "/signup"),
        ("POST", "/transfer"),
    ] {
        let answer = server.client().await.ask(method, path, &large).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (413, "application/problem+json"),
            "{path}"
        );
    }
    assert!(server.control.asked().is_empty());
}
