//! Row types and their encoders. The order of the fields is the order of the columns in the SQL and of the keys
//! in the JSON, which lets the harness derive the same bytes from PostgreSQL's own `row_to_json`.

use bytes::Bytes;
use serde::Serialize;

/// The row of the shape `item`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: i32,
    pub owner_id: i32,
    pub title: String,
    pub description: Option<String>,
    pub price_cents: i32,
    pub stock: i32,
}

/// The row of the shape `delay`: what the statement says it waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delay {
    pub waited_ms: i32,
}

impl Item {
    pub fn encode(&self) -> Bytes {
        // Keys, punctuation and the longest numbers come to about 130 bytes.
        let text = self.title.len() + self.description.as_ref().map_or(0, String::len);
        json(self, 130 + text)
    }
}

impl Delay {
    pub fn encode(&self) -> Bytes {
        json(self, 32)
    }
}

/// Compact JSON. `capacity` spares the reallocations; it need not be exact.
fn json(row: &impl Serialize, capacity: usize) -> Bytes {
    let mut body = Vec::with_capacity(capacity);
    // Only a failing writer, a failing `Serialize` or a non-string key can make this fail: none is possible here.
    match serde_json::to_writer(&mut body, row) {
        Ok(()) => Bytes::from(body),
        Err(_) => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
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
}
