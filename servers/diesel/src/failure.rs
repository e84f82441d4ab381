//! What an error of diesel's is to the client.

use diesel::result::{DatabaseErrorKind, Error};
use front::Failure;

/// The texts of errors that diesel does not tell apart, with their SQLSTATE. It keeps the SQLSTATE of a refusal to
/// itself: a kind tells some, and neither of these. A session has them untranslated where its user may ask for that.
const KNOWN_BY_TEXT: [(&str, &str); 3] = [
    ("canceling statement due to statement timeout", "57014"),
    ("canceling statement due to user request", "57014"),
    ("deadlock detected", "40P01"),
];

pub(crate) fn failure(error: Error) -> Failure {
    let sqlstate = match &error {
        Error::BrokenTransactionManager => "08006",
        Error::DatabaseError(kind, information) => match kind {
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => "08006",
            DatabaseErrorKind::SerializationFailure => "40001",
            _ => by_text(information.message()),
        },
        _ => INTERNAL,
    };
    Failure::from_sqlstate(sqlstate, error)
}

/// Whatever else it is.
const INTERNAL: &str = "XX000";

fn by_text(message: &str) -> &'static str {
    let known = KNOWN_BY_TEXT.iter().find(|(text, _)| message == *text);
    known.map_or(INTERNAL, |(_, sqlstate)| sqlstate)
}
