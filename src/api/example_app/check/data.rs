//! Rules about where an application's data is.
//! Comes in: an application. Goes out: findings. May touch: the shared rules.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::App;
use crate::api::check::rules::version::{Asked, version};
use crate::api::check::rules::volume::{Volume, Where, volume};
use crate::api::check::{Facts, Findings};
use crate::api::example_app::v1::{Etcd, ManagedEtcd, ManagedStorage};
use crate::api::texts::EtcdVersion;

const CLUSTER_REF: &str = "spec.data.etcd.clusterRef";
const VOLUME: Where = Where {
    size: "spec.data.etcd.managed.storage.size",
    class: "spec.data.etcd.managed.storage.className",
    kind: "ExampleApp",
};

/// One cluster, and it stays the same.
pub(super) fn data(old: Option<&App>, new: &App, facts: &Facts<'_>, findings: &mut Findings) {
    let now = etcd(new);
    if now.cluster_ref.is_said() && now.managed.is_said() {
        findings.invalid(
            CLUSTER_REF,
            "must be left out with `spec.data.etcd.managed`: say one of the two",
        );
    }
    if old.is_some_and(|old| cluster_ref(old) != cluster_ref(new)) {
        let detail = "may not be changed later: the data would stay behind; make a new ExampleApp";
        findings.forbidden(CLUSTER_REF, detail);
    }
    let before = old.map(managed);
    let now = managed(new);
    // What was asked for is what runs, or is on its way: its cluster has the last word.
    let asked = Asked {
        current: before.as_ref().and_then(|it| it.version.known()).map(EtcdVersion::as_str),
        before: before.as_ref().and_then(|it| it.version.known()).map(EtcdVersion::as_str),
        now: now.version.known().map(EtcdVersion::as_str),
        place: "spec.data.etcd.managed.version",
    };
    version(&asked, facts, findings);
    if cluster_ref(new).is_some() {
        return;
    }
    let (was, is) = (before.map(|it| it.storage.or_empty()), now.storage.or_empty());
    volume(was.as_ref().map(volume_of).as_ref(), &volume_of(&is), &VOLUME, findings);
}

fn volume_of(storage: &ManagedStorage) -> Volume<'_> {
    Volume { size: &storage.size, class: &storage.class_name }
}

/// The cluster that the application refers to.
pub(super) fn cluster_ref(app: &App) -> Option<String> {
    let reference = etcd(app).cluster_ref.into_known()?;
    reference.name.known().map(ToString::to_string)
}

fn managed(app: &App) -> ManagedEtcd {
    etcd(app).managed.or_empty()
}

fn etcd(app: &App) -> Etcd {
    app.spec.data.known().map(|data| data.etcd.clone().or_empty()).unwrap_or_default()
}
