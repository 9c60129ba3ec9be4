//! What the checks of one run share: the server, a kept connection, the database if it is known, and what was seen.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::{Connection, Transcript};
use super::expect::{Confirmed, Expect};
use super::framing::Reply;
use super::request::{Request, get};
use super::values::Values;
use super::{Level, Options, show, telltale};
use crate::postgres::Database;

/// Why a check did not pass.
#[derive(Debug)]
pub(super) enum Fault {
    /// A whole reply came, and it is another one than the contract's.
    Differs(String),
    /// No whole reply came: refused, reset, too late, or not HTTP.
    Silent(String),
    /// It does not apply to this run.
    Skipped(&'static str),
    /// The gate itself cannot go on.
    Gate(anyhow::Error),
}

/// A reply that the error checks will judge, with the request that got it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) level: Level,
    pub(super) text: String,
}

/// The state of a run.
#[derive(Debug)]
pub(super) struct Session<'a> {
    address: SocketAddr,
    host: String,
    kept: Option<Connection>,
    pub(super) timeout: Duration,
    pub(super) secret: String,
    pub(super) values: Values,
    pub(super) database: Option<&'a mut Database>,
    /// Level of the running check.
    pub(super) level: Level,
    /// Error replies that show SQL, a path or a stack.
    pub(super) leaks: Vec<Seen>,
    /// Replies with a status of 500 or more.
    pub(super) server_errors: Vec<Seen>,
    /// Orders the server has confirmed and the gate has compared.
    pub(super) confirmed: Vec<Confirmed>,
    /// Replies of 201 to an order, compared or not: rows that should exist.
    pub(super) stored: usize,
    /// The exchange that the running check failed at, else its last one.
    transcript: Option<Transcript>,
    failed: bool,
    /// Rows in `orders` before the first one.
    pub(super) orders_before: Option<u64>,
}

/// Longest wait for an answer about the server's life.
const ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

impl<'a> Session<'a> {
    pub(super) fn new(options: Options<'a>, values: Values) -> Self {
        let Options { address, host, jwt_secret, database, timeout, .. } = options;
        Self {
            address,
            host,
            kept: None,
            timeout,
            secret: jwt_secret,
            values,
            database,
            level: Level::Core,
            leaks: Vec::new(),
            server_errors: Vec::new(),
            confirmed: Vec::new(),
            stored: 0,
            transcript: None,
            failed: false,
            orders_before: None,
        }
    }

    /// Sends one request over the kept connection and compares the reply.
    pub(super) fn exchange(&mut self, request: &Request, expect: &Expect) -> Result<Reply, Fault> {
        let mut connection = self.idle_connection()?;
        let reply = self.exchange_on(&mut connection, request, expect)?;
        if !reply.closes {
            self.kept = Some(connection);
        }
        Ok(reply)
    }

    /// Sends one request over this connection and compares the reply.
    pub(super) fn exchange_on(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        expect: &Expect,
    ) -> Result<Reply, Fault> {
        self.send_on(connection, &request.encode(&self.host));
        self.receive_on(connection, request, expect)
    }

    /// Sends raw bytes. A server may answer and close before it has read everything, so a failed write is no fault
    /// here: the reply, or its absence, tells.
    pub(super) fn send_on(&self, connection: &mut Connection, bytes: &[u8]) {
        let _ = connection.send(bytes, self.timeout);
    }

    /// Reads the reply to `request` and compares it.
    pub(super) fn receive_on(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        expect: &Expect,
    ) -> Result<Reply, Fault> {
        let reply = self.reply_on(connection, request)?;
        if connection.excess() > 0 {
            let excess = connection.excess();
            self.failed = true;
            return Err(Fault::Differs(format!("{excess} bytes came after the reply; sent {}", request.shown())));
        }
        self.compare(request, expect, &reply)?;
        Ok(reply)
    }

    /// Reads the reply to `request`, notes what the error checks need, and compares nothing.
    pub(super) fn reply_on(&mut self, connection: &mut Connection, request: &Request) -> Result<Reply, Fault> {
        let reply = connection.reply(request.is_head(), self.timeout);
        // The first difference of a check is the one that is told.
        if !self.failed {
            self.transcript = Some(connection.transcript().clone());
            self.failed = reply.is_err();
        }
        let reply = reply.map_err(|text| Fault::Silent(format!("{text}; sent {}", request.shown())))?;
        self.note(request, &reply);
        Ok(reply)
    }

    /// Compares a reply, and keeps an order it confirms.
    pub(super) fn compare(&mut self, request: &Request, expect: &Expect, reply: &Reply) -> Result<(), Fault> {
        match expect.check(reply) {
            Ok(confirmed) => {
                self.confirmed.extend(confirmed);
                Ok(())
            }
            Err(text) => {
                self.failed = true;
                Err(Fault::Differs(format!("{text}; sent {}", request.shown())))
            }
        }
    }

    /// Another check begins, of this level.
    pub(super) fn begin(&mut self, level: Level) {
        self.level = level;
        self.transcript = None;
        self.failed = false;
    }

    /// The exchange that the running check failed at, else its last one.
    pub(super) fn transcript(&self) -> Option<&Transcript> {
        self.transcript.as_ref()
    }

    /// A connection of the check's own.
    pub(super) fn open(&self) -> Result<Connection, Fault> {
        Connection::open(self.address, self.timeout).map_err(Fault::Silent)
    }

    /// The kept connection where it is still good, else a new one: a server may close when it likes.
    pub(super) fn idle_connection(&mut self) -> Result<Connection, Fault> {
        match self.kept.take() {
            Some(connection) if connection.is_idle() => Ok(connection),
            _ => self.open(),
        }
    }

    /// Value of the `host` header.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether the server answers anything at all.
    pub(super) fn server_answers(&mut self) -> bool {
        self.kept = None;
        let timeout = self.timeout.min(ALIVE_TIMEOUT);
        let Ok(mut connection) = Connection::open(self.address, timeout) else { return false };
        connection.send(&get("/health").encode(&self.host), timeout).is_ok() && connection.reply(false, timeout).is_ok()
    }

    fn note(&mut self, request: &Request, reply: &Reply) {
        if request.is_order() && reply.status == 201 {
            self.stored += 1;
        }
        if reply.status < 400 {
            return;
        }
        let level = self.level;
        let shown = format!("{} with {} to {}", reply.status, show::line(&reply.body), request.shown());
        if let Some(sign) = telltale::find(&reply.body) {
            self.leaks.push(Seen { level, text: format!("{sign} in {shown}") });
        }
        if reply.status >= 500 {
            self.server_errors.push(Seen { level, text: shown });
        }
    }
}

/// Milliseconds after the Unix epoch, by this host's clock.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_millis()).expect("milliseconds of this age fit")
}
