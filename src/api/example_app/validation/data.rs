//! Validation of an application's EtcdCluster reference or dedicated cluster.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::App;
use crate::api::example_app::v1::{Etcd, ManagedEtcd, ManagedStorage};
use crate::api::strings::EtcdVersion;
use crate::api::validation::rules::version::{VersionRequest, version};
use crate::api::validation::rules::volume::{VolumeFields, VolumePaths, volume};
use crate::api::validation::{Findings, ValidationContext};

const CLUSTER_REF: &str = "spec.data.etcd.clusterRef";
const VOLUME: VolumePaths = VolumePaths {
    size: "spec.data.etcd.managed.storage.size",
    class: "spec.data.etcd.managed.storage.className",
    kind: "ExampleApp",
};

/// Exactly one EtcdCluster, and its reference is immutable.
pub(super) fn data(
    old: Option<&App>,
    new: &App,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let now = etcd(new);
    if now.cluster_ref.is_set() && now.managed.is_set() {
        findings.invalid(CLUSTER_REF, "must not be set together with `spec.data.etcd.managed`");
    }
    if old.is_some_and(|old| cluster_ref(old) != cluster_ref(new)) {
        let detail = "may not be changed: the data would not be moved; create a new ExampleApp";
        findings.forbidden(CLUSTER_REF, detail);
    }
    let before = old.map(managed);
    let now = managed(new);
    // The previous spec stands in for the running version; the EtcdCluster validates again.
    let request = VersionRequest {
        current: before.as_ref().and_then(|etcd| etcd.version.known()).map(EtcdVersion::as_str),
        previous: before.as_ref().and_then(|etcd| etcd.version.known()).map(EtcdVersion::as_str),
        requested: now.version.known().map(EtcdVersion::as_str),
        path: "spec.data.etcd.managed.version",
    };
    version(&request, context, findings);
    if cluster_ref(new).is_some() {
        return;
    }
    let (was, is) = (before.map(|etcd| etcd.storage.or_default()), now.storage.or_default());
    volume(was.as_ref().map(volume_of).as_ref(), &volume_of(&is), &VOLUME, findings);
}

fn volume_of(storage: &ManagedStorage) -> VolumeFields<'_> {
    VolumeFields { size: &storage.size, class: &storage.class_name }
}

/// Name of the EtcdCluster that the application references.
pub(super) fn cluster_ref(app: &App) -> Option<String> {
    let reference = etcd(app).cluster_ref.into_known()?;
    reference.name.known().map(ToString::to_string)
}

fn managed(app: &App) -> ManagedEtcd {
    etcd(app).managed.or_default()
}

fn etcd(app: &App) -> Etcd {
    app.spec.data.known().map(|data| data.etcd.clone().or_default()).unwrap_or_default()
}
