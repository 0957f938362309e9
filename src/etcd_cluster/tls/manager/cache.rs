//! What is remembered of the Secrets of a cluster, as long as this replica leads.
//! Comes in: what was seen when everything was as it should be. Goes out: credentials for the operator itself, whom pods
//! should trust, what is to be told, and when to look again. May touch: nothing outside.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::ca_rotation::{RotationReport, next_look};
use super::{CertificateManager, CertificateManagerError, CertificateScope, Ctx};
use crate::api::etcd_cluster::validated::Certificates;
use crate::api::names;
use crate::clients::etcd::Credentials;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::tls::ca_set::CaSet;
use crate::etcd_cluster::tls::external_secret::CertificateProblem;
use crate::etcd_cluster::tls::issue::Issuer;
use crate::etcd_cluster::tls::lifetimes::due_at;
use crate::etcd_cluster::tls::report::CertificateReport;
use crate::etcd_cluster::tls::secrets_plan::SecretsPlan;
use crate::etcd_cluster::tls::source::Leaves;
use crate::etcd_cluster::tls::trust_bundle::Side;
use crate::etcd_cluster::tls::trust_change::TrustChangeStatus;
use crate::etcd_cluster::tls::trust_hash::{Sides, TrustHash};
use crate::etcd_cluster::transport::Scheme;
use crate::pki::ca::{Certificate, bundle};

/// So soon it is seen that somebody has changed certificates from elsewhere.
const SOURCE_INTERVAL: Duration = Duration::from_secs(30);
/// The same while they cannot be used: somebody is mending them.
const BROKEN_SOURCE_INTERVAL: Duration = Duration::from_secs(5);

/// What the Secrets were seen to be right for.
#[derive(Clone, PartialEq)]
struct ScopeFingerprint {
    /// The members and their uids.
    members: BTreeSet<(MemberName, String)>,
    /// Those that applications are told of.
    told: Option<Vec<MemberName>>,
    /// How these are called.
    scheme: Scheme,
    /// Where certificates come from, for clients and for members.
    sources: [Certificates; 2],
    /// Whether the cluster owns its Secrets.
    is_owned: bool,
    asked: Option<String>,
    is_paused: bool,
}

/// What is remembered of one cluster.
#[derive(Clone)]
pub(super) struct CachedCredentials {
    credentials: Credentials,
    /// Who signed the operator's own certificate; itself, if it was given.
    signer: Certificate,
    /// When the operator's own certificate is due.
    own_due: Timestamp,
    right: Option<ScopeFingerprint>,
    /// When to look at them again.
    look: Timestamp,
    tidings: CertificateReport,
    /// Whom members trust by what is in their Secrets.
    trust: TrustHash,
    /// Whether members ask each other for the name of the cluster.
    named: bool,
    /// Whether the operator shows its own name.
    is_known: bool,
}

