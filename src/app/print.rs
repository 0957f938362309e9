//! Subcommands that only print: CRDs, manifests, version, completion.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::api::{crd, names};
use crate::cli::{Cli, CrdsArgs, ManifestsArgs, Output};
use crate::manifests::{self, Install};

/// Prints or writes the custom resource definitions.
pub(super) fn crds(args: &CrdsArgs) -> Result<()> {
    for definition in crd::with_webhook_namespace(&args.namespace) {
        let text = format!("---\n{}", manifests::document(&definition)?);
        match &args.write {
            Some(folder) => write(folder, &crd::file_name(&definition), &text)?,
            None => stdout(&text)?,
        }
    }
    Ok(())
}

/// Prints or writes the manifests.
pub(super) fn manifests(args: &ManifestsArgs) -> Result<()> {
    let install = Install {
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        with_namespace: !args.no_namespace,
        with_definitions: !args.no_crds,
    };
    let Some(folder) = &args.write else {
        return stdout(&manifests::install(&install)?);
    };
    for file in manifests::files(&install)? {
        write(folder, &file.path, &file.text)?;
    }
    Ok(())
}

/// Prints the version.
pub(super) fn version(output: Output) -> Result<()> {
    match output {
        Output::Text => stdout(&format!("{} {}\n", names::OPERATOR, names::VERSION)),
        Output::Json => {
            let version = serde_json::json!({
                "name": names::OPERATOR,
                "version": names::VERSION,
                "os": std::env::consts::OS,
                "arch": std::env::consts::ARCH,
            });
            stdout(&format!("{version}\n"))
        }
    }
}

/// Writes the completion script of one shell.
pub(super) fn completion(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), names::OPERATOR, &mut script);
    out(&script)
}

/// Writes to stderr. A closed stderr is ignored.
pub(super) fn stderr(text: &str) {
    io::stderr().lock().write_all(text.as_bytes()).unwrap_or(());
}

pub(super) fn stdout(text: &str) -> Result<()> {
    out(text.as_bytes())
}

fn out(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader closed the pipe, as in `quorate manifests | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write to stdout"),
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("failed to create the directory {}", parent.display()))?;
    }
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}
