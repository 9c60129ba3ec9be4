//! Floors: the least that this host needs for the work of a server, each part alone.
//!
//! What a server costs is judged against these, not against nothing: [`http`] answers canned bytes and reads no request,
//! [`postgres`] runs the statements without HTTP around them, [`hash`] hashes without a request. None is a server that a
//! team could ship.

pub mod hash;
pub mod http;
pub mod postgres;
