//! The address to listen on, as it is written on the command line.

use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;

use anyhow::{Result, bail};

/// This machine only.
pub const DEFAULT: &str = "127.0.0.1:8080";

/// An address and a port; one name may stand for several addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    text: String,
    addresses: Vec<SocketAddr>,
}

impl FromStr for Listen {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Listen> {
        let addresses: Vec<SocketAddr> = text.to_socket_addrs().into_iter().flatten().collect();
        if addresses.is_empty() {
            bail!("give an address and a port, such as {DEFAULT}, or port 0 for any that is free");
        }
        Ok(Listen {
            text: text.to_owned(),
            addresses,
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Listen {
    /// A socket that listens and does not block. `flag` is the one that named the address.
    ///
    /// # Errors
    /// One line: the port is taken, or the address is not this machine's.
    pub(super) fn bind(&self, flag: &str) -> Result<TcpListener> {
        let bound = TcpListener::bind(&self.addresses[..]);
        let bound = bound.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound.or_else(|error| {
            let first = self.addresses.first();
            let port = first.map_or(0, SocketAddr::port);
            match error.kind() {
                ErrorKind::AddrInUse => bail!(
                    "cannot listen on {self}: port {port} is taken; name another, such as {flag} {}",
                    self.on_port(port.checked_add(1).unwrap_or(0))
                ),
                ErrorKind::PermissionDenied => bail!(
                    "cannot listen on {self}: port {port} is for the administrator; name another, such as {flag} {}",
                    self.on_port(8080)
                ),
                _ => bail!("cannot listen on {self}: {error}; name another address with {flag}"),
            }
        })
    }

    fn on_port(&self, port: u16) -> String {
        let host = self.text.rsplit_once(':').map_or("", |(host, _)| host);
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for address in [DEFAULT, "[::1]:0", "localhost:80", "0.0.0.0:8080"] {
            assert!(address.parse::<Listen>().is_ok(), "{address}");
        }
        for refused in [
            "",
            "127.0.0.1",
            "8080",
            "point-read",
            "127.0.0.1:99999",
            "::1",
        ] {
            let error = refused.parse::<Listen>().expect_err(refused).to_string();
            assert!(error.contains("such as 127.0.0.1:8080"), "{error}");
        }
    }
}