impl CertificateManager {
    fn of<T>(&self, uid: &str, read: impl FnOnce(&CachedCredentials) -> Option<T>) -> Option<T> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(uid).and_then(read)
    }

    /// What the operator shows to the members of a cluster, if that is known.
    pub(crate) fn credentials(&self, uid: &str, now: Timestamp) -> Option<Credentials> {
        self.of(uid, |it| (now < it.own_due).then(|| it.credentials.clone()))
    }

    /// Whom the pods of a cluster should trust, if that is known.
    pub(crate) fn trust(&self, uid: &str) -> Option<TrustHash> {
        self.of(uid, |it| Some(it.trust.clone()))
    }

    /// Whether members ask each other for the name of the cluster: others than its own authorities have signed what they show.
    pub(crate) fn requires_cluster_name(&self, uid: &str) -> bool {
        self.of(uid, |it| Some(it.named)).unwrap_or_default()
    }

    /// Whether the operator shows its own name to the members of a cluster.
    pub(crate) fn operator_cn_recognized(&self, uid: &str) -> bool {
        self.of(uid, |it| Some(it.is_known)).unwrap_or_default()
    }

    /// What is to be told of the certificates of a cluster.
    pub(crate) fn report(&self, uid: &str) -> CertificateReport {
        self.of(uid, |it| Some(it.tidings.clone())).unwrap_or_default()
    }

    /// Forgets a cluster that is gone.
    pub(crate) fn evict(&self, uid: &str) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Whether the Secrets must be looked at.
    pub(crate) fn is_stale(&self, circle: &CertificateScope<'_>, now: Timestamp) -> bool {
        let is_right = |it: &CachedCredentials| {
            now < it.look && now < it.own_due && it.right.as_ref() == Some(&circle.right())
        };
        self.of(circle.blueprint.uid, |it| is_right(it).then_some(())).is_none()
    }

    pub(super) fn store(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        found: &SecretsPlan,
        awaited: (RotationReport, Vec<TrustChangeStatus>),
    ) -> Result<(), CertificateManagerError> {
        let Ctx { circle, footings, offers, now, .. } = *desk;
        let (RotationReport { turning, mut lacking }, changing) = awaited;
        let waits = turning.iter().map(|it| &it.waits).chain(changing.iter().map(|it| &it.waits));
        let looks = waits.map(Some).chain([None]).map(|it| next_look(it, now));
        let looks = looks.chain(given_look(desk));
        let look = found.next.into_iter().chain(looks).min().unwrap_or(now);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.get(circle.blueprint.uid);
        let (credentials, signer, own_due) = self.own(desk, ring, before)?;
        let is_ours = signer == ring.now.client.certificate;
        let is_known = is_ours || signer.common_name().as_deref() == Some(names::OPERATOR);
        // What a pod lacks it lacks until its end.
        lacking.extend(before.into_iter().flat_map(|it| it.trust.lacking.iter().cloned()));
        lacking.retain(|pod| circle.seats.iter().any(|it| it.seat.pod == *pod));
        let sides = Sides::of(circle.blueprint);
        let trust = TrustHash { lacking, ..TrustHash::on(sides, ring, footings) };
        let right = found.stuck.is_none().then(|| circle.right());
        let (stuck, flaw) = (found.stuck.clone(), offers.flaw().cloned());
        let changing = changing.into_iter().next();
        let tidings =
            CertificateReport { stuck, turning, changing, flaw, is_given: offers.is_given() };
        let named = sides.peer && !footings.peer.told.ours;
        let uid = circle.blueprint.uid.to_owned();
        let fresh = CachedCredentials {
            credentials,
            signer,
            own_due,
            right,
            look,
            tidings,
            trust,
            named,
            is_known,
        };
        keys.insert(uid, fresh);
        Ok(())
    }

    /// What the operator shows, who signed it, and when it is due. What our own authority signed is used until then.
    fn own(
        &self,
        desk: &Ctx<'_>,
        ring: &CaSet,
        before: Option<&CachedCredentials>,
    ) -> Result<(Credentials, Certificate, Timestamp), CertificateManagerError> {
        let Ctx { footings, offers, now, .. } = *desk;
        let footing = &footings.client;
        let authority = bundle(&footing.told.list(ring, Side::Client));
        let goes_home = footing.proven.ours && offers.client.pairs == Leaves::Managed;
        if let Some(pair) = footing.pair.as_ref().filter(|_| !goes_home) {
            let (certificate, key) = (pair.pem().into_bytes(), pair.key.pem().into_bytes());
            let credentials = Credentials { ca: authority, certificate, key };
            return Ok((credentials, pair.certificate.clone(), pair.certificate.until));
        }
        let signer = ring.now.client.certificate.clone();
        let still_good = before
            .filter(|it| now < it.own_due && it.signer == signer && it.credentials.ca == authority);
        if let Some(it) = still_good {
            return Ok((it.credentials.clone(), signer, it.own_due));
        }
        let signing = Issuer { ring, lifetimes: self.lifetimes, now };
        let pair = signing.operator().map_err(CertificateManagerError::Make)?;
        let (certificate, key) = (pair.pem().into_bytes(), pair.key.pem().into_bytes());
        Ok((Credentials { ca: authority, certificate, key }, signer, due_at(&pair.certificate)))
    }
}

/// When to look at what comes from elsewhere again: nobody tells when somebody changes it.
fn given_look(desk: &Ctx<'_>) -> Option<Timestamp> {
    let is_flawed = desk.offers.flaw().is_some_and(CertificateProblem::is_fatal);
    let span = if is_flawed { BROKEN_SOURCE_INTERVAL } else { SOURCE_INTERVAL };
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::ZERO);
    desk.offers.is_given().then(|| desk.now.saturating_add(span).unwrap_or(Timestamp::MAX))
}

impl CertificateScope<'_> {
    fn right(&self) -> ScopeFingerprint {
        let spec = self.blueprint.spec;
        ScopeFingerprint {
            members: self.members.iter().cloned().collect(),
            told: self.told.clone(),
            scheme: self.blueprint.advertised_scheme(),
            sources: [spec.client_tls.clone(), spec.peer_tls.clone()],
            is_owned: self.blueprint.owner().is_some(),
            asked: self.asked.clone(),
            is_paused: spec.paused,
        }
    }
}
