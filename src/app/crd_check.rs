//! `quorate crds --check`: compares the CRDs of a cluster with those of this release.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::runtime::Builder;

use super::{FAILED, print};
use crate::api::crd;
use crate::api::crd::compare::{CrdFinding, Severity, compare};
use crate::clients;

/// Reports whether this release could read the objects stored in the cluster.
pub(super) fn check(namespace: &str) -> ExitCode {
    match findings(namespace).and_then(|findings| report(&findings)) {
        Ok(code) => code,
        Err(error) => {
            print::stderr(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}

fn findings(namespace: &str) -> Result<Vec<CrdFinding>> {
    // An error only means that a provider is installed already.
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start the async runtime")?.block_on(async {
        let client = clients::kube::client().await?;
        let mut findings = Vec::new();
        for ours in crd::with_webhook_namespace(namespace) {
            let name = ours.metadata.name.clone().unwrap_or_default();
            let live = clients::crds::read(&client, &name).await?;
            findings.extend(compare(&ours, live.as_ref()));
        }
        Ok(findings)
    })
}

fn report(findings: &[CrdFinding]) -> Result<ExitCode> {
    for CrdFinding { definition, severity, message } in findings {
        let label = match severity {
            Severity::Ok => "ok",
            Severity::Outdated => "outdated",
            Severity::Unsafe => "REFUSED",
        };
        print::stdout(&format!("{label:<9}{definition} {message}\n"))?;
    }
    let is_unsafe = findings.iter().any(|finding| finding.severity == Severity::Unsafe);
    Ok(if is_unsafe { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
