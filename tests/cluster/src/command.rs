//! Runs other programs; errors contain the command line, the exit status and the end of stderr.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::host;

/// A command without standard input that is killed when its future is dropped.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // Adds the folders of the distribution: the PATH of plain `su` lacks half of them.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{}", host::PATH));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// If the command cannot be started, or its exit code is not 0.
pub async fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .await
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, tail(&stderr, 20));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program and drops its output.
///
/// # Errors
/// As [`output`].
pub async fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Result<()> {
    output(command(program).args(args)).await.map(drop)
}

/// Runs a command with `input` as its standard input.
///
/// # Errors
/// As [`output`].
pub async fn feed(command: &mut Command, input: &[u8]) -> Result<String> {
    let shown = shown(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let written = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(input).await,
        None => Ok(()),
    };
    let output = child.wait_with_output().await.with_context(|| format!("lost `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, tail(&stderr, 20));
    }
    written.with_context(|| format!("`{shown}` did not read its input"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last lines of a text.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let skip = all.len().saturating_sub(lines);
    all.into_iter().skip(skip).collect::<Vec<_>>().join("\n")
}

/// The last lines of a file, or the error of reading it.
#[must_use]
pub fn tail_of_file(path: &Path, lines: usize) -> String {
    match std::fs::read(path) {
        Ok(bytes) => tail(&String::from_utf8_lossy(&bytes), lines),
        Err(error) => format!("({} cannot be read: {error})", path.display()),
    }
}

fn shown(command: &Command) -> String {
    let command = command.as_std();
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    let line = words.join(" ");
    if line.chars().count() > 200 {
        line.chars().take(200).chain("...".chars()).collect()
    } else {
        line
    }
}
