//! `quorate migrate`: shows stored versions, dry-runs a storage version migration, and follows it.
//!
//! The leader does the work; this command only requests a retry. Exit code 1 if objects fail.

mod progress_bar;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{self, Instant};

use super::{FAILED, print};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::cli::{MigrateArgs, MigrateCommand};
use crate::clients::error::ErrorClass;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::objects::Objects;
use crate::clients::storage_versions::{ObjectRef, PageError, StorageVersionsClient};
use crate::clients::{self, clock};
use crate::storage_migration::{Phase, Record, multi_version_kinds, recorded};
use crate::telemetry::error_chain;
use progress_bar::ProgressBar;

/// How often the migration record is read while it is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Without progress for this long, no operator is migrating.
const STALL_TIMEOUT: Duration = Duration::from_mins(2);
const PAGE_SIZE: u32 = 250;
const CONCURRENCY: usize = 8;

/// The stored versions and the migration record of one kind.
struct MigrationStatus {
    kind: &'static Kind,
    definition: StoredCrd,
    record: Option<Record>,
}

/// The clients of the command.
struct MigrateClients {
    versions: StorageVersionsClient,
    objects: Objects,
    namespace: String,
}

/// Runs the subcommand.
pub(super) fn migrate(args: &MigrateArgs) -> ExitCode {
    // An error only means that a provider is installed already.
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    let runtime = Builder::new_current_thread().enable_all().build();
    let done = runtime.context("failed to start the async runtime").and_then(|runtime| {
        runtime.block_on(async {
            let client = clients::kube::client().await?;
            let command = MigrateClients {
                versions: StorageVersionsClient::new(client.clone(), LeaderGuard::always()),
                objects: Objects::new(client, LeaderGuard::always()),
                namespace: args.namespace.clone(),
            };
            match args.command {
                MigrateCommand::Status => command.status().await,
                MigrateCommand::DryRun => command.dry_run().await,
                MigrateCommand::Run => command.run().await,
            }
        })
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            print::stderr(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}

impl MigrateClients {
    async fn statuses(&self) -> Result<Vec<MigrationStatus>> {
        let record_map: Option<ConfigMap> =
            self.objects.get(&self.namespace, names::MIGRATION_RECORD).await?;
        let mut statuses = Vec::new();
        for kind in multi_version_kinds() {
            let Some(definition) = self.versions.crd(kind).await? else {
                bail!("{} is not installed", kind.crd_name());
            };
            let record =
                recorded(kind, record_map.as_ref()).filter(|record| record.matches(&definition));
            statuses.push(MigrationStatus { kind, definition, record });
        }
        Ok(statuses)
    }

    async fn status(&self) -> Result<bool> {
        for status in self.statuses().await? {
            print::stdout(&status.message())?;
        }
        Ok(true)
    }

    /// Dry-runs each write, so that validation and webhooks report what they would reject.
    async fn dry_run(&self) -> Result<bool> {
        let mut accepted = true;
        for MigrationStatus { kind, definition, record: _ } in self.statuses().await? {
            let name = kind.crd_name();
            if !definition.is_stale() {
                print::stdout(&format!(
                    "{name} is stored only in {}: nothing to do\n",
                    definition.storage
                ))?;
                continue;
            }
            let rejected = self.dry_run_kind(kind).await?;
            for error in &rejected {
                print::stdout(&format!("REJECTED {error}\n"))?;
            }
            accepted &= rejected.is_empty();
        }
        Ok(accepted)
    }

    /// Dry-runs every object of a kind; returns those that would be rejected.
    async fn dry_run_kind(&self, kind: &'static Kind) -> Result<Vec<String>> {
        let (mut token, mut rejected, mut bar) =
            (None, Vec::new(), ProgressBar::new(&kind.crd_name()));
        let (mut processed, mut total) = (0_u64, 0_u64);
        loop {
            let page = match self.versions.page(kind, PAGE_SIZE, token.as_deref()).await {
                Ok(page) => page,
                Err(PageError::Expired(Some(next))) => {
                    token = Some(next);
                    continue;
                }
                Err(error) => return Err(error).context("failed to list"),
            };
            let (listed, left) = (page.items.len(), page.metadata.remaining_item_count);
            total = total.max(
                processed.saturating_add(count(listed)).saturating_add(count(left.unwrap_or(0))),
            );
            let mut results = stream::iter(&page.items)
                .map(|object| self.dry_run_object(kind, &object.metadata))
                .buffer_unordered(CONCURRENCY);
            while let Some(error) = results.next().await {
                processed = processed.saturating_add(1);
                rejected.extend(error);
                bar.show(processed, total, &format!("{} would be rejected", rejected.len()))?;
            }
            drop(results);
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                bar.end(&format!(
                    "{processed} objects would be rewritten, {} of them rejected",
                    rejected.len()
                ))?;
                return Ok(rejected);
            }
        }
    }

    /// Dry-runs one object; returns the error, if it would be rejected.
    async fn dry_run_object(&self, kind: &'static Kind, metadata: &ObjectMeta) -> Option<String> {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let object = ObjectRef { kind, namespace, name };
        let patch = json!({ "metadata": { "uid": metadata.uid } });
        match self.versions.dry_run(object, kind.hub().name, &patch).await {
            Ok(()) => None,
            Err(error) if matches!(error.class(), ErrorClass::NotFound | ErrorClass::Conflict) => {
                None
            }
            Err(error) => Some(format!("{namespace}/{name}: {}", error_chain(&error))),
        }
    }

    /// Requests a retry from the leader, and follows the migration until it completes.
    async fn run(&self) -> Result<bool> {
        let stale: Vec<MigrationStatus> = self
            .statuses()
            .await?
            .into_iter()
            .filter(|status| status.definition.is_stale())
            .collect();
        if stale.is_empty() {
            print::stdout("all kinds are stored in a single version: nothing to do\n")?;
            return Ok(true);
        }
        if let Some(paused) = stale.iter().find(|status| status.definition.paused) {
            let name = paused.kind.crd_name();
            bail!(
                "migration is paused; resume with: kubectl annotate crd {name} {}-",
                names::MIGRATION_ANNOTATION
            );
        }
        if stale.iter().any(|status| status.record.is_some()) {
            let retry = json!({ "metadata": {
                "annotations": { names::MIGRATION_RETRY_ANNOTATION: clock::wall().to_string() },
            } });
            self.objects
                .merge::<ConfigMap>(&self.namespace, names::MIGRATION_RECORD, &retry)
                .await?;
        }
        let mut completed = true;
        for status in stale {
            completed &= self.follow(&status).await?;
        }
        Ok(completed)
    }

    /// Follows one kind until its migration completes, or blocks again after the retry.
    async fn follow(&self, first: &MigrationStatus) -> Result<bool> {
        let mut bar = ProgressBar::new(&first.kind.crd_name());
        let tries = first.record.as_ref().map_or(0, |record| record.attempt);
        let (mut last, mut since) = (first.record.clone(), Instant::now());
        loop {
            let statuses = self.statuses().await?;
            let current = statuses.into_iter().find(|status| status.kind.name == first.kind.name);
            let Some(status) = current else { bail!("the CRD was deleted") };
            if !status.definition.is_stale() {
                bar.end(&status.message())?;
                return Ok(true);
            }
            if let Some(record) = &status.record {
                let (looked, written) = (record.counts.listed, record.counts.written);
                let message = format!(
                    "{}, {written} written, {} failed",
                    record.phase.name(),
                    record.counts.failed
                );
                bar.show(looked, record.total.max(looked), &message)?;
                if record.phase == Phase::Blocked && record.attempt > tries {
                    bar.end(&status.message())?;
                    return Ok(false);
                }
            }
            if status.record != last {
                (last, since) = (status.record, Instant::now());
            }
            if since.elapsed() > STALL_TIMEOUT {
                bail!(
                    "no progress for {} seconds; check that the operator runs without \
                     --storage-migration=off, and see its log",
                    STALL_TIMEOUT.as_secs()
                );
            }
            time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl MigrationStatus {
    /// The state of the kind, in lines.
    fn message(&self) -> String {
        let Self { kind, definition, record } = self;
        let mut message = format!(
            "{}: stored in {}, written in {}",
            kind.crd_name(),
            definition.stored.join(", "),
            definition.storage
        );
        if definition.paused {
            message.push_str("; paused");
        }
        let progress = record.iter().map(|record| {
            let Record { phase, total, counts, .. } = record;
            let (looked, written, failed) = (counts.listed, counts.written, counts.failed);
            let phase = phase.name();
            format!("; {phase}: {looked}/{total} processed, {written} written, {failed} failed")
        });
        message.extend(progress);
        message.push('\n');
        let failures = record.iter().flat_map(|record| &record.failures);
        message
            .extend(failures.map(|failure| format!("  {}: {}\n", failure.object, failure.message)));
        message
    }
}

fn count<N: TryInto<u64>>(number: N) -> u64 {
    number.try_into().unwrap_or_default()
}
