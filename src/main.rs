//! The command line: parse, one match, print the error once, exit code.
//!
//! 0 good; 1 a measured thing failed; 2 the command or its surroundings were wrong; 128 + signal when interrupted.

mod cli;
mod commands;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use headroom::interrupt::{Interrupt, Interrupted};

use cli::{Cli, Command};
use commands::Outcome;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    refuse_huge_pages();
    match run(Cli::parse()) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(error) => {
            // A stderr that takes nothing must not change the exit code.
            let _ = writeln!(std::io::stderr(), "headroom: {error:#}");
            let signal = error.downcast_ref::<Interrupted>().map(|interrupted| interrupted.signal);
            ExitCode::from(signal.map_or(2, |signal| u8::try_from(128 + signal).unwrap_or(2)))
        }
    }
}

/// The allocator asks for huge pages, and an idle server would hold 19 MiB instead of 11. A kernel without them says no.
///
/// Before the command line is parsed, which allocates; and for the server alone, for children inherit it.
fn refuse_huge_pages() {
    let command = std::env::args_os().skip(1).find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    if command.is_some_and(|command| command == "serve") {
        let _ = nix::sys::prctl::set_thp_disable(true);
    }
}

fn run(cli: Cli) -> anyhow::Result<Outcome> {
    // The server hears signals itself: it finishes what is in flight.
    if let Command::Serve(args) = cli.command {
        return commands::serve::run(args);
    }
    let interrupt = Interrupt::listen()?;
    let progress = terminal::progress(cli.quiet);
    match cli.command {
        Command::Serve(_) => unreachable!("handled above"),
        Command::Compare(args) => commands::compare::run(args, &*progress, &interrupt),
        Command::Load(args) => commands::load::run(&args, cli.quiet, &interrupt),
        Command::Parity(args) => commands::parity::run(&args, &interrupt),
        Command::Report(args) => commands::report::run(&args),
        Command::Floor(floor) => commands::floor::run(floor, &*progress, &interrupt),
        Command::Postgres(command) => commands::postgres::run(command, &*progress, &interrupt),
        Command::Doctor => commands::doctor::run(),
    }
}
