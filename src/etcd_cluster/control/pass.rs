//! One pass over one cluster.
//! Comes in: the cluster, as a watch told of it. Goes out: what was done, and when to come back.
//! May touch: `ports`, `telemetry`. First it looks with what watches told, which costs nobody anything; only if
//! there is something to do does it look again, at the API server itself, and decides anew.

mod circle;
mod draft;
mod telling;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;
use tokio::time::Instant;

use super::Context;
use crate::api::etcd_cluster::checked;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::names;
use crate::etcd_cluster::act::{Act, ActError};
use crate::etcd_cluster::compose::{Look, record};
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::doors::found::Doors;
use crate::etcd_cluster::furnish::{Difference, differences};
use crate::etcd_cluster::heard::Heard;
use crate::etcd_cluster::hop::Way;
use crate::etcd_cluster::identity::tidings::Tidings;
use crate::etcd_cluster::identity::trust::Trust;
use crate::etcd_cluster::identity::wanted::Stuck;
use crate::etcd_cluster::keyring::{Circle, Kept, KeyringError};
use crate::etcd_cluster::observe::{self, Lines};
use crate::etcd_cluster::pace::{Pace, RoundTrip};
use crate::etcd_cluster::plan::deeds::Moment;
use crate::etcd_cluster::plan::{Plan, Step};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::tune::{self, Found};
use crate::etcd_cluster::seen::{Name, Seen};
use crate::etcd_cluster::status::{self, Tale};
use crate::etcd_cluster::stock::Stock;
use crate::etcd_cluster::undo::{self, Before};
use crate::ports::call::{CallError, Class};
use crate::ports::objects::ObjectError;
use crate::ports::{chance, clock, rehearsal};
use crate::telemetry::chain;
use circle::circle;
use draft::{Draft, spec};

/// How often a cluster is asked that is well.
const WELL: Duration = Duration::from_secs(10);
/// How soon the next pass follows one that did something.
const AT_ONCE: Duration = Duration::from_millis(20);
/// How soon something is tried again that failed.
const AGAIN: Duration = Duration::from_secs(2);
/// How soon the first pass is tried again while watches have not told everything.
const NOT_YET: Duration = Duration::from_millis(200);
/// How often one is looked at whose namespace is not granted.
const NOT_GRANTED: Duration = Duration::from_secs(5);
/// How often one is looked at that nothing can be done about.
const SELDOM: Duration = Duration::from_mins(5);
/// More names than are ever needed at once.
const NAMES: usize = 8;

/// Why a pass came to nothing at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    /// The objects of the cluster could not be read.
    #[error(transparent)]
    Look(CallError),
    /// The status could not be written.
    #[error(transparent)]
    Report(ObjectError),
}

impl PassError {
    /// Whether the operator had no right to it.
    pub(super) fn is_refused(&self) -> bool {
        match self {
            Self::Look(error) => error.class() == Class::Refused,
            Self::Report(error) => error.class() == Class::Refused,
        }
    }
}

/// Makes one pass.
pub(super) async fn pass(
    cluster: Arc<EtcdCluster>,
    context: Arc<Context>,
) -> Result<Action, PassError> {
    if cluster.metadata.deletion_timestamp.is_some() {
        context.forget(&cluster);
        return Ok(Action::await_change());
    }
    if status::is_not_granted(&cluster) && !has_rights(&context, &cluster).await {
        return Ok(Action::requeue(NOT_GRANTED));
    }
    if !context.has_heard_all() {
        return Ok(Action::requeue(NOT_YET));
    }
    let begun = Instant::now();
    // A pass is a large thing, and there may be many of them.
    let action = match Box::pin(glance(&context, &cluster)).await {
        Ok(None) => Box::pin(act(&context, &cluster)).await,
        Ok(Some(action)) => Ok(action),
        Err(error) => Err(error),
    };
    context.metrics.etcd_clusters.passed(begun.elapsed());
    action
}

