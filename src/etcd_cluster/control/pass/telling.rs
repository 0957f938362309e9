//! What is told of a pass: the status, the log, the metrics and the Events.
//! Comes in: what was seen, decided and done. Goes out: when to come back. May touch: `ports`, `telemetry`.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Resource;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};

use super::{AGAIN, AT_ONCE, PassError, SELDOM, Visit, WELL, is_idle};
use crate::api::check::Verdict;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_says::Standing;
use crate::etcd_cluster::act::ActError;
use crate::etcd_cluster::control::Context;
use crate::etcd_cluster::identity::footing::Move;
use crate::etcd_cluster::identity::ring::Turn;
use crate::etcd_cluster::identity::wanted::Stuck;
use crate::etcd_cluster::plan::{Because, Plan, Step};
use crate::etcd_cluster::report;
use crate::etcd_cluster::seen::upkeep::Space;
use crate::etcd_cluster::seen::{Name, Seen, WayBack};
use crate::etcd_cluster::status::{self, Tale};
use crate::ports::call::Class;
use crate::ports::clock;
use crate::ports::objects::ObjectError;
use crate::telemetry::{Census, chain};

/// How often one is asked in which something is awaited.
const AWAITED: Duration = Duration::from_millis(500);

/// Tells of a spec that nobody may act on. The members go on as they are.
pub(super) async fn invalid(
    context: &Context,
    cluster: &EtcdCluster,
    verdict: &Verdict,
) -> Result<Action, PassError> {
    let status = status::invalid(cluster, verdict, clock::wall());
    alone(context, cluster, &status, SELDOM).await
}

/// Writes a status that no look was needed for, and answers when to come back.
async fn alone(
    context: &Context,
    cluster: &EtcdCluster,
    status: &EtcdClusterStatus,
    next: Duration,
) -> Result<Action, PassError> {
    match report::cluster(&context.objects, cluster, status).await {
        Ok(_) => Ok(Action::requeue(next)),
        Err(error) if error.class() == Class::Conflict => Ok(Action::requeue(AGAIN)),
        Err(error) => Err(PassError::Report(error)),
    }
}

