//! The agent in a member's pod: replaces itself with etcd, or exits with a code and a message,
//! which is also written to the termination log.

use std::fs;
use std::process::ExitCode;

use super::{FAILED, print};
use crate::agent::{self, Start, StartError};
use crate::api::start_mode::EXIT_DATA_MISSING;
use crate::cli::AgentCommand;

/// Kubernetes shows the content of this file as the termination message of the container.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Runs the agent command.
pub(super) fn run(command: AgentCommand) -> ExitCode {
    let (error, code) = match command {
        AgentCommand::Install { to } => match agent::install(&to) {
            Ok(_) => return ExitCode::SUCCESS,
            Err(error) => (anyhow::Error::new(error), FAILED),
        },
        AgentCommand::Start { start_mode, data, pod, command } => {
            match agent::start(Start { start_mode, data, pod, command }) {
                Ok(never) => match never {},
                // The operator distinguishes a refused start from a failed one by this exit code
                // alone.
                Err(error @ StartError::Refused(_)) => {
                    (anyhow::Error::new(error), EXIT_DATA_MISSING)
                }
                Err(error) => (anyhow::Error::new(error), FAILED),
            }
        }
    };
    let message = format!("quorate: {error:#}\n");
    print::stderr(&message);
    // If this fails, the container log still has the message.
    drop(fs::write(TERMINATION_LOG, &message));
    ExitCode::from(code)
}