/// Looks with what watches told. If nothing is to be done that is all.
async fn glance(context: &Context, cluster: &EtcdCluster) -> Result<Option<Action>, PassError> {
    let draft = match Draft::of(cluster) {
        Ok(draft) => draft,
        Err(verdict) => return telling::invalid(context, cluster, &verdict).await.map(Some),
    };
    let blueprint = draft.blueprint(context);
    let visit = Visit { context, blueprint: &blueprint, now: clock::wall() };
    Box::pin(visit.glance(cluster)).await
}

/// Asks the API server for everything, the spec among it, decides anew and does it.
async fn act(context: &Context, cluster: &EtcdCluster) -> Result<Action, PassError> {
    let found = Box::pin(observe::stock(&context.objects, cluster)).await;
    let Some(stock) = found.map_err(PassError::Look)? else {
        context.forget(cluster);
        return Ok(Action::await_change());
    };
    let draft = match Draft::of(&stock.cluster) {
        Ok(draft) => draft,
        Err(verdict) => return telling::invalid(context, &stock.cluster, &verdict).await,
    };
    let blueprint = draft.blueprint(context);
    let visit = Visit { context, blueprint: &blueprint, now: clock::wall() };
    Box::pin(visit.act(stock)).await
}

/// Whether the operator may work in a cluster's namespace after all, although another room has said that it may not. What is
/// told of the cluster then takes the place of those words.
async fn has_rights(context: &Context, cluster: &EtcdCluster) -> bool {
    let namespace = cluster.namespace().unwrap_or_default();
    let name = names::authority_secret(&cluster.name_any());
    context.objects.get::<Secret>(&namespace, &name).await.is_ok()
}

/// What members are made of that run otherwise than is wanted, if there are any and anything can be made of it.
fn before(blueprint: &Blueprint<'_>, view: &View) -> Option<Before> {
    let text = undo::worked(blueprint, &view.stock, &view.heard)?;
    let spec = spec(&undo::with_parts(&view.stock.cluster, &text)?).ok()?;
    Some(Before { text, spec: (*spec).clone() })
}

/// One visit to a cluster.
struct Visit<'a> {
    context: &'a Context,
    /// As the spec asks for it.
    blueprint: &'a Blueprint<'a>,
    now: Timestamp,
}

/// What a look brought.
struct View {
    stock: Stock,
    heard: Heard,
    lines: Lines,
    names: Vec<Name>,
    /// Whom pods should trust.
    trust: Option<Trust>,
    /// How long messages between members take, if that is known and matters.
    measured: Option<RoundTrip>,
}