impl Visit<'_> {
    /// Tells that the members cannot be asked. Nobody knows how they are, so nothing is said about that.
    pub(super) async fn tell_blind(
        &self,
        cluster: &EtcdCluster,
        why: Option<Stuck>,
        trouble: Option<&ActError>,
    ) -> Result<Action, PassError> {
        let known = self.context.keyring.tidings(self.blueprint.uid).flaw.map(Stuck::Given);
        let why = why.or(known);
        let comes = matches!(&why, Some(Stuck::Given(flaw)) if !flaw.needs_a_person());
        let words = why.map(|it| it.to_string()).or_else(|| trouble.map(|it| chain(it)));
        let status = status::blind(cluster, &words.unwrap_or_default(), !comes, self.now);
        alone(self.context, cluster, &status, if comes { AGAIN } else { WELL }).await
    }

    /// Tells the log, the metrics and the Events of a step.
    pub(super) async fn tell_of(
        &self,
        plan: &Plan,
        seen: &Seen,
        done: &Result<(), ActError>,
        of: &EtcdCluster,
    ) {
        let words = status::step_words(plan, seen);
        let (namespace, cluster) = (self.blueprint.namespace, self.blueprint.name);
        let because = plan.because.word();
        if let Err(error) = done {
            let error = chain(error);
            tracing::warn!(
                namespace,
                cluster,
                because,
                step = words,
                error,
                "not done; it is tried again"
            );
            self.context.metrics.etcd_clusters.failed(because);
            return;
        }
        if is_idle(plan) {
            return;
        }
        tracing::info!(namespace, cluster, because, step = words, "done");
        if plan.step != Step::Wait {
            self.context.metrics.etcd_clusters.step(because);
            self.publish(of, plan.because, because, &words).await;
        }
    }

    /// Tells whose pods the API server does not take.
    pub(super) fn tell_refused(&self, plan: &Plan, refused: &BTreeMap<Name, String>) {
        let (namespace, cluster) = (self.blueprint.namespace, self.blueprint.name);
        for (member, error) in refused {
            tracing::warn!(namespace, cluster, %member, error, "its pod is refused; it is tried again");
            self.context.metrics.etcd_clusters.failed(plan.because.word());
        }
    }

    /// Tells that authorities have changed their places, or a side rests on others.
    pub(super) async fn tell_turns(&self, of: &EtcdCluster, turns: &[Turn], moves: &[Move]) {
        let turns = turns.iter().filter_map(|it| Some((it.reason()?, it.words())));
        let moves = moves.iter().filter_map(|it| Some((it.reason()?, it.words())));
        for (reason, words) in turns.chain(moves) {
            self.publish_as(of, EventType::Normal, reason, words).await;
        }
    }

    async fn publish(&self, of: &EtcdCluster, why: Because, reason: &str, words: &str) {
        let kind = if why.is_trouble() { EventType::Warning } else { EventType::Normal };
        self.publish_as(of, kind, reason, words).await;
    }

    async fn publish_as(&self, of: &EtcdCluster, kind: EventType, reason: &str, words: &str) {
        let event = Event {
            type_: kind,
            reason: reason.to_owned(),
            note: Some(words.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reference = of.object_ref(&());
        let call = self.context.recorder.publish(&event, &reference);
        if let Ok(Err(error)) = self.context.mandate.during(AGAIN, call).await {
            tracing::debug!(error = chain(&error), "an Event was not written");
        }
    }

    /// Writes what there is to tell, and answers when to come back.
    pub(super) async fn tell(
        &self,
        tale: &Tale<'_>,
        next: Option<Duration>,
    ) -> Result<Action, PassError> {
        let objects = &self.context.objects;
        let cluster = &tale.look.stock.cluster;
        let told = status::cluster(tale);
        let (namespace, name) = (self.blueprint.namespace, self.blueprint.name);
        self.context.metrics.etcd_clusters.told(namespace, name, census(tale));
        let before = status::reason_before(cluster);
        let mut stale = false;
        let mut settle = |done: Result<bool, ObjectError>| match done {
            Ok(written) => Ok(written),
            Err(error) if matches!(error.class(), Class::Conflict | Class::NotFound) => {
                stale = true;
                Ok(false)
            }
            Err(error) => Err(PassError::Report(error)),
        };
        let written = settle(report::cluster(objects, cluster, &told).await)?;
        for member in &tale.look.stock.members {
            let told = status::member(tale, member);
            settle(report::member(objects, member, &told).await)?;
        }
        let because = tale.plan.because;
        if written && before.as_deref() != Some(because.word()) {
            self.publish(cluster, because, because.word(), &status::story(tale)).await;
        }
        let pause = match next {
            Some(next) => next,
            None if stale => AT_ONCE,
            None => rest(because),
        };
        Ok(Action::requeue(pause))
    }
}

/// The largest that any member has of something.
fn largest(tale: &Tale<'_>, of: impl Fn(&Standing) -> i64) -> i64 {
    let standings = tale.look.heard.voices.values().filter_map(|it| it.standing.as_ref());
    standings.map(of).max().unwrap_or(0)
}

fn census(tale: &Tale<'_>) -> Census {
    let seen = tale.seen;
    let well = seen.etcd.known().map_or(0, |etcd| etcd.voters().filter(|it| it.is_well()).count());
    Census {
        wanted: seen.wanted.replicas,
        ready: well,
        has_quorum: seen.etcd.known().is_some(),
        is_taken_back: seen.wanted.way_back == WayBack::Taken,
        is_full: seen.etcd.known().is_some_and(|etcd| etcd.space != Space::Enough),
        differs: seen.etcd.known().is_some_and(|etcd| etcd.corrupt),
        file: largest(tale, |it| it.db_size),
        in_use: largest(tale, |it| it.db_in_use),
    }
}

/// How soon a cluster is looked at again in which nothing is to be done now.
fn rest(because: Because) -> Duration {
    match because {
        Because::Well | Because::TakenBack | Because::AuthBlocked | Because::DataDiffersBlocked => {
            WELL
        }
        Because::Switching
        | Because::ChangingAuth
        | Because::NoSpaceStays
        | Because::DataDiffers => AGAIN,
        Because::Paused | Because::Asleep | Because::VolumesRetained => SELDOM,
        Because::Founding
        | Because::Forming
        | Because::FoundersLost
        | Because::PredecessorThere
        | Because::QuorumLost
        | Because::ForeignCluster
        | Because::ForeignMember
        | Because::Leaving
        | Because::LeavingBlocked
        | Because::Joining
        | Because::JoinFailed
        | Because::MemberLost
        | Because::MemberLostBlocked
        | Because::Rolling
        | Because::RollingBlocked
        | Because::ChangeFails
        | Because::Settling
        | Because::Unreachable
        | Because::Defragmenting
        | Because::NoSpace
        | Because::TooFew
        | Because::TooMany
        | Because::MemberUnwell => AWAITED,
    }
}
