//! Requests the certificates of one side from cert-manager, and reads those that are issued.
//! A Certificate is applied only if it differs. Its Secret belongs to cert-manager: only the owner
//! references are changed.

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

/// An issued certificate with a warning, or why there is none.
type IssuedCertificate =
    Result<(ExternalCertificate, Option<CertificateProblem>), CertificateProblem>;

/// The state of a cert-manager source.
pub(super) async fn source_state(
    objects: &Objects,
    scope: &CertificateScope<'_>,
    issuer: &CertManagerIssuer<'_>,
    now: Timestamp,
) -> Result<SourceState, CertificateManagerError> {
    let ctx = IssueCtx { objects, scope, issuer, now };
    let (operator, warning) = match ctx.ensure(&Subject::Operator).await? {
        Ok(operator) => operator,
        Err(problem) => return Ok(SourceState::unchanged(Some(problem), true)),
    };
    let (mut cas, mut problems) = (operator.ca.clone(), Vec::new());
    problems.extend(warning);
    let application = match issuer.side {
        Side::Client => Some(ctx.ensure(&Subject::Applications).await?),
        Side::Peer => None,
    };
    let mut collect = |certificate: IssuedCertificate| -> Option<CertifiedKey> {
        match certificate {
            Ok((external, warning)) => {
                cas.extend(external.ca);
                problems.extend(warning);
                Some(external.key_pair)
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    };
    let application = application.and_then(&mut collect);
    let mut per_member = BTreeMap::new();
    for (name, uid) in &scope.members {
        let certificate = ctx.ensure(&Subject::Member(name.clone(), uid.clone())).await?;
        per_member.extend(collect(certificate).map(|key_pair| (name.clone(), key_pair)));
    }
    let bundle = TrustBundle::external(cas);
    if bundle.external.len() > MAX_EXTERNAL_CAS {
        return Ok(SourceState::unchanged(
            Some(CertificateProblem::TooManyCas(ctx.name(&Subject::Operator))),
            true,
        ));
    }
    let fatal = problems.iter().position(CertificateProblem::is_fatal);
    Ok(SourceState {
        desired: Some(DesiredTrust { bundle, operator_cert: Some(operator.key_pair) }),
        leaves: Leaves::PerMember(per_member),
        application,
        problem: fatal.or(Some(0)).and_then(|index| problems.get(index).cloned()),
        is_external: true,
    })
}

/// What the request of a certificate works with.
struct IssueCtx<'a> {
    objects: &'a Objects,
    scope: &'a CertificateScope<'a>,
    issuer: &'a CertManagerIssuer<'a>,
    now: Timestamp,
}

impl IssueCtx<'_> {
    fn name(&self, subject: &Subject) -> String {
        self.issuer.certificate(self.scope.blueprint, subject).name_any()
    }

    /// Applies the Certificate of a subject, and reads its Secret.
    async fn ensure(
        &self,
        subject: &Subject,
    ) -> Result<IssuedCertificate, CertificateManagerError> {
        let desired = self.issuer.certificate(self.scope.blueprint, subject);
        let (name, namespace) = (desired.name_any(), self.scope.blueprint.namespace);
        let secret: Option<Secret> =
            self.objects.get(namespace, &name).await.map_err(CertificateManagerError::Read)?;
        let existing: Option<Certificate> = match self.objects.get(namespace, &name).await {
            Ok(existing) => existing,
            Err(error) if error.is_unknown_kind() => {
                return Ok(Err(CertificateProblem::CertManagerMissing));
            }
            Err(error) => return Err(CertificateManagerError::Read(error)),
        };
        // cert-manager would overwrite a Secret with this name.
        let is_owned = existing.as_ref().is_none_or(|existing| self.is_owned(existing))
            && secret.as_ref().is_none_or(|secret| self.is_owned(secret));
        if !is_owned {
            return Err(CertificateManagerError::NameConflict(name));
        }
        let is_in_sync = existing
            .as_ref()
            .is_some_and(|existing| is_superset(&json!(existing.spec), &json!(desired.spec)));
        if !is_in_sync {
            match self.objects.apply(&desired).await {
                Ok(_) => {}
                Err(ObjectError::Call(error)) if error.is_unknown_kind() => {
                    return Ok(Err(CertificateProblem::CertManagerMissing));
                }
                Err(error) => return Err(CertificateManagerError::Write(error)),
            }
        }
        let Some(secret) = secret else {
            let detail = existing.as_ref().and_then(Certificate::pending_message);
            let detail = detail.map(|text| format!(": {text}")).unwrap_or_default();
            let message = format!("cert-manager has not created Secret {name} yet{detail}");
            return Ok(Err(CertificateProblem::NotIssuedYet(message)));
        };
        self.set_owner(&secret, &desired).await?;
        let requirements = self.issuer.requirements(self.scope.blueprint, subject);
        Ok(ExternalCertificate::read(&secret, &requirements, self.now))
    }

    fn is_owned<K: Resource>(&self, object: &K) -> bool {
        let uid = object.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str);
        uid == Some(self.scope.blueprint.uid)
    }

    /// cert-manager does not delete its Secrets: they get the owner of the Certificate.
    async fn set_owner(
        &self,
        secret: &Secret,
        desired: &Certificate,
    ) -> Result<(), CertificateManagerError> {
        let owners = desired.metadata.owner_references.clone();
        let existing: Vec<&str> =
            secret.owner_references().iter().map(|owner| owner.uid.as_str()).collect();
        let expected: Vec<&str> = owners.iter().flatten().map(|owner| owner.uid.as_str()).collect();
        if existing == expected {
            return Ok(());
        }
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        let (namespace, name) = (self.scope.blueprint.namespace, secret.name_any());
        let patched = self.objects.merge::<Secret>(namespace, &name, &patch).await;
        patched.map(drop).map_err(CertificateManagerError::Write)
    }
}
