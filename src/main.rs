//! The entry point of `quorate`: parses the command line and hands it to `app`.

use std::process::ExitCode;

use clap::Parser;
use quorate::{app, cli::Cli};

fn main() -> ExitCode {
    app::main(Cli::parse())
}
