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
