//! Where libpq is to connect, and how the session is set from its first moment.

use front::{CONNECT_TIMEOUT, Config, OpenError};
use url::Url;

/// A URL for libpq, and what to call it in errors.
#[derive(Debug)]
pub(crate) struct Target {
    /// May hold a password.
    pub(crate) url: String,
    /// The host and port.
    pub(crate) address: String,
}

impl Target {
    /// The database of a server's flags, as `lane` connects to it.
    ///
    /// # Errors
    /// The URL cannot be read. libpq would say so only when it connects, and quote from it.
    pub(crate) fn new(flags: &Config, lane: &str) -> Result<Target, OpenError> {
        let parsed = Url::parse(&flags.database_url);
        let mut url = parsed.map_err(|error| OpenError::Url(error.into()))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(OpenError::Url("it is no URL of PostgreSQL".into()));
        }
        let address = address(&url);
        let query = query(
            url.query().unwrap_or_default(),
            lane,
            flags.statement_timeout_ms(),
        );
        url.set_query(Some(&query));
        Ok(Target {
            url: url.into(),
            address,
        })
    }
}

/// What was given, and then ours: of two values for one name, libpq takes the last. It decodes %20, but no plus sign.
fn query(given: &str, lane: &str, statement_timeout_ms: u128) -> String {
    let mut query = String::new();
    let mut options = String::new();
    for pair in given.split('&').filter(|pair| !pair.is_empty()) {
        match pair.strip_prefix("options=") {
            Some(given) => options = format!("{given}%20"),
            None => {
                query.push_str(pair);
                query.push('&');
            }
        }
    }
    // When nobody answers, the start is to tell it rather than libpq, which counts in whole seconds.
    let connect_timeout = CONNECT_TIMEOUT.as_secs() + 1;
    query.push_str(&format!(
        "options={options}-c%20statement_timeout%3D{statement_timeout_ms}\
         &application_name={}&connect_timeout={connect_timeout}",
        front::application_name(lane)
    ));
    query
}

fn address(url: &Url) -> String {
    let named = |name: &str| {
        let mut pairs = url.query_pairs();
        let value = pairs.find_map(|(key, value)| (key == name).then_some(value));
        value.map(|value| value.into_owned())
    };
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.map(str::to_owned).or_else(|| named("host"));
    let port = url.port().map(|port| port.to_string());
    format!(
        "{}:{}",
        host.unwrap_or_else(|| "localhost".to_owned()),
        port.or_else(|| named("port"))
            .unwrap_or_else(|| "5432".to_owned())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_options_stay_and_ours_come_last() {
        let given = "sslmode=disable&options=-c%20geqo%3Doff&application_name=mine";
        let expected = "sslmode=disable&application_name=mine\
            &options=-c%20geqo%3Doff%20-c%20statement_timeout%3D250\
            &application_name=lanebench-diesel&connect_timeout=6";
        assert_eq!(query(given, "diesel", 250), expected);
    }

    #[test]
    fn an_address_never_holds_the_password() {
        let of = |url: &str| address(&Url::parse(url).unwrap());
        assert_eq!(
            of("postgres://shop:secret@db.example:5433/shop"),
            "db.example:5433"
        );
        assert_eq!(of("postgres://shop:secret@[::1]/shop"), "[::1]:5432");
        assert_eq!(
            of("postgres:///shop?host=/run/postgresql&port=5434"),
            "/run/postgresql:5434"
        );
        assert_eq!(of("postgres:///shop"), "localhost:5432");
    }
}
