//! One file a command: what was typed becomes configuration, the library does the work, the result goes to stdout.

pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod floor;
pub(crate) mod load;
pub(crate) mod parity;
pub(crate) mod postgres;
pub(crate) mod report;
pub(crate) mod serve;

use std::io::{IsTerminal as _, Write as _};

use headroom::report::Look;

/// How a command that could run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Good,
    /// Exit code 1: it ran, and what it measured or checked failed.
    Failed,
}

impl Outcome {
    pub(crate) fn good_if(good: bool) -> Self {
        if good { Self::Good } else { Self::Failed }
    }
}

/// Writes a result. A reader that has left (`| head -1`) is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write the result to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

/// The secret tokens are signed with: `JWT_SECRET`, else the bench default, as the servers themselves do.
pub(crate) fn jwt_secret() -> String {
    std::env::var("JWT_SECRET").unwrap_or_else(|_| headroom::contract::BENCH_SECRET.to_owned())
}

/// How a report looks here: as wide as the terminal, coloured only on one, and not where `NO_COLOR` asks for none.
pub(crate) fn look() -> Look {
    let size = console::Term::stdout().size_checked();
    let width = size.map_or(Look::default().width, |(_, columns)| usize::from(columns));
    let terminal = std::io::stdout().is_terminal();
    Look { width, colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
}
