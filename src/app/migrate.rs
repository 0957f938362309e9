//! `quorate migrate`: says in which versions objects are stored, tries what carrying them would do, and follows it.
//! Comes in: the command, and the cluster. Goes out: lines, a bar, and an exit code: 1 if something is not as it should be.
//! May touch: `ports`, `storage_migration`, stdout. The leader does the work; here it is only asked to try again.

mod bar;

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
use crate::api::crd::stored::Definition;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::cli::{MigrateArgs, MigrateCommand};
use crate::ports::call::Class;
use crate::ports::mandate::Mandate;
use crate::ports::objects::Objects;
use crate::ports::stored::{PageError, StoredPort, Which};
use crate::ports::{self, clock};
use crate::storage_migration::{Phase, Record, converted, recorded};
use crate::telemetry::chain;
use bar::Bar;

/// How often the record is read while it is followed.
const GLANCE: Duration = Duration::from_millis(500);
/// If nothing happens for so long, nobody works on it.
const PATIENCE: Duration = Duration::from_mins(2);
const PAGE: u32 = 250;
const WIDTH: usize = 8;

/// What one kind is like.
struct Sight {
    kind: &'static Kind,
    definition: Definition,
    record: Option<Record>,
}

/// The way to the cluster.
struct Desk {
    port: StoredPort,
    objects: Objects,
    namespace: String,
}

/// Does what was asked for.
pub(super) fn migrate(args: &MigrateArgs) -> ExitCode {
    // An error only says that a provider is installed already, which is all we want.
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    let runtime = Builder::new_current_thread().enable_all().build();
    let done = runtime.context("failed to start the event loop").and_then(|runtime| {
        runtime.block_on(async {
            let client = ports::kube::client().await?;
            let desk = Desk {
                port: StoredPort::new(client.clone(), Mandate::of_a_person()),
                objects: Objects::new(client, Mandate::of_a_person()),
                namespace: args.namespace.clone(),
            };
            match args.command {
                MigrateCommand::Status => desk.status().await,
                MigrateCommand::DryRun => desk.dry_run().await,
                MigrateCommand::Run => desk.run().await,
            }
        })
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            print::complain(&format!("quorate: {error:#}\n"));
            ExitCode::from(FAILED)
        }
    }
}

impl Desk {
    async fn sights(&self) -> Result<Vec<Sight>> {
        let book: Option<ConfigMap> =
            self.objects.get(&self.namespace, names::MIGRATION_RECORD).await?;
        let mut sights = Vec::new();
        for kind in converted() {
            let Some(definition) = self.port.definition(kind).await? else {
                bail!("{} is not installed", kind.definition_name());
            };
            let record = recorded(kind, book.as_ref()).filter(|it| it.is_of(&definition));
            sights.push(Sight { kind, definition, record });
        }
        Ok(sights)
    }

    async fn status(&self) -> Result<bool> {
        for sight in self.sights().await? {
            print::say(&sight.words())?;
        }
        Ok(true)
    }

    /// Tries each write without making it, so that whoever would refuse one says so.
    async fn dry_run(&self) -> Result<bool> {
        let mut fine = true;
        for Sight { kind, definition, record: _ } in self.sights().await? {
            let name = kind.definition_name();
            if !definition.is_stale() {
                print::say(&format!(
                    "{name} is stored in {} alone: nothing to do\n",
                    definition.storage
                ))?;
                continue;
            }
            let refused = self.rehearse(kind).await?;
            for words in &refused {
                print::say(&format!("REFUSED {words}\n"))?;
            }
            fine &= refused.is_empty();
        }
        Ok(fine)
    }

    /// Tries every object of a kind; answers with those that would be refused.
    async fn rehearse(&self, kind: &'static Kind) -> Result<Vec<String>> {
        let (mut token, mut refused, mut bar) =
            (None, Vec::new(), Bar::new(&kind.definition_name()));
        let (mut looked, mut total) = (0_u64, 0_u64);
        loop {
            let page = match self.port.page(kind, PAGE, token.as_deref()).await {
                Ok(page) => page,
                Err(PageError::Expired(Some(next))) => {
                    token = Some(next);
                    continue;
                }
                Err(error) => return Err(error).context("failed to list"),
            };
            let (listed, left) = (page.items.len(), page.metadata.remaining_item_count);
            total = total
                .max(looked.saturating_add(count(listed)).saturating_add(count(left.unwrap_or(0))));
            let mut tries = stream::iter(&page.items)
                .map(|object| self.tried(kind, &object.metadata))
                .buffer_unordered(WIDTH);
            while let Some(words) = tries.next().await {
                looked = looked.saturating_add(1);
                refused.extend(words);
                bar.show(looked, total, &format!("{} would be refused", refused.len()))?;
            }
            drop(tries);
            token = page.metadata.continue_.filter(|it| !it.is_empty());
            if token.is_none() {
                bar.end(&format!(
                    "{looked} objects would be written once, {} of them refused",
                    refused.len()
                ))?;
                return Ok(refused);
            }
        }
    }

