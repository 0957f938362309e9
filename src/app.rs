//! Wires the modules: takes the command line and runs the subcommand.
//!
//! Exit codes: 0 success, 1 failure, 2 invalid flags or settings, 130 interrupted by a second
//! signal.

mod agent;
mod crd_check;
mod leader_tasks;
mod migrate;
mod print;
mod run;
mod runtime;
mod shutdown;
mod webhook_server;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

const FAILED: u8 = 1;
const INVALID_SETTINGS: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Runs the subcommand.
#[must_use]
pub fn main(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Run(args) => return run::run(&args),
        Command::Agent(command) => return agent::run(command),
        Command::Crds(args) if args.check => return crd_check::check(&args.namespace),
        Command::Crds(args) => print::crds(&args),
        Command::Migrate(args) => return migrate::migrate(&args),
        Command::Manifests(args) => print::manifests(&args),
        Command::Version(args) => print::version(args.output),
        Command::Completion { shell } => print::completion(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::stderr(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}
