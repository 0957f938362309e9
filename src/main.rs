//! The front door of `quorate`: read the command line, hand it to `app`, give its exit code back.
//! Nothing is decided here.
//! May touch: `cli` and `app`.

use std::process::ExitCode;

use clap::Parser;
use quorate::{app, cli::Cli};

fn main() -> ExitCode {
    app::main(Cli::parse())
}
