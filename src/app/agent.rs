//! The agent in a member's pod.
//! Comes in: its command. Goes out: etcd in the place of this process, or an exit code and a sentence,
//! also where Kubernetes shows it. May touch: the pod's own files.

use std::fs;
use std::process::ExitCode;

use super::{FAILED, print};
use crate::agent::{self, NotStarted, Start};
use crate::api::told::REFUSES;
use crate::cli::AgentCommand;

/// What is written here is the message of the container's end.
const LAST_WORDS: &str = "/dev/termination-log";

/// Does what the pod asks for.
pub(super) fn run(command: AgentCommand) -> ExitCode {
    let (done, code) = match command {
        AgentCommand::Install { to } => match agent::install(&to) {
            Ok(_) => return ExitCode::SUCCESS,
            Err(error) => (anyhow::Error::new(error), FAILED),
        },
        AgentCommand::Start { told, data, pod, command } => {
            match agent::start(Start { told, data, pod, command }) {
                Ok(never) => match never {},
                // The operator tells a refusal from a failure by this code alone.
                Err(error @ NotStarted::Refused(_)) => (anyhow::Error::new(error), REFUSES),
                Err(error) => (anyhow::Error::new(error), FAILED),
            }
        }
    };
    let words = format!("quorate: {done:#}\n");
    print::complain(&words);
    // Nobody can be told if this fails, too; the log has it.
    drop(fs::write(LAST_WORDS, &words));
    ExitCode::from(code)
}