impl Visit<'_> {
    async fn glance(&self, cluster: &EtcdCluster) -> Result<Option<Action>, PassError> {
        let keyring = &self.context.keyring;
        // Nothing is kept for one that is left alone before anything of it was made.
        let is_kept = !(self.blueprint.spec.paused && is_unborn(cluster));
        if is_kept && keyring.credentials(self.blueprint.uid, self.now).is_none() {
            return Ok(None);
        }
        let told = self.context.shelves.stock(cluster);
        let doors = self.doors(&told);
        let view = Box::pin(self.view(told, &doors)).await;
        let (way, spec) = self.brought_in(&view);
        let blueprint = self.with(&spec, &doors, &view);
        let before = before(&blueprint, &view);
        let look = self.look(&blueprint, way, before.as_ref(), &view);
        let seen = look.seen();
        let plan = decide(&seen);
        let is_wanting = !differing(&blueprint, &view.stock, &seen).is_empty()
            || is_kept && keyring.must_look(&self.circle(&blueprint, &view.stock), self.now);
        if !is_idle(&plan) || is_wanting {
            return Ok(None);
        }
        self.note(false, &seen, &plan);
        let tidings = keyring.tidings(self.blueprint.uid);
        let plan = status::as_told(&view.stock.cluster, &seen, plan);
        let refused = BTreeMap::new();
        let tale = Tale { look: &look, seen: &seen, plan: &plan, trouble: None, tidings, refused };
        self.tell(&tale, None).await.map(Some)
    }

    /// Which release the cluster is on its way to, and what is made of it now: that may be a step on the way.
    fn brought_in(&self, view: &View) -> (Way, checked::EtcdCluster) {
        let asked = self.blueprint.spec;
        let way = Way::of(asked.version, &view.stock, &view.heard);
        (way, checked::EtcdCluster { version: way.now(), ..asked.clone() })
    }

    /// The pace that members should keep, where nobody has asked for one.
    fn pace(&self, view: &View) -> Pace {
        if tune::is_pace_given(self.blueprint.spec) {
            return Pace::OWN;
        }
        Pace::wanted(view.stock.cluster.status.as_ref(), &view.stock.pods, view.measured)
    }

    /// What members are made of now.
    fn with<'b>(
        &'b self,
        spec: &'b checked::EtcdCluster,
        doors: &'b Doors,
        view: &View,
    ) -> Blueprint<'b> {
        let named = self.context.keyring.named(self.blueprint.uid);
        let found = Found { pace: self.pace(view), disk: tune::smallest_disk(&view.stock) };
        Blueprint { spec, named, found, doors: Some(doors), ..*self.blueprint }
    }

    /// A page for the diary, if one is kept.
    fn note(&self, asked: bool, seen: &Seen, plan: &Plan) {
        let cluster = self.blueprint.name;
        let page = json!({ "cluster": cluster, "asked": asked, "seen": seen, "plan": plan });
        rehearsal::page(&page);
    }

    fn circle<'b>(&self, blueprint: &'b Blueprint<'b>, stock: &Stock) -> Circle<'b> {
        circle(blueprint, stock, &self.context.doorkeeper, self.now)
    }

    fn doors(&self, stock: &Stock) -> Doors {
        Doors::of(self.blueprint.spec, stock, self.now)
    }

    async fn view(&self, stock: Stock, doors: &Doors) -> View {
        let Context { keyring, doorkeeper, objects, pacer, .. } = self.context;
        let credentials = keyring.credentials(self.blueprint.uid, self.now);
        let (mut heard, lines) = observe::ask(&stock, credentials.as_ref(), self.now).await;
        let blueprint = Blueprint { doors: Some(doors), ..*self.blueprint };
        let known = keyring.is_known(self.blueprint.uid);
        heard.auth = doorkeeper.ask(objects, &blueprint, (&heard, &lines, known), self.now).await;
        let named = |word: String| Name(format!("{}-{word}", self.blueprint.name));
        let free = chance::words(NAMES).into_iter().map(named).collect();
        let trust = keyring.trust(self.blueprint.uid);
        // Who is silent must not be waited for once more.
        let may_ask = !tune::is_pace_given(self.blueprint.spec) && heard.is_nobody_silent();
        let measured = match heard.council.known().filter(|_| may_ask) {
            Some(council) => pacer.ask(&stock, council, self.now).await,
            None => None,
        };
        View { stock, heard, lines, names: free, trust, measured }
    }

    fn look<'b>(
        &self,
        blueprint: &'b Blueprint<'b>,
        way: Way,
        before: Option<&'b Before>,
        view: &'b View,
    ) -> Look<'b> {
        let View { stock, heard, names, trust, .. } = view;
        let (now, since, trust) = (self.now, self.context.since, trust.as_ref());
        Look { blueprint, stock, heard, way, before, now, since, names: names.clone(), trust }
    }

    /// Who does what was decided from a look.
    fn doer<'b>(
        &'b self,
        look: &Look<'b>,
        seen: &'b Seen,
        lines: &'b Lines,
        stock: &'b mut Stock,
    ) -> Act<'b> {
        let Context { objects, mandate, .. } = self.context;
        let Look { blueprint, before, trust, .. } = *look;
        let refused = BTreeMap::new();
        Act { trust, objects, mandate, blueprint, before, seen, lines, stock, refused }
    }

    /// Looks after the Secrets. Answers why nothing can be signed, what went wrong, which holds up nothing else, and whether
    /// applications were told something only now, or could not be.
    async fn keep(
        &self,
        circle: &Circle<'_>,
        cluster: &EtcdCluster,
    ) -> Result<(Option<Stuck>, Option<ActError>, bool), PassError> {
        let Context { keyring, objects, .. } = self.context;
        match keyring.keep(objects, circle, self.now).await {
            Ok(Kept { written, stuck, turns, moves }) => {
                self.tell_turns(cluster, &turns, &moves).await;
                let is_told = written.contains(&names::client_secret(self.blueprint.name));
                let is_told_late = is_told || stuck.is_some();
                Ok((stuck, None, is_told_late))
            }
            // Without a right to Secrets there is nothing to tell, either: another room does.
            Err(KeyringError::Read(error)) if error.class() == Class::Refused => {
                Err(PassError::Look(error))
            }
            Err(error) => Ok((None, Some(ActError::Keys(error)), true)),
        }
    }

    /// Looks again, at what is there now, decides, and does it.
    async fn act(&self, stock: Stock) -> Result<Action, PassError> {
        let doors = self.doors(&stock);
        let asked = Blueprint { doors: Some(&doors), ..*self.blueprint };
        let (why, trouble, is_told_late) =
            self.keep(&self.circle(&asked, &stock), &stock.cluster).await?;
        let doors = if is_told_late { doors.told_late(&stock, self.now) } else { doors };
        if self.context.keyring.credentials(self.blueprint.uid, self.now).is_none() {
            return self.tell_blind(&stock.cluster, why, trouble.as_ref()).await;
        }
        let view = Box::pin(self.view(stock, &doors)).await;
        let (way, spec) = self.brought_in(&view);
        let blueprint = self.with(&spec, &doors, &view);
        let before = before(&blueprint, &view);
        let look = self.look(&blueprint, way, before.as_ref(), &view);
        let seen = look.seen();
        let plan = decide(&seen);
        self.note(true, &seen, &plan);
        let mut after = view.stock.clone();
        // A Secret that cannot be written holds up no member that has one.
        let mut act = self.doer(&look, &seen, &view.lines, &mut after);
        let done = carry_out(&mut act, &plan).await;
        let refused = act.refused;
        let done = done.and(trouble.map_or(Ok(()), Err));
        if done.is_ok() {
            plan.deeds().for_each(|deed| rehearsal::moment(deed, Moment::Untold.word()));
        }
        self.tell_of(&plan, &seen, &done, &after.cluster).await;
        self.tell_refused(&plan, &refused);
        let late = done.as_ref().is_err_and(ActError::is_late);
        let trouble = done.err().filter(|it| !it.is_late()).map(|error| chain(&error));
        let trouble = trouble.or_else(|| refused.values().next().cloned());
        let view = View { stock: after, ..view };
        let look = self.look(&blueprint, way, before.as_ref(), &view);
        let next = if trouble.is_some() { Some(AGAIN) } else { soon(late, is_idle(&plan)) };
        let plan = status::as_told(&view.stock.cluster, &seen, plan);
        let tidings = Tidings { stuck: why, ..self.context.keyring.tidings(self.blueprint.uid) };
        let tale = Tale { look: &look, seen: &seen, plan: &plan, trouble, tidings, refused };
        self.tell(&tale, next).await
    }
}

