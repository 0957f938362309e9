//! The only room that wires: it takes the command line and starts what was asked for.
//! Comes in: the parsed flags. Goes out: an exit code: 0 done, 1 failed, 2 wrong flags or
//! settings, 130 cut short by a second signal.
//! May touch: every room. Nothing but `main` may touch this one.

mod agent;
mod definitions;
mod door;
mod house;
mod leading;
mod migrate;
mod print;
mod run;
mod stop;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

const FAILED: u8 = 1;
const WRONG_SETTINGS: u8 = 2;
const CUT_SHORT: u8 = 130;

/// Does what the command line asks for.
#[must_use]
pub fn main(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Run(args) => return run::run(&args),
        Command::Agent(command) => return agent::run(command),
        Command::Crds(args) if args.check => return definitions::check(&args.namespace),
        Command::Crds(args) => print::crds(&args),
        Command::Migrate(args) => return migrate::migrate(&args),
        Command::Manifests(args) => print::manifests(&args),
        Command::Version(args) => print::version(args.output),
        Command::Completion { shell } => print::completion(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::complain(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}
