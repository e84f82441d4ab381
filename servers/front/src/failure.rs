//! Everything that can go wrong with a request, and the answer each failure gets.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use workloads::{ColumnError, PROBLEM};

use crate::lane::Cause;

/// Why a request was not answered with what it asked for. A [`Cause`] is for the log alone: its text never
/// reaches a client.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the id must be a whole number from 1 to 2147483647")]
    BadId,
    /// The text is ours: it names the parameter and what it may be.
    #[error("{0}")]
    BadParameter(String),
    #[error("the body must be {0}")]
    BadBody(&'static str),
    #[error("the body is too large")]
    TooLarge,
    #[error("no such route")]
    NoRoute,
    #[error("this route does not answer this method")]
    WrongMethod,
    #[error("no row has this id")]
    Absent,
    #[error("it exists already")]
    Exists,
    /// Nobody is there to be answered.
    #[error("the client has gone")]
    ClientGone,
    #[error("another transaction was in the way")]
    Conflict(#[source] Cause),
    #[error("the queue is full")]
    QueueFull,
    #[error("no more subscribers are taken")]
    NoMoreSubscribers,
    #[error("no connection became free in time")]
    NoConnection,
    #[error("the connection to the database was lost, or could not be made")]
    ConnectionLost(#[source] Cause),
    #[error("the statement took too long")]
    StatementTimeout,
    #[error("the database could not answer")]
    Database(#[source] Cause),
}

impl Failure {
    /// What a SQLSTATE means to the client.
    ///
    /// A lost connection is 503: the request may well succeed on the next one. So is a server that is starting,
    /// stopping or out of connections.
    pub fn from_sqlstate(code: &str, cause: impl Into<Cause>) -> Failure {
        match code {
            "57014" => Failure::StatementTimeout,
            "57P01" | "57P02" | "57P03" | "57P05" | "53300" => {
                Failure::ConnectionLost(cause.into())
            }
            "40001" | "40P01" => Failure::Conflict(cause.into()),
            _ if code.starts_with("08") => Failure::ConnectionLost(cause.into()),
            _ => Failure::Database(cause.into()),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::BadId
            | Failure::BadParameter(_)
            | Failure::BadBody(_)
            | Failure::ClientGone => StatusCode::BAD_REQUEST,
            Failure::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::NoRoute | Failure::Absent => StatusCode::NOT_FOUND,
            Failure::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Failure::Exists | Failure::Conflict(_) => StatusCode::CONFLICT,
            Failure::QueueFull
            | Failure::NoMoreSubscribers
            | Failure::NoConnection
            | Failure::ConnectionLost(_) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::StatementTimeout => StatusCode::GATEWAY_TIMEOUT,
            Failure::Database(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer, in the form of RFC 9457. `retry_after` is given with every 503.
    pub(crate) fn into_response(self, retry_after: Duration) -> Response {
        let status = self.status();
        let title = status.canonical_reason().unwrap_or_default();
        let problem = serde_json::json!({
            "type": "about:blank", "title": title, "status": status.as_u16(), "detail": self.to_string(),
        });
        let json = [(CONTENT_TYPE, HeaderValue::from_static(PROBLEM))];
        let mut response = (status, json, problem.to_string()).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = retry_after.as_millis().div_ceil(1000).max(1) as u64;
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Failure {
        Failure::Database(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sqlstate_decides_the_status() {
        let cases = [
            ("57014", 504),
            ("57P01", 503),
            ("53300", 503),
            ("08006", 503),
            ("40001", 409),
            ("40P01", 409),
            ("42P01", 500),
            ("XX000", 500),
        ];
        for (code, status) in cases {
            assert_eq!(
                Failure::from_sqlstate(code, "driver text")
                    .status()
                    .as_u16(),
                status,
                "{code}"
            );
        }
    }

    #[test]
    fn a_part_of_a_second_is_retried_after_a_whole_one() {
        let retry_after =
            |wait| Failure::QueueFull.into_response(wait).headers()[RETRY_AFTER].clone();
        assert_eq!(retry_after(Duration::from_millis(1)), "1");
        assert_eq!(retry_after(Duration::from_millis(1001)), "2");
    }
}
