//! The members that need certificates, and the pods that present them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::api::etcd_member::EtcdMember;
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
    objects: &ClusterObjects,
    auth: &AuthObserver,
    now: Timestamp,
) -> CertificateScope<'a> {
    let is_active = |member: &&EtcdMember| member.metadata.deletion_timestamp.is_none();
    let active = objects.members.iter().filter(is_active);
    let members: Vec<_> = active.map(|member| (name_of(member), uid(member))).collect();
    let record = record(&objects.cluster.status.clone().unwrap_or_default());
    let mut published: Vec<MemberName> = members.iter().map(|(name, _)| name.clone()).collect();
    published.sort();
    let endpoint = |pod: &Pod| PodEndpoint {
        trust: PodTrust {
            member: name_of(pod),
            pod_uid: uid(pod),
            trust_hash: pod.annotations().get(names::TRUST_BUNDLE_HASH_ANNOTATION).cloned(),
        },
        endpoint: observe::member_endpoint(objects, pod, now).map(|(_, endpoint)| endpoint),
        // A pod whose flags cannot be read may use all certificates.
        uses_tls: [
            listeners_of(pod).is_none_or(|listeners| listeners.accepts(Scheme::Https)),
            has_peer_certs(pod),
        ],
    };
    CertificateScope {
        blueprint,
        members,
        published_members: record.cluster_id.map(|_| published),
        pods: objects.pods.iter().map(endpoint).collect(),
        auth_disabled: auth.is_auth_disabled(blueprint.uid, now),
        rotation_request: objects.cluster.annotations().get(names::ROTATE_CA_ANNOTATION).cloned(),
    }
}
