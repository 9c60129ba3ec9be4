//! A check as data: what it is called, what it proves, what is sent and what must come back.

use super::Level;
use super::expect::Expect;
use super::request::Request;
use super::session::{Fault, Session};

/// One check.
#[derive(Debug)]
pub(super) struct Check {
    /// Stable, kebab-case, names the failure.
    pub(super) id: &'static str,
    pub(super) level: Level,
    /// One sentence of the contract, as it holds for a good server.
    pub(super) proves: &'static str,
    pub(super) kind: Kind,
    pub(super) steps: Steps,
}

/// What the runner has to know about a check besides its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Plain,
    /// Reads rows in a way that shows whose data is behind the server.
    ShowsData,
    /// May store orders; not run until reads or the owner allow it.
    Writes,
}

/// How a check talks to the server.
#[derive(Debug)]
pub(super) enum Steps {
    /// One after the other on a kept connection; the first difference ends the check.
    Exchanges(Vec<(Request, Expect)>),
    /// Anything else.
    Script(Script),
}

/// A check in code.
pub(super) type Script = fn(&mut Session<'_>) -> Result<(), Fault>;

/// A core check without steps yet.
pub(super) fn core(id: &'static str, proves: &'static str) -> Check {
    Check { id, level: Level::Core, proves, kind: Kind::Plain, steps: Steps::Exchanges(Vec::new()) }
}

/// A strict check without steps yet.
pub(super) fn strict(id: &'static str, proves: &'static str) -> Check {
    Check { level: Level::Strict, ..core(id, proves) }
}

impl Check {
    /// And this exchange.
    #[must_use]
    pub(super) fn sends(mut self, request: Request, expect: Expect) -> Self {
        match &mut self.steps {
            Steps::Exchanges(exchanges) => exchanges.push((request, expect)),
            Steps::Script(_) => unreachable!("{} is a script", self.id),
        }
        self
    }

    /// These exchanges.
    #[must_use]
    pub(super) fn sends_all(self, exchanges: impl IntoIterator<Item = (Request, Expect)>) -> Self {
        exchanges.into_iter().fold(self, |check, (request, expect)| check.sends(request, expect))
    }

    /// This code instead of exchanges.
    #[must_use]
    pub(super) fn runs(self, script: Script) -> Self {
        Self { steps: Steps::Script(script), ..self }
    }

    /// It shows whose data is behind the server.
    #[must_use]
    pub(super) fn shows_data(self) -> Self {
        Self { kind: Kind::ShowsData, ..self }
    }

    /// It may store orders.
    #[must_use]
    pub(super) fn writes(self) -> Self {
        Self { kind: Kind::Writes, ..self }
    }

    /// Does what the check says.
    pub(super) fn run(&self, session: &mut Session<'_>) -> Result<(), Fault> {
        match &self.steps {
            Steps::Script(script) => script(session),
            Steps::Exchanges(exchanges) => {
                exchanges.iter().try_for_each(|(request, expect)| session.exchange(request, expect).map(|_| ()))
            }
        }
    }
}
