//! Whose Secrets there should be, and who sits where.
//! Comes in: a blueprint, the objects of a cluster, the time. Goes out: a `CertificateScope` for the keyring.
//! May touch: `api`, Kubernetes' own types. It asks nobody.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::api::names;
use crate::etcd_cluster::observe;
use crate::etcd_cluster::observe::auth::AuthObserver;
use crate::etcd_cluster::observe::objects::{ClusterObjects, name_of};
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::state::build::{record, uid};
use crate::etcd_cluster::tls::manager::{CertificateScope, PodEndpoint};
use crate::etcd_cluster::tls::readiness::PodTrust;
use crate::etcd_cluster::transport::Scheme;
use crate::etcd_cluster::transport::observed::{has_peer_certs, listeners_of};

pub(super) fn certificate_scope<'a>(
    blueprint: &'a Blueprint<'a>,
    stock: &ClusterObjects,
    auth: &AuthObserver,
    now: Timestamp,
) -> CertificateScope<'a> {
    let there = stock.members.iter().filter(|it| it.metadata.deletion_timestamp.is_none());
    let members: Vec<_> = there.map(|it| (name_of(it), uid(it))).collect();
    let formed = record(&stock.cluster.status.clone().unwrap_or_default()).cluster_id;
    let mut told: Vec<MemberName> = members.iter().map(|(name, _)| name.clone()).collect();
    told.sort();
    let seated = |pod: &Pod| PodEndpoint {
        trust: PodTrust {
            member: name_of(pod),
            pod_uid: uid(pod),
            trust_hash: pod.annotations().get(names::TRUST_BUNDLE_HASH_ANNOTATION).cloned(),
        },
        endpoint: observe::member_endpoint(stock, pod, now).map(|(_, place)| place),
        // One of which nothing can be read may use everything.
        uses_tls: [
            listeners_of(pod).is_none_or(|it| it.accepts(Scheme::Https)),
            has_peer_certs(pod),
        ],
    };
    CertificateScope {
        blueprint,
        members,
        published_members: formed.map(|_| told),
        pods: stock.pods.iter().map(seated).collect(),
        auth_disabled: auth.is_auth_disabled(blueprint.uid, now),
        rotation_request: stock.cluster.annotations().get(names::ROTATE_CA_ANNOTATION).cloned(),
    }
}