    /// Tries one object; answers with why it would be refused, if it would be.
    async fn tried(&self, kind: &'static Kind, metadata: &ObjectMeta) -> Option<String> {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let which = Which { kind, namespace, name };
        let nothing = json!({ "metadata": { "uid": metadata.uid } });
        match self.port.rehearse(which, kind.hub().name, &nothing).await {
            Ok(()) => None,
            Err(error) if matches!(error.class(), Class::NotFound | Class::Conflict) => None,
            Err(error) => Some(format!("{namespace}/{name}: {}", chain(&error))),
        }
    }

    /// Asks the leader to try again what waits, and follows it to its end.
    async fn run(&self) -> Result<bool> {
        let stale: Vec<Sight> =
            self.sights().await?.into_iter().filter(|it| it.definition.is_stale()).collect();
        if stale.is_empty() {
            print::say("everything is stored in one version: nothing to do\n")?;
            return Ok(true);
        }
        if let Some(paused) = stale.iter().find(|it| it.definition.paused) {
            let name = paused.kind.definition_name();
            bail!(
                "it is paused; go on with: kubectl annotate crd {name} {}-",
                names::MIGRATION_ANNOTATION
            );
        }
        if stale.iter().any(|it| it.record.is_some()) {
            let asked = json!({ "metadata": {
                "annotations": { names::MIGRATION_ASKED_ANNOTATION: clock::wall().to_string() },
            } });
            self.objects
                .merge::<ConfigMap>(&self.namespace, names::MIGRATION_RECORD, &asked)
                .await?;
        }
        let mut fine = true;
        for sight in stale {
            fine &= self.follow(&sight).await?;
        }
        Ok(fine)
    }

    /// Follows one kind until it is done, or held once more than at the beginning.
    async fn follow(&self, first: &Sight) -> Result<bool> {
        let mut bar = Bar::new(&first.kind.definition_name());
        let tries = first.record.as_ref().map_or(0, |it| it.pass);
        let (mut last, mut since) = (first.record.clone(), Instant::now());
        loop {
            let sights = self.sights().await?;
            let found = sights.into_iter().find(|it| it.kind.name == first.kind.name);
            let Some(sight) = found else { bail!("the kind is gone") };
            if !sight.definition.is_stale() {
                bar.end(&sight.words())?;
                return Ok(true);
            }
            if let Some(record) = &sight.record {
                let (looked, written) = (record.tally.looked, record.tally.written);
                let words = format!(
                    "{}, {written} written, {} failed",
                    record.phase.name(),
                    record.tally.failed
                );
                bar.show(looked, record.total.max(looked), &words)?;
                if record.phase == Phase::Held && record.pass > tries {
                    bar.end(&sight.words())?;
                    return Ok(false);
                }
            }
            if sight.record != last {
                (last, since) = (sight.record, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                bail!(
                    "nothing has happened for {} seconds: does the operator run, and is it not told \
                     --storage-migration=off? its log says what it waits for",
                    PATIENCE.as_secs()
                );
            }
            time::sleep(GLANCE).await;
        }
    }
}

impl Sight {
    /// How it stands, in lines.
    fn words(&self) -> String {
        let Self { kind, definition, record } = self;
        let mut words = format!(
            "{}: stored in {}, written in {}",
            kind.definition_name(),
            definition.stored.join(", "),
            definition.storage
        );
        if definition.paused {
            words.push_str("; paused");
        }
        let far = record.iter().map(|record| {
            let Record { phase, total, tally, .. } = record;
            let (looked, written, failed) = (tally.looked, tally.written, tally.failed);
            let phase = phase.name();
            format!("; {phase}: {looked} of {total} looked at, {written} written, {failed} failed")
        });
        words.extend(far);
        words.push('\n');
        let failures = record.iter().flat_map(|it| &it.failures);
        words.extend(failures.map(|it| format!("  {}: {}\n", it.object, it.why)));
        words
    }
}

fn count<N: TryInto<u64>>(number: N) -> u64 {
    number.try_into().unwrap_or_default()
}
