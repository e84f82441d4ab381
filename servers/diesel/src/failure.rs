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

/// Of whatever else it is.
const INTERNAL_ERROR: &str = "XX000";
const CONNECTION_FAILURE: &str = "08006";
const SERIALIZATION_FAILURE: &str = "40001";

pub(crate) fn failure(error: Error) -> Failure {
    let sqlstate = match &error {
        Error::BrokenTransactionManager => CONNECTION_FAILURE,
        Error::DatabaseError(kind, information) => match kind {
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
                CONNECTION_FAILURE
            }
            DatabaseErrorKind::SerializationFailure => SERIALIZATION_FAILURE,
            _ => by_text(information.message()),
        },
        _ => INTERNAL_ERROR,
    };
    Failure::from_sqlstate(sqlstate, error)
}

fn by_text(message: &str) -> &'static str {
    let known = KNOWN_BY_TEXT.iter().find(|(text, _)| message == *text);
    known.map_or(INTERNAL_ERROR, |(_, sqlstate)| sqlstate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: DatabaseErrorKind, message: &str) -> Failure {
        failure(Error::DatabaseError(kind, Box::new(message.to_owned())))
    }

    #[test]
    fn what_diesel_tells_apart_is_known_by_its_kind() {
        for lost in [
            DatabaseErrorKind::ClosedConnection,
            DatabaseErrorKind::UnableToSendCommand,
        ] {
            assert!(matches!(
                refused(lost, "any text"),
                Failure::ConnectionLost(_)
            ));
        }
        let serialization = refused(DatabaseErrorKind::SerializationFailure, "any text");
        assert!(matches!(serialization, Failure::Conflict(_)));
        let broken = failure(Error::BrokenTransactionManager);
        assert!(matches!(broken, Failure::ConnectionLost(_)));
    }

    #[test]
    fn what_diesel_does_not_tell_apart_is_known_by_the_whole_text() {
        let timeout = refused(DatabaseErrorKind::Unknown, KNOWN_BY_TEXT[0].0);
        assert!(matches!(timeout, Failure::StatementTimeout));
        let deadlock = refused(DatabaseErrorKind::Unknown, "deadlock detected");
        assert!(matches!(deadlock, Failure::Conflict(_)));
        let quoted = refused(DatabaseErrorKind::Unknown, "no \"deadlock detected\" here");
        assert!(matches!(quoted, Failure::Database(_)));
    }
}
