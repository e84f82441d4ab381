//! The shapes that read, and those that wait.

use crate::fake::Server;
use crate::script::{ABSENT, DATABASE};

fn lamp(id: i32) -> String {
    format!(
        r#"{{"id":{id},"owner_id":7,"title":"Lamp","description":null,"price_cents":1999,"stock":3}}"#
    )
}

#[tokio::test]
async fn a_greeting_is_serialised_json() {
    let server = Server::start(&[]).await;
    let answer = server.client().await.get("/greeting").await;
    assert_eq!(
        answer.told(),
        (
            200,
            "application/json",
            r#"{"greeting":"Hello, \"World\"!"}"#
        )
    );
    assert!(server.control.asked().is_empty());
}

#[tokio::test]
async fn items_are_read_by_a_statement_each_in_the_order_of_the_url() {
    let server = Server::start(&[]).await;
    let answer = server.client().await.get("/items/9,3,5").await;
    let body = format!("[{},{},{}]", lamp(9), lamp(3), lamp(5));
    assert_eq!(answer.told(), (200, "application/json", body.as_str()));
    assert_eq!(server.control.asked(), ["item 9", "item 3", "item 5"]);
}

#[tokio::test]
async fn items_at_once_are_read_by_one_statement() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let answer = client.get("/items-at-once/9,3,5").await;
    let body = format!("[{},{},{}]", lamp(3), lamp(5), lamp(9));
    assert_eq!(answer.told(), (200, "application/json", body.as_str()));
    assert_eq!(server.control.asked(), [r#"items at once {"9","3","5"}"#]);
    let absent = client.get(&format!("/items-at-once/3,{ABSENT}")).await;
    assert_eq!(
        (absent.status, absent.body),
        (200, format!("[{}]", lamp(3)))
    );
}

#[tokio::test]
async fn an_item_of_several_that_is_absent_or_fails_decides_the_answer() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for (id, status) in [(ABSENT, 404), (DATABASE, 500)] {
        let answer = client.get(&format!("/items/1,{id},2")).await;
        assert_eq!(
            (answer.status, answer.media_type()),
            (status, "application/problem+json")
        );
        let asked = server.control.asked();
        assert_eq!(asked, ["item 1".to_owned(), format!("item {id}")]);
    }
}

#[tokio::test]
async fn a_list_with_anything_but_ids_is_a_bad_request() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    for route in ["items", "items-at-once"] {
        for ids in [
            "0",
            "1,0",
            "1,",
            ",1",
            ",",
            "1,,2",
            "1;2",
            "1,-2",
            "1,2147483648",
            "%FF",
            "1,%202",
        ] {
            let answer = client.get(&format!("/{route}/{ids}")).await;
            assert_eq!(
                (answer.status, answer.media_type()),
                (400, "application/problem+json"),
                "{route}/{ids}"
            );
        }
    }
    assert!(server.control.asked().is_empty());
}

#[tokio::test]
async fn a_held_connection_is_held_as_long_as_the_row_says() {
    let server = Server::start(&[]).await;
    let answer = server.client().await.get("/held").await;
    assert_eq!(
        answer.told(),
        (200, "application/json", r#"{"waited_ms":10}"#)
    );
    assert_eq!(server.control.asked(), ["held", "hold 10ms"]);
}

#[tokio::test]
async fn a_free_wait_goes_through_the_lane_and_takes_no_place() {
    let server = Server::start(&["--pool", "1", "--queue", "0"]).await;
    let mut busy = server.client().await;
    busy.send("GET", "/ten-ms").await;
    server.begun(1).await;
    let mut client = server.client().await;
    let answer = client.get("/free").await;
    assert_eq!(
        answer.told(),
        (200, "application/json", r#"{"waited_ms":20}"#)
    );
    assert_eq!(server.control.asked(), ["ten ms", "wait 20ms"]);
    assert_eq!(client.get("/usage").await.json()["admitted"], 1);
}

#[tokio::test]
async fn fortunes_are_a_page_sorted_by_message_and_escaped() {
    let server = Server::start(&[]).await;
    let answer = server.client().await.get("/fortunes").await;
    assert_eq!(
        (answer.status, answer.media_type()),
        (200, "text/html; charset=utf-8")
    );
    let rows = [
        "<tr><td>3</td><td>&#60;script&#62;alert(&#34;1&#34; &#38; &#39;2&#39;)&#60;/script&#62;</td></tr>",
        "<tr><td>1</td><td>A bad word</td></tr>",
        "<tr><td>0</td><td>The queue you join is the one that stops.</td></tr>",
        "<tr><td>4</td><td>Zebra</td></tr>",
        "<tr><td>2</td><td>żółw</td></tr>",
    ];
    assert!(answer.body.contains(&rows.concat()), "{}", answer.body);
    assert!(answer.body.starts_with("<!doctype html>"));
}

#[tokio::test]
async fn a_feed_is_what_is_below_an_id() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let entry = |id| {
        format!(
            r#"{{"id":{id},"title":"Lamp","price_cents":1999,"created_at":"2025-01-02T03:04:05.678+00:00","seller":"Zoë"}}"#
        )
    };
    let answer = client.get("/feed/3").await;
    let body = format!("[{},{}]", entry(2), entry(1));
    assert_eq!(answer.told(), (200, "application/json", body.as_str()));
    assert_eq!(client.get("/feed/1").await.body, "[]");
    assert_eq!(client.get("/feed/0").await.status, 400);
}

#[tokio::test]
async fn an_order_is_an_item_with_what_belongs_to_it() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let answer = client.get("/order/42").await;
    let expected = concat!(
        r#"{"id":42,"owner_id":7,"title":"Lamp","description":null,"price_cents":1999,"stock":3,"#,
        r#""owner":{"id":7,"name":"Zoë"},"#,
        r#""comments":[{"id":3,"user_id":8,"body":"“Bright”\n"},{"id":9,"user_id":8,"body":""}]}"#,
    );
    assert_eq!(answer.told(), (200, "application/json", expected));
    assert_eq!(
        server.control.asked(),
        ["order item 42", "order owner 7", "order comments 42"]
    );
    assert_eq!(client.get(&format!("/order/{ABSENT}")).await.status, 404);
    assert_eq!(
        server.control.asked(),
        [format!("order item {ABSENT}")],
        "what does not exist has nothing that belongs to it"
    );
}

#[tokio::test]
async fn a_mix_has_no_route_of_its_own() {
    let server = Server::start(&[]).await;
    assert_eq!(server.client().await.get("/mixed").await.status, 404);
}
