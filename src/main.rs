//! The front door of `quorate`; nothing is decided here.
//! Comes in: the command line. Goes out: the exit code that `app` gives back.
//! May touch: `cli` and `app`.

use std::process::ExitCode;

use clap::Parser;
use quorate::{app, cli::Cli};

fn main() -> ExitCode {
    app::main(Cli::parse())
}
