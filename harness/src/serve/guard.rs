//! What holds for every answer: whom it is for, and what a page may do in the reader's browser.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Pages of the app: nothing from elsewhere, and no script but its own files. Charts set styles on their own elements.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// A report, which carries its script and style itself and asks nobody for anything.
pub(super) const REPORT_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'none'",
);

/// Refuses who calls this machine by a name that is not its own, and adds the headers.
pub(super) async fn guard(
    State(address): State<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if is_for_us(address.ip(), request.uri(), request.headers()) {
        next.run(request).await
    } else {
        let why = "This address answers to localhost, 127.0.0.1 and [::1] only.\n";
        (StatusCode::MISDIRECTED_REQUEST, why).into_response()
    };
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let own = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in own {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A page from elsewhere can have its own name resolved to this machine, and then read what it is not shown otherwise:
/// only that name tells. Who listens on another address than loopback has other names, which nobody knows here.
fn is_for_us(address: IpAddr, uri: &Uri, headers: &HeaderMap) -> bool {
    if !address.is_loopback() {
        return true;
    }
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let host = host.to_str().ok().and_then(|host| host.parse().ok());
    let is_ours = |authority: &Authority| {
        let host = authority.host();
        let own = ["localhost", "127.0.0.1", "[::1]"];
        !authority.as_str().contains('@')
            && (own.iter().any(|own| host.eq_ignore_ascii_case(own)) || host.parse() == Ok(address))
    };
    host.as_ref().is_some_and(is_ours) && uri.authority().is_none_or(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_us(address: &str, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        if !host.is_empty() {
            headers.insert(HOST, host.parse().unwrap());
        }
        is_for_us(address.parse().unwrap(), &Uri::from_static("/"), &headers)
    }

    #[test]
    fn a_loopback_address_answers_to_its_own_names_on_any_port() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "[::1]:9000",
            "127.0.0.2",
        ] {
            assert!(for_us("127.0.0.2", host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
            "127.0.0.3",
            "[::2]",
            "localhost:80:80",
        ] {
            assert!(!for_us("127.0.0.1", host), "{host}");
        }
    }

    #[test]
    fn an_absolute_address_of_another_machine_is_not_for_us_either() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        let uri = Uri::from_static("http://evil.example/");
        assert!(!is_for_us(IpAddr::from([127, 0, 0, 1]), &uri, &headers));
    }

    #[test]
    fn who_listens_on_every_address_has_names_that_are_not_known_here() {
        assert!(for_us("0.0.0.0", "lab.example:8080"));
    }
}
