//! The typed parameters of a request: from the query of its URL, or from its JSON body.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use workloads::{Bind, Value, ValueError};

use crate::Failure;

/// # Errors
/// A parameter is missing, given twice, unknown, or not of its type.
pub(crate) fn of_url(binds: &[Bind], query: &str) -> Result<Vec<Value>, Failure> {
    let given: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        form_urlencoded::parse(query.as_bytes()).collect();
    in_order(binds, &given, |bind, text| bind.from_text(text))
}

/// # Errors
/// The body is no JSON object; otherwise as [`of_url`].
pub(crate) fn of_body(binds: &[Bind], body: &[u8]) -> Result<Vec<Value>, Failure> {
    let Members(given) =
        serde_json::from_slice(body).map_err(|_| Failure::BadBody("a JSON object"))?;
    in_order(binds, &given, Bind::from_json)
}

/// The values of `$1`, `$2`, and so on.
fn in_order<N: AsRef<str>, T>(
    binds: &[Bind],
    given: &[(N, T)],
    read: impl Fn(&Bind, &T) -> Result<Value, ValueError>,
) -> Result<Vec<Value>, Failure> {
    refuse_others(binds, given.iter().map(|(name, _)| name.as_ref()))?;
    let value = |bind: &Bind| {
        let mut found = given.iter().filter(|(name, _)| name.as_ref() == bind.name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => read(bind, value).map_err(|error| unfit(bind, &error)),
            (None, _) => Err(bad(bind, "is missing")),
            (Some(_), Some(_)) => Err(bad(bind, "is given twice")),
        }
    };
    binds.iter().map(value).collect()
}

/// The members of a JSON object, each that there is: a map would keep the last of those with one name.
struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct AnObject;

        impl<'de> Visitor<'de> for AnObject {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = object.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(AnObject)
    }
}

fn refuse_others<'a>(
    binds: &[Bind],
    mut given: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let unknown = given.find(|name| binds.iter().all(|bind| bind.name != *name));
    let Some(unknown) = unknown else {
        return Ok(());
    };
    let names: Vec<&str> = binds.iter().map(|bind| bind.name.as_str()).collect();
    let message = match names.as_slice() {
        [] => format!("unknown parameter {unknown:?}; this route takes none"),
        names => format!(
            "unknown parameter {unknown:?}; this route takes {}",
            names.join(", ")
        ),
    };
    Err(Failure::BadParameter(message))
}

fn unfit(bind: &Bind, error: &ValueError) -> Failure {
    Failure::BadParameter(format!("the parameter {}: {error}", bind.name))
}

fn bad(bind: &Bind, what: &str) -> Failure {
    Failure::BadParameter(format!("the parameter {} {what}", bind.name))
}
