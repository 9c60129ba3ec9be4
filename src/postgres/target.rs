//! A database URL, read once: where it leads, and a name for messages that never holds the password.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

/// Sessions of the harness itself, told apart from a server's by this name.
pub(super) const ADMIN_APPLICATION: &str = "headroom admin";

/// The remedy for every URL that cannot be read. The URL itself is not shown: it holds a password.
const ENCODE: &str = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE with special characters percent-encoded \
                      (@ as %40, / as %2F, # as %23, ? as %3F, % as %25)";

/// Where a URL leads.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) options: PgConnectOptions,
    pub(super) database: String,
    place: String,
}

impl Target {
    /// Reads a URL, without connecting.
    pub(super) fn parse(url: &str) -> anyhow::Result<Self> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.with_context(|| format!("the database url does not begin with postgres://: {ENCODE}"))?;
        // An unescaped `/`, `?` or `#` in a password ends the host there, and the rest of the password would be taken, and
        // shown, as a port or database name. Then an `@` is left behind that end; nothing else puts one there unescaped.
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if rest[authority_end..].contains('@') {
            bail!("the database url has an `@` after its host: {ENCODE}");
        }
        let options = match PgConnectOptions::from_str(url) {
            Ok(options) => options,
            // The text of these errors is about form, but some quote a piece of the URL.
            Err(sqlx::Error::Configuration(error)) if is_harmless(&error.to_string(), url) => {
                bail!("the database url cannot be read: {error}: {ENCODE}")
            }
            Err(_) => bail!("the database url cannot be read: {ENCODE}"),
        };
        let options = options.application_name(ADMIN_APPLICATION).disable_statement_logging();
        let database = options.get_database().unwrap_or(options.get_username()).to_owned();
        let place = match options.get_socket() {
            Some(socket) => format!("socket {}", socket.display()),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        Ok(Self { options, database, place })
    }

    /// What failed, why, and what to do about it: the one line about a failed connection.
    pub(super) fn explain(&self, error: &sqlx::Error) -> String {
        let user = self.options.get_username();
        let (reason, remedy) = match error {
            sqlx::Error::Database(fault) => {
                let remedy = match fault.code().as_deref() {
                    Some("28P01" | "28000") => "check the user and the password in the url",
                    Some("3D000") => "create it first, or name another",
                    Some("53300") => "end other sessions or raise max_connections",
                    _ => "see the server's log",
                };
                (fault.message().to_owned(), remedy)
            }
            sqlx::Error::Io(fault) => (fault.to_string(), "is postgres running and reachable there?"),
            sqlx::Error::Tls(fault) => (fault.to_string(), "headroom speaks no TLS: use sslmode=disable"),
            other => (other.to_string(), "is it a postgres server?"),
        };
        format!("cannot connect to {self} as user {user:?}: {reason}: {remedy}")
    }
}

/// `database "headroom" on 127.0.0.1:5432`: for messages.
impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "database {:?} on {}", self.database, self.place)
    }
}

/// Without the options, which hold the password.
impl fmt::Debug for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Target({self})")
    }
}

/// Whether a message quotes nothing of the URL: no word of it that is longer than a few letters is part of the URL.
fn is_harmless(message: &str, url: &str) -> bool {
    const SHORT: usize = 3;
    message
        .split(|character: char| !character.is_alphanumeric())
        .all(|word| word.len() <= SHORT || !url.contains(word) || ["port", "host"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_without_its_password() {
        let target = Target::parse("postgres://jane:s3cret@db.example:6432/shop?sslmode=disable").unwrap();
        assert_eq!(target.to_string(), "database \"shop\" on db.example:6432");
        assert_eq!(format!("{target:?}"), "Target(database \"shop\" on db.example:6432)");
        let refused = target.explain(&sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()));
        assert!(refused.contains("as user \"jane\": connection refused"), "{refused}");
        assert!(!refused.contains("s3cret"));
    }

    #[test]
    fn special_characters_and_sockets_are_understood() {
        let target = Target::parse("postgresql://u%40corp:p%2F%23%3A%40%25@[::1]:1/a%20b").unwrap();
        assert_eq!(target.options.get_username(), "u@corp");
        assert_eq!(target.to_string(), "database \"a b\" on [::1]:1");
        assert!(
            Target::parse("postgres://u:p@%2Fvar%2Frun%2Fpg/db").unwrap().to_string().ends_with("socket /var/run/pg")
        );
        assert!(Target::parse("postgres:///db?host=/tmp&user=u").unwrap().to_string().ends_with("socket /tmp"));
        // Several `@`: the last one ends the password, as everywhere.
        assert_eq!(Target::parse("postgres://u:p@ss@h:1/db").unwrap().to_string(), "database \"db\" on h:1");
    }

    #[test]
    fn no_message_shows_a_piece_of_the_password() {
        let urls = [
            "postgres://u:hunter/2secret@127.0.0.1:5432/db",
            "postgres://u:1/2secret@127.0.0.1:5432/db",
            "postgres://u:hunter#2secret@127.0.0.1:5432/db",
            "postgres://u:hunter?2secret@127.0.0.1:5432/db",
            "postgres://u:2secret@host:port/db",
            "postgres://u:2secret@host:99999/db",
            "postgres://u:2secret@[::1/db",
            "postgres://u:%ff2secret@host/db",
            "postgres://host/db?password=2secret&sslmode=2secret",
            "postgres://host/db?sslmode=2secret",
            "mysql://u:2secret@host/db",
            "2secret",
            "",
        ];
        for url in urls {
            let error = format!("{:?}", Target::parse(url).unwrap_err());
            assert!(!error.contains("secret") && !error.contains("hunter"), "{url}: {error}");
            assert!(error.contains("percent-encoded"), "{url}: {error}");
        }
    }
}
