//! What docs/campaign.schema.json has to say of a record.

use serde_json::Value;

pub(crate) fn read() -> Value {
    serde_json::from_str(include_str!("../../../docs/campaign.schema.json")).unwrap()
}

/// What does not fit, a line each.
pub(crate) fn faults(record: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&read()).unwrap();
    let faults = validator.iter_errors(record);
    let line =
        |fault: jsonschema::ValidationError<'_>| format!("{}: {fault}", fault.instance_path());
    faults.map(line).collect()
}
