//! The typed parameters of a request: from the query of its URL, or from its JSON body.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};
use workloads::{Bind, Value, ValueError};

use crate::Failure;

/// # Errors
/// A parameter is missing, given twice, unknown, or not of its type.
pub(crate) fn of_url(binds: &[Bind], query: &str) -> Result<Vec<Value>, Failure> {
    let given: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        form_urlencoded::parse(query.as_bytes()).collect();
    refuse_others(binds, given.iter().map(|(name, _)| name.as_ref()))?;
    if given.len() > binds.len() {
        let message = "a parameter is given twice".to_owned();
        return Err(Failure::BadParameter(message));
    }
    let value = |bind: &Bind| {
        let found = given.iter().find(|(name, _)| *name == bind.name.as_str());
        let (_, text) = found.ok_or_else(|| missing(bind))?;
        bind.from_text(text).map_err(|error| unfit(bind, &error))
    };
    binds.iter().map(value).collect()
}

/// # Errors
/// The body is no JSON object; otherwise as [`of_url`].
pub(crate) fn of_body(binds: &[Bind], body: &[u8]) -> Result<Vec<Value>, Failure> {
    let object: Map<String, Json> =
        serde_json::from_slice(body).map_err(|_| Failure::BadBody("a JSON object"))?;
    refuse_others(binds, object.keys().map(String::as_str))?;
    let value = |bind: &Bind| {
        let json = object.get(&bind.name).ok_or_else(|| missing(bind))?;
        bind.from_json(json).map_err(|error| unfit(bind, &error))
    };
    binds.iter().map(value).collect()
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

fn missing(bind: &Bind) -> Failure {
    Failure::BadParameter(format!("the parameter {} is missing", bind.name))
}

fn unfit(bind: &Bind, error: &ValueError) -> Failure {
    Failure::BadParameter(format!("the parameter {}: {error}", bind.name))
}
