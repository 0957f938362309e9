//! Reads the certificate source of each side: managed CA, a user's Secret, or cert-manager.
//! Guarantees: an external Secret is read by name and never written; a Secret that could not be
//! read is an error and never a missing Secret.

mod cert_manager;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use super::{CertificateManager, CertificateManagerError, CertificateScope};
use crate::api::etcd_cluster::validated::Certificates;
use crate::clients::objects::Objects;
use crate::etcd_cluster::tls::cert_manager::CertManagerIssuer;
use crate::etcd_cluster::tls::external_secret::{
    CertificateProblem, ExternalCertificate, Requirements,
};
use crate::etcd_cluster::tls::source::{DesiredTrust, Leaves, SourceState, SourceStates};
use crate::etcd_cluster::tls::trust_bundle::{Side, TrustBundle};

impl CertificateManager {
    /// Reads the sources of both sides.
    pub(super) async fn read_sources(
        &self,
        objects: &Objects,
        scope: &CertificateScope<'_>,
        now: Timestamp,
    ) -> Result<SourceStates, CertificateManagerError> {
        Ok(SourceStates {
            client: self.read_source(objects, scope, Side::Client, now).await?,
            peer: self.read_source(objects, scope, Side::Peer, now).await?,
        })
    }

    async fn read_source(
        &self,
        objects: &Objects,
        scope: &CertificateScope<'_>,
        side: Side,
        now: Timestamp,
    ) -> Result<SourceState, CertificateManagerError> {
        let spec = scope.blueprint.spec;
        let source = match side {
            Side::Client => &spec.client_tls,
            Side::Peer => &spec.peer_tls,
        };
        match source {
            // Pods that still use TLS keep their certificates until they are recreated.
            Certificates::Disabled if scope.is_used(side) => {
                Ok(SourceState::unchanged(None, false))
            }
            Certificates::Managed | Certificates::Disabled => Ok(SourceState::managed()),
            Certificates::Secret(name) => {
                let secret = objects.get(scope.blueprint.namespace, name).await;
                let secret: Option<Secret> = secret.map_err(CertificateManagerError::Read)?;
                Ok(shared_secret_source(secret.as_ref(), name, scope, side, now))
            }
            Certificates::Issuer { name, kind } => {
                let issuer =
                    CertManagerIssuer { name, kind: *kind, side, lifetimes: self.lifetimes };
                cert_manager::source_state(objects, scope, &issuer, now).await
            }
        }
    }
}

/// The source state of one Secret for all members.
fn shared_secret_source(
    secret: Option<&Secret>,
    name: &str,
    scope: &CertificateScope<'_>,
    side: Side,
    now: Timestamp,
) -> SourceState {
    let requirements = Requirements::for_all_members(scope.blueprint, side);
    let read = secret.map(|secret| ExternalCertificate::read(secret, &requirements, now));
    match read.unwrap_or_else(|| Err(CertificateProblem::SecretMissing(name.to_owned()))) {
        Ok((ExternalCertificate { key_pair, ca, application }, problem)) => SourceState {
            desired: Some(DesiredTrust {
                bundle: TrustBundle::external(ca),
                operator_cert: Some(key_pair.clone()),
            }),
            leaves: Leaves::Shared(Box::new(key_pair)),
            application,
            problem,
            is_external: true,
        },
        Err(problem) => SourceState::unchanged(Some(problem), true),
    }
}
