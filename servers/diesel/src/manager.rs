//! The manager that makes connections for r2d2: diesel's own, with statements prepared as part of connecting.

use std::sync::Arc;

use diesel::PgConnection;
use diesel::r2d2::{ConnectionManager, ManageConnection};
use front::{Config, OpenError};

use crate::preparation::{prepare, untranslate};
use crate::target::Target;

#[derive(Debug)]
pub(crate) struct Manager {
    connections: ConnectionManager<PgConnection>,
    pub(crate) statements: Arc<[String]>,
    /// The host and port to name in errors. Never the URL itself: it may hold a password.
    pub(crate) address: String,
}

impl Manager {
    pub(crate) fn new(
        flags: &Config,
        lane: &str,
        statements: &[String],
    ) -> Result<Manager, OpenError> {
        let Target { url, address } = Target::new(flags, lane)?;
        Ok(Manager {
            connections: ConnectionManager::new(url),
            statements: statements.into(),
            address,
        })
    }

    fn connect_error(&self, source: diesel::r2d2::Error) -> OpenError {
        OpenError::Connect {
            address: self.address.clone(),
            source: source.into(),
        }
    }
}

impl ManageConnection for Manager {
    type Connection = PgConnection;
    type Error = OpenError;

    fn connect(&self) -> Result<PgConnection, OpenError> {
        let connected = self.connections.connect();
        let mut connection = connected.map_err(|source| self.connect_error(source))?;
        untranslate(&mut connection).map_err(|source| self.connect_error(source.into()))?;
        for sql in self.statements.iter() {
            prepare(&mut connection, sql).map_err(|source| OpenError::prepare(sql, source))?;
        }
        Ok(connection)
    }

    fn is_valid(&self, connection: &mut PgConnection) -> Result<(), OpenError> {
        let valid = self.connections.is_valid(connection);
        valid.map_err(|source| self.connect_error(source))
    }

    fn has_broken(&self, connection: &mut PgConnection) -> bool {
        self.connections.has_broken(connection)
    }
}
