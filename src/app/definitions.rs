//! `quorate crds --check`: compares a cluster's definitions with those of this release.
//! Comes in: the operator's namespace, and the cluster. Goes out: a line for each definition, and
//! an exit code.
//! May touch: `api`, `ports`, stdout.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::runtime::Builder;

use super::{FAILED, print};
use crate::api::crd;
use crate::api::crd::live::{Remark, Weight, compare};
use crate::ports;

/// Says what would happen to the cluster's data if this release were installed.
pub(super) fn check(namespace: &str) -> ExitCode {
    match remarks(namespace).and_then(|remarks| tell(&remarks)) {
        Ok(code) => code,
        Err(error) => {
            print::complain(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}

fn remarks(namespace: &str) -> Result<Vec<Remark>> {
    // An error only says that a provider is installed already, which is all we want.
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start the event loop")?.block_on(async {
        let client = ports::kube::client().await?;
        let mut remarks = Vec::new();
        for ours in crd::converted_in(namespace) {
            let name = ours.metadata.name.clone().unwrap_or_default();
            let live = ports::definitions::read(&client, &name).await?;
            remarks.extend(compare(&ours, live.as_ref()));
        }
        Ok(remarks)
    })
}

fn tell(remarks: &[Remark]) -> Result<ExitCode> {
    for Remark { definition, weight, words } in remarks {
        let mark = match weight {
            Weight::Fine => "ok",
            Weight::Differs => "note",
            Weight::Strands => "REFUSED",
        };
        print::say(&format!("{mark:<8}{definition} {words}\n"))?;
    }
    let strands = remarks.iter().any(|remark| remark.weight == Weight::Strands);
    Ok(if strands { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
