//! Where the certificates of each side come from, as the spec says, and what is there of them.
//! Comes in: the spec, and who the members are. Goes out: an offer for each side. May touch: `clients`. A Secret of somebody
//! else's is read by its name and never written. One that could not be read is an error, and never a missing one.

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
    /// What both sides are offered.
    pub(super) async fn offers(
        &self,
        objects: &Objects,
        circle: &CertificateScope<'_>,
        now: Timestamp,
    ) -> Result<SourceStates, CertificateManagerError> {
        Ok(SourceStates {
            client: self.offer(objects, circle, Side::Client, now).await?,
            peer: self.offer(objects, circle, Side::Peer, now).await?,
        })
    }

    async fn offer(
        &self,
        objects: &Objects,
        circle: &CertificateScope<'_>,
        side: Side,
        now: Timestamp,
    ) -> Result<SourceState, CertificateManagerError> {
        let spec = circle.blueprint.spec;
        let source = match side {
            Side::Client => &spec.client_tls,
            Side::Peer => &spec.peer_tls,
        };
        match source {
            // Who still shows something goes on with it to the end.
            Certificates::Disabled if circle.is_used(side) => {
                Ok(SourceState::unchanged(None, false))
            }
            Certificates::Managed | Certificates::Disabled => Ok(SourceState::managed()),
            Certificates::Secret(name) => {
                let found = objects.get(circle.blueprint.namespace, name).await;
                let found: Option<Secret> = found.map_err(CertificateManagerError::Read)?;
                Ok(shared_secret_source(found.as_ref(), name, circle, side, now))
            }
            Certificates::Issuer { name, kind } => {
                let issuer =
                    CertManagerIssuer { name, kind: *kind, side, lifetimes: self.lifetimes };
                cert_manager::source_state(objects, circle, &issuer, now).await
            }
        }
    }
}

/// What one Secret for all members offers.
fn shared_secret_source(
    secret: Option<&Secret>,
    name: &str,
    circle: &CertificateScope<'_>,
    side: Side,
    now: Timestamp,
) -> SourceState {
    let needs = Requirements::of_all(circle.blueprint, side);
    let read = secret.map(|it| ExternalCertificate::read(it, &needs, now));
    match read.unwrap_or_else(|| Err(CertificateProblem::SecretMissing(name.to_owned()))) {
        Ok((ExternalCertificate { pair, ca, application }, flaw)) => SourceState {
            wish: Some(DesiredTrust { roots: TrustBundle::external(ca), pair: Some(pair.clone()) }),
            pairs: Leaves::Shared(Box::new(pair)),
            application,
            flaw,
            is_given: true,
        },
        Err(flaw) => SourceState::unchanged(Some(flaw), true),
    }
}
