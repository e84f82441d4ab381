//! The front from outside: over real sockets, with a lane that needs no database.

#![allow(clippy::unwrap_used)]

mod admission;
mod answers;
mod client;
mod export;
mod fake;
mod lifecycle;
mod live;
mod observation;
mod reads;
mod row;
mod script;
mod table;
mod writes;
