//! Servers that run already and are measured where they are: how they are named on the command line, and what is asked of
//! them before anything is measured.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use url::Url;

use crate::folders::Folders;
use crate::process::RunningServer;
use crate::selection::by_name;
use crate::server::Server;

/// Why a campaign of attached servers is not publishable.
pub const NOT_FRESH: &str = "the servers were attached to while they ran: no fresh one for each trial, where they and PostgreSQL run is not \
     observed, and what a server used is by its own account";

/// Why transactions of a server that lives on are not counted.
pub const LATE_TRANSACTIONS: &str =
    "the server lives on, and its sessions report their transactions up to 10 s late";

/// Flags of the commands that can measure servers that run already.
#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    /// Measure servers that run already instead of starting them; each by the name of its folder
    #[arg(
        long,
        env = "LANEBENCH_ATTACH",
        value_delimiter = ',',
        value_name = "NAME=URL",
        help_heading = "Running servers"
    )]
    pub attach: Vec<Attachment>,
}

/// A server that runs already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    name: String,
    host: String,
    port: u16,
}

impl FromStr for Attachment {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let refusal = || {
            format!(
                "`{text}`: give a server and where it listens, such as sqlx=http://127.0.0.1:8080"
            )
        };
        let (name, url) = text.split_once('=').with_context(refusal)?;
        let url: Url = url.parse().with_context(refusal)?;
        let plain = url.scheme() == "http" && url.path() == "/" && url.query().is_none();
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) if plain && !name.is_empty() => Ok(Attachment {
                name: name.to_owned(),
                host: host.to_owned(),
                port,
            }),
            _ => bail!(refusal()),
        }
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl Attachment {
    /// Looked up each time: a container that was started again may have another.
    ///
    /// # Errors
    /// The host cannot be found.
    pub fn address(&self) -> Result<SocketAddr> {
        // A name is resolved by its text, an IPv6 address without its brackets.
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let found = (host, self.port).to_socket_addrs();
        let found: Vec<SocketAddr> = found.context("this host cannot be found")?.collect();
        // Servers listen on version 4 unless told otherwise.
        let first = found.iter().find(|address| address.is_ipv4());
        let first = first.or(found.first()).copied();
        first.context("this host has no address")
    }
}

/// The described servers that are attached to, in the order given. Nothing of them is built or started.
///
/// # Errors
/// A server that is not described, or attached twice.
pub fn servers(attachments: &[Attachment], folders: &Folders) -> Result<Vec<Server>> {
    if attachments.is_empty() {
        return Ok(Vec::new());
    }
    let described = Server::read_all(folders)?;
    let mut servers: Vec<Server> = Vec::new();
    for attachment in attachments {
        let server = by_name("server", &attachment.name, &described, |server| {
            &server.name
        })?;
        if servers.iter().any(|earlier| earlier.name == server.name) {
            bail!("--attach: `{}` is attached twice", server.name);
        }
        servers.push(Server {
            attached: Some(attachment.clone()),
            build: Vec::new(),
            run: vec![attachment.to_string()],
            ..server.clone()
        });
    }
    Ok(servers)
}

/// The names that the sessions of the attached servers have in PostgreSQL, which tell one server's from another's.
///
/// # Errors
/// A server does not answer, does not tell its name, or has another's.
pub fn session_names(servers: &[Server]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for server in servers {
        let Some(attachment) = &server.attached else {
            continue;
        };
        let running = RunningServer::attach(server, attachment)?;
        let Some(name) = running.session_name() else {
            bail!(
                "server `{}`: /about does not tell the `application_name` of its sessions, so they cannot be told from others'",
                server.name
            );
        };
        if names.contains(&name) {
            bail!(
                "server `{}`: its sessions have the name `{name}` like another's, so they cannot be told apart",
                server.name
            );
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_attached_by_its_name_and_an_address_without_more() {
        let attachment: Attachment = "sqlx=http://sqlx:8080".parse().unwrap();
        assert_eq!(
            (attachment.name.as_str(), attachment.to_string().as_str()),
            ("sqlx", "http://sqlx:8080")
        );
        let usual: Attachment = "sqlx=http://127.0.0.1/".parse().unwrap();
        assert_eq!(usual.address().unwrap(), ([127, 0, 0, 1], 80).into());
        let six: Attachment = "sqlx=http://[::1]:8080".parse().unwrap();
        assert!(six.address().unwrap().is_ipv6());
        for refused in [
            "",
            "sqlx",
            "=http://a:1",
            "sqlx=a:1",
            "sqlx=https://a:1",
            "sqlx=http://a:1/hello",
            "sqlx=http://a:1/?b",
        ] {
            let error = refused.parse::<Attachment>().unwrap_err().to_string();
            assert!(
                error.contains("such as sqlx=http://127.0.0.1:8080"),
                "{error}"
            );
        }
    }
}
