//! Whose Secrets there should be, and who sits where.
//! Comes in: a blueprint, the objects of a cluster, the time. Goes out: a `Circle` for the keyring.
//! May touch: `api`, Kubernetes' own types. It asks nobody.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::api::names;
use crate::etcd_cluster::compose::{record, uid};
use crate::etcd_cluster::doorkeeper::Doorkeeper;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::doors::found::{has_keys, taken_by};
use crate::etcd_cluster::identity::company::Seat;
use crate::etcd_cluster::keyring::{Circle, Seated};
use crate::etcd_cluster::observe;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::Name;
use crate::etcd_cluster::stock::{Stock, name_of};

pub(super) fn circle<'a>(
    blueprint: &'a Blueprint<'a>,
    stock: &Stock,
    doorkeeper: &Doorkeeper,
    now: Timestamp,
) -> Circle<'a> {
    let there = stock.members.iter().filter(|it| it.metadata.deletion_timestamp.is_none());
    let members: Vec<_> = there.map(|it| (name_of(it), uid(it))).collect();
    let formed = record(&stock.cluster.status.clone().unwrap_or_default()).formed;
    let mut told: Vec<Name> = members.iter().map(|(name, _)| name.clone()).collect();
    told.sort();
    let seated = |pod: &Pod| Seated {
        seat: Seat {
            member: name_of(pod),
            pod: uid(pod),
            trusts: pod.annotations().get(names::TRUST_ANNOTATION).cloned(),
        },
        place: observe::place(stock, pod, now).map(|(_, place)| place),
        // One of which nothing can be read may use everything.
        uses: [taken_by(pod).is_none_or(|it| it.takes(Scheme::Https)), has_keys(pod)],
    };
    Circle {
        blueprint,
        members,
        told: formed.map(|_| told),
        seats: stock.pods.iter().map(seated).collect(),
        asks_nobody: doorkeeper.asks_nobody(blueprint.uid, now),
        asked: stock.cluster.annotations().get(names::ROTATE_ANNOTATION).cloned(),
    }
}
