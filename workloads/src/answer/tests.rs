use super::*;
use proptest::prelude::*;

fn lamp() -> Item {
    Item {
        id: 42,
        owner_id: 7,
        title: "Lamp \"Ö\"".to_owned(),
        description: None,
        price_cents: 1999,
        stock: 0,
    }
}

#[test]
fn an_item_is_compact_json_in_column_order() {
    let expected = r#"{"id":42,"owner_id":7,"title":"Lamp \"Ö\"","description":null,"price_cents":1999,"stock":0}"#;
    assert_eq!(lamp().encode(), expected.as_bytes());
}

#[test]
fn a_delay_is_one_number() {
    assert_eq!(
        Delay { waited_ms: 10 }.encode(),
        r#"{"waited_ms":10}"#.as_bytes()
    );
}

#[test]
fn a_greeting_is_escaped() {
    let greeting = "a \"b\"\n";
    assert_eq!(
        Greeting { greeting }.encode(),
        r#"{"greeting":"a \"b\"\n"}"#.as_bytes()
    );
}

#[test]
fn an_instant_has_the_digits_it_needs_and_no_quotes_within() {
    let entry = |micros_since_2000| FeedEntry {
        id: 1,
        title: "Lamp".to_owned(),
        price_cents: 5,
        created_at: Timestamp(micros_since_2000),
        seller: "Zoë".to_owned(),
    };
    let instants = [
        (0, "2000-01-01T00:00:00+00:00"),
        (1_500_000, "2000-01-01T00:00:01.5+00:00"),
        (-1, "1999-12-31T23:59:59.999999+00:00"),
        (i64::MAX, "infinity"),
    ];
    for (micros_since_2000, text) in instants {
        let expected = format!(
            r#"[{{"id":1,"title":"Lamp","price_cents":5,"created_at":"{text}","seller":"Zoë"}}]"#
        );
        let encoded = FeedEntry::encode_all(&[entry(micros_since_2000)]);
        assert_eq!(encoded, expected.as_bytes());
    }
}

#[test]
fn an_order_begins_as_its_item_does() {
    let order = Order {
        item: lamp(),
        owner: Owner {
            id: 7,
            name: "Zoë".to_owned(),
        },
        comments: Vec::new(),
    };
    let item = lamp().encode();
    let rest = r#","owner":{"id":7,"name":"Zoë"},"comments":[]}"#;
    assert_eq!(
        order.encode(),
        [&item[..item.len() - 1], rest.as_bytes()].concat()
    );
}

#[test]
fn no_items_are_an_empty_array() {
    assert_eq!(Item::encode_all(&[]), "[]".as_bytes());
}

proptest! {
    #[test]
    fn any_text_survives_encoding(title in ".*", description in proptest::option::of(".*"), id: i32) {
        let item = Item { id, title: title.clone(), description: description.clone(), ..lamp() };
        let read: serde_json::Value = serde_json::from_slice(&item.encode()).unwrap();
        prop_assert_eq!(read["title"].as_str(), Some(title.as_str()));
        prop_assert_eq!(read["description"].as_str(), description.as_deref());
        prop_assert_eq!(read["id"].as_i64(), Some(i64::from(id)));
    }
}

#[test]
fn fortunes_are_sorted_by_their_bytes_and_escaped() {
    let fortune = |id, message: &str| Fortune {
        id,
        message: message.to_owned(),
    };
    let page = Fortune::page(vec![fortune(2, "ż"), fortune(1, "<b>\"&'")]).unwrap();
    let page = std::str::from_utf8(&page).unwrap();
    let rows = "<tr><td>1</td><td>&#60;b&#62;&#34;&#38;&#39;</td></tr><tr><td>0</td><td>The queue you join is the one that stops.</td></tr><tr><td>2</td><td>ż</td></tr></table>";
    assert!(page.contains(rows), "{page}");
}
