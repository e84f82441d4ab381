//! From a URL to an address that accepts connections.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    name: String,
    port: u16,
    /// The `Host` header.
    pub(super) host: String,
    /// Path and query.
    pub(super) path: String,
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Target> {
        let url = Url::parse(text)
            .with_context(|| format!("{text:?} is not a URL; write http://HOST[:PORT]/PATH"))?;
        match url.scheme() {
            "http" => {}
            "https" => bail!(
                "{text}: TLS is not supported, only http:// over TCP; measure behind the TLS endpoint"
            ),
            other => bail!("{text}: {other}:// is not supported, only http:// over TCP"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            bail!("{text}: a user in the URL is not sent; use -H 'Authorization: ...'");
        }
        let Some(host) = url.host_str() else {
            bail!("{text}: has no host; write http://HOST[:PORT]/PATH");
        };
        let port = url.port_or_known_default().unwrap_or(80);
        if port == 0 {
            bail!("{text}: port 0 cannot be connected to");
        }
        Ok(Target {
            // The system's resolver wants IPv6 addresses without their brackets.
            name: host.trim_matches(['[', ']']).to_owned(),
            port,
            host: match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            path: match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            },
        })
    }

    /// The first address of the host that accepts a connection.
    pub(super) fn reach(&self) -> Result<SocketAddr> {
        let Target { name, port, .. } = self;
        let addresses: Vec<SocketAddr> = (name.as_str(), *port)
            .to_socket_addrs()
            .with_context(|| format!("cannot resolve the host {name:?}"))?
            .collect();
        let mut refusals = Vec::new();
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(address),
                Err(error) => refusals.push(format!("{address}: {error}")),
            }
        }
        if refusals.is_empty() {
            bail!("the host {name:?} has no address");
        }
        bail!(
            "cannot connect ({}); is the server running and listening there?",
            refusals.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_host_header_and_path() {
        let target = Target::parse("http://localhost:8080/a/b?c=d#e").unwrap();
        assert_eq!(
            (target.host.as_str(), target.path.as_str()),
            ("localhost:8080", "/a/b?c=d")
        );
        let target = Target::parse("http://[::1]").unwrap();
        assert_eq!((target.name.as_str(), target.port), ("::1", 80));
        assert_eq!((target.host.as_str(), target.path.as_str()), ("[::1]", "/"));
    }

    #[test]
    fn what_cannot_be_loaded_is_named() {
        for (text, reason) in [
            ("localhost", "not a URL"),
            ("https://localhost/", "TLS"),
            ("ftp://localhost/", "ftp"),
            ("http://user:secret@localhost/", "Authorization"),
            ("http://localhost:0/", "port 0"),
            ("http://", "not a URL"),
        ] {
            let error = format!("{:#}", Target::parse(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn nobody_there_is_said_with_the_address() {
        let target = Target::parse("http://host.invalid/").unwrap();
        assert!(format!("{:#}", target.reach().unwrap_err()).contains("host.invalid"));
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let target = Target::parse(&format!("http://{free}/")).unwrap();
        let error = format!("{:#}", target.reach().unwrap_err());
        assert!(
            error.contains(&free.to_string()) && error.contains("refused"),
            "{error}"
        );
    }
}
