//! Asks cert-manager for the certificates of one side, and looks at what it has made.
//! Comes in: who signs, and who the members are. Goes out: an offer. May touch: `clients`. What is asked for is applied only
//! where it differs. The Secrets are cert-manager's: nothing of them is changed but with whom they go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::super::{CertificateManagerError, CertificateScope};
use crate::api::names;
use crate::clients::objects::{ObjectError, Objects};
use crate::etcd_cluster::drift::is_superset;
use crate::etcd_cluster::tls::cert_manager::{CertManagerIssuer, Certificate, Subject};
use crate::etcd_cluster::tls::external_secret::{CertificateProblem, ExternalCertificate};
use crate::etcd_cluster::tls::source::{DesiredTrust, Leaves, SourceState};
use crate::etcd_cluster::tls::trust_bundle::{MAX_EXTERNAL_CAS, Side, TrustBundle};
use crate::pki::leaf::CertifiedKey;

/// What became of one certificate.
type Outcome = Result<(ExternalCertificate, Option<CertificateProblem>), CertificateProblem>;

/// What cert-manager offers one side.
pub(super) async fn source_state(
    objects: &Objects,
    circle: &CertificateScope<'_>,
    issuer: &CertManagerIssuer<'_>,
    now: Timestamp,
) -> Result<SourceState, CertificateManagerError> {
    let desk = IssueCtx { objects, circle, issuer, now };
    let (own, soon) = match desk.one(&Subject::Operator).await? {
        Ok(own) => own,
        Err(flaw) => return Ok(SourceState::unchanged(Some(flaw), true)),
    };
    let (mut ca, mut flaws) = (own.ca.clone(), Vec::new());
    flaws.extend(soon);
    let application = match issuer.side {
        Side::Client => Some(desk.one(&Subject::Applications).await?),
        Side::Peer => None,
    };
    let mut take = |outcome: Outcome| -> Option<CertifiedKey> {
        match outcome {
            Ok((given, soon)) => {
                ca.extend(given.ca);
                flaws.extend(soon);
                Some(given.pair)
            }
            Err(flaw) => {
                flaws.push(flaw);
                None
            }
        }
    };
    let application = application.and_then(&mut take);
    let mut each = BTreeMap::new();
    for (name, uid) in &circle.members {
        let outcome = desk.one(&Subject::Member(name.clone(), uid.clone())).await?;
        each.extend(take(outcome).map(|pair| (name.clone(), pair)));
    }
    let roots = TrustBundle::external(ca);
    if roots.others.len() > MAX_EXTERNAL_CAS {
        return Ok(SourceState::unchanged(
            Some(CertificateProblem::TooManyCas(desk.name(&Subject::Operator))),
            true,
        ));
    }
    let stops = flaws.iter().position(CertificateProblem::is_fatal);
    Ok(SourceState {
        wish: Some(DesiredTrust { roots, pair: Some(own.pair) }),
        pairs: Leaves::PerMember(each),
        application,
        flaw: stops.or(Some(0)).and_then(|at| flaws.get(at).cloned()),
        is_given: true,
    })
}

/// What is needed for each of them.
struct IssueCtx<'a> {
    objects: &'a Objects,
    circle: &'a CertificateScope<'a>,
    issuer: &'a CertManagerIssuer<'a>,
    now: Timestamp,
}

impl IssueCtx<'_> {
    fn name(&self, whose: &Subject) -> String {
        self.issuer.certificate(self.circle.blueprint, whose).name_any()
    }

    /// Asks for one, and looks at what there is of it.
    async fn one(&self, whose: &Subject) -> Result<Outcome, CertificateManagerError> {
        let wanted = self.issuer.certificate(self.circle.blueprint, whose);
        let (name, namespace) = (wanted.name_any(), self.circle.blueprint.namespace);
        let secret: Option<Secret> =
            self.objects.get(namespace, &name).await.map_err(CertificateManagerError::Read)?;
        let found: Option<Certificate> = match self.objects.get(namespace, &name).await {
            Ok(found) => found,
            Err(error) if error.is_unknown_kind() => {
                return Ok(Err(CertificateProblem::CertManagerMissing));
            }
            Err(error) => return Err(CertificateManagerError::Read(error)),
        };
        // cert-manager would write over whatever has the name.
        let is_ours = found.as_ref().is_none_or(|it| self.is_ours(it))
            && secret.as_ref().is_none_or(|it| self.is_ours(it));
        if !is_ours {
            return Err(CertificateManagerError::Taken(name));
        }
        let is_right =
            found.as_ref().is_some_and(|it| is_superset(&json!(it.spec), &json!(wanted.spec)));
        if !is_right {
            match self.objects.apply(&wanted).await {
                Ok(_) => {}
                Err(ObjectError::Call(error)) if error.is_unknown_kind() => {
                    return Ok(Err(CertificateProblem::CertManagerMissing));
                }
                Err(error) => return Err(CertificateManagerError::Write(error)),
            }
        }
        let Some(secret) = secret else {
            let said = found.as_ref().and_then(Certificate::reason);
            let said = said.map(|it| format!(": {it}")).unwrap_or_default();
            let words = format!("cert-manager has not made the Secret {name} yet{said}");
            return Ok(Err(CertificateProblem::NotIssuedYet(words)));
        };
        self.goes_with(&secret, &wanted).await?;
        let needs = self.issuer.needs(self.circle.blueprint, whose);
        Ok(ExternalCertificate::read(&secret, &needs, self.now))
    }

    fn is_ours<K: Resource>(&self, object: &K) -> bool {
        let uid = object.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str);
        uid == Some(self.circle.blueprint.uid)
    }

    /// cert-manager leaves its Secrets behind: they go with whom they are for.
    async fn goes_with(
        &self,
        secret: &Secret,
        wanted: &Certificate,
    ) -> Result<(), CertificateManagerError> {
        let owners = wanted.metadata.owner_references.clone();
        let has: Vec<&str> = secret.owner_references().iter().map(|it| it.uid.as_str()).collect();
        let shall: Vec<&str> = owners.iter().flatten().map(|it| it.uid.as_str()).collect();
        if has == shall {
            return Ok(());
        }
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        let (namespace, name) = (self.circle.blueprint.namespace, secret.name_any());
        let done = self.objects.merge::<Secret>(namespace, &name, &patch).await;
        done.map(drop).map_err(CertificateManagerError::Write)
    }
}