/// Puts right what stands around the members, then does what was decided.
async fn carry_out(act: &mut Act<'_>, plan: &Plan) -> Result<(), ActError> {
    let differences = differing(act.blueprint, act.stock, act.seen);
    let furnished = act.furnish(&differences).await;
    // Nobody could find a member that has no Service.
    if furnished.is_err() && differences.iter().any(Difference::is_needed_first) {
        return furnished;
    }
    act.carry_out(plan).await.and(furnished)
}

/// What is to be put right: while everything is left alone, only what goes with the cluster in the end.
fn differing(blueprint: &Blueprint<'_>, stock: &Stock, seen: &Seen) -> Vec<Difference> {
    let mut found = differences(blueprint, stock, seen);
    found.retain(|it| !seen.wanted.paused || it.is_about_owners());
    found
}

/// How soon the next pass follows one that nothing went wrong in; in its own time, if there was nothing to do.
fn soon(late: bool, idle: bool) -> Option<Duration> {
    if late { Some(NOT_YET) } else { (!idle).then_some(AT_ONCE) }
}

/// Whether nobody was ever chosen to found it.
fn is_unborn(cluster: &EtcdCluster) -> bool {
    let record = record(&cluster.status.clone().unwrap_or_default());
    record.formed.is_none() && record.founders.is_empty()
}

fn is_idle(plan: &Plan) -> bool {
    plan.chores.is_empty() && plan.step == Step::Wait
}
