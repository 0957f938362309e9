//! The kinds of this release and their versions: the one list that conversion, validation and CRDs
//! use.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::iter;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde::Serialize;
use serde_json::Value;

use crate::api::convert::{ConvertFn, Part, conversions};
use crate::api::field::FromJson;
use crate::api::validation::{Findings, ValidationContext};
use crate::api::{etcd_backup, etcd_cluster, etcd_member, etcd_restore, example_app, names};

/// A kind.
pub struct Kind {
    /// Name, such as `EtcdCluster`.
    pub name: &'static str,
    /// API group.
    pub group: &'static str,
    /// The storage version, through which all others are converted.
    hub: &'static Version,
    /// Older versions that are still served, newest first.
    older: &'static [Version],
    /// CEL rules over the whole object, the same in every version.
    pub(crate) cel_rules: fn() -> Value,
    /// Sets defaults in a spec of the hub version, given the previous spec.
    apply_defaults: fn(&mut Value, Option<&Value>),
    /// Validation beyond the schema. Both objects are in the hub version.
    pub(crate) validate: ValidateFn,
}

/// Validates an object, against its previous state on an update.
pub(crate) type ValidateFn = fn(Option<&Value>, &Value, &ValidationContext<'_>, &mut Findings);

/// One version of a kind.
pub struct Version {
    /// Name, such as `v1beta1`.
    pub name: &'static str,
    crd: fn() -> CustomResourceDefinition,
    conversions: Option<fn(Part) -> (ConvertFn, ConvertFn)>,
}

impl Kind {
    /// The storage version, through which all others are converted.
    #[must_use]
    pub const fn hub(&self) -> &'static Version {
        self.hub
    }

    /// All versions: the hub, then the older ones, newest first.
    pub fn versions(&self) -> impl Iterator<Item = &'static Version> + use<> {
        iter::once(self.hub).chain(self.older)
    }

    /// Whether the kind has more than one version.
    #[must_use]
    pub const fn has_older_versions(&self) -> bool {
        !self.older.is_empty()
    }

    /// Plural resource name, such as `etcdclusters`.
    #[must_use]
    pub fn plural(&self) -> String {
        format!("{}s", self.name.to_ascii_lowercase())
    }

    /// Name of the CRD, such as `etcdclusters.etcd.appdelivery.cncf.io`.
    #[must_use]
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }

    /// Name of the `StorageVersionMigration` for objects of this kind.
    #[must_use]
    pub fn migration_name(&self) -> String {
        format!("{}-{}", names::OPERATOR, self.plural())
    }

    /// The version of an `apiVersion`, such as `etcd.appdelivery.cncf.io/v1`.
    #[must_use]
    pub fn version_of(&self, api_version: &str) -> Option<&'static Version> {
        let (group, name) = api_version.split_once('/')?;
        self.versions().find(|version| group == self.group && version.name == name)
    }

    /// The object with defaults set. Both objects are in the hub version.
    #[must_use]
    pub fn with_defaults(&self, object: &Value, old: Option<&Value>) -> Value {
        let mut object = object.clone();
        let old = old.and_then(|old| old.get(Part::Spec.key()));
        if let Some(spec @ Value::Object(_)) = object.get_mut(Part::Spec.key()) {
            (self.apply_defaults)(spec, old);
        }
        object
    }

    /// The `apiVersion` of a version.
    #[must_use]
    pub fn api_version(&self, version: &Version) -> String {
        format!("{}/{}", self.group, version.name)
    }
}

impl Version {
    /// Conversions of a part to and from the hub; `None` for the hub itself.
    pub(crate) fn conversions(&self, part: Part) -> Option<(ConvertFn, ConvertFn)> {
        self.conversions.map(|conversions| conversions(part))
    }

    /// The CRD with this version alone.
    pub(crate) fn crd(&self) -> CustomResourceDefinition {
        (self.crd)()
    }
}

/// Sets defaults in a spec. Fields that this release does not know are kept: defaults are added to
/// the given JSON, which is not replaced by what was parsed.
fn set_defaults<Spec: FromJson + Serialize>(
    spec: &mut Value,
    old: Option<&Value>,
    defaults: fn(&mut Spec, Option<&Spec>),
) {
    let old = old.and_then(Spec::read);
    let Some(mut defaulted) = Spec::read(spec) else { return };
    defaults(&mut defaulted, old.as_ref());
    let Ok(defaulted) = serde_json::to_value(defaulted) else { return };
    add(spec, defaulted);
}

/// Adds missing keys, at any depth.
fn add(given: &mut Value, defaulted: Value) {
    match (given, defaulted) {
        (Value::Object(given), Value::Object(defaulted)) => {
            for (key, value) in defaulted {
                match given.get_mut(&key) {
                    Some(existing) => add(existing, value),
                    None => {
                        given.insert(key, value);
                    }
                }
            }
        }
        (given @ Value::Null, defaulted) => *given = defaulted,
        (
            Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => {}
    }
}

/// An etcd cluster.
pub static ETCD_CLUSTER: Kind = Kind {
    name: "EtcdCluster",
    group: names::ETCD_GROUP,
    cel_rules: etcd_cluster::cel_rules::object_rules,
    apply_defaults: |spec, old| set_defaults(spec, old, etcd_cluster::defaults::apply_defaults),
    validate: etcd_cluster::validation::validate,
    hub: &Version { name: "v1", crd: etcd_cluster::v1::EtcdCluster::crd, conversions: None },
    older: &[
        Version {
            name: "v1beta1",
            crd: etcd_cluster::v1beta1::EtcdCluster::crd,
            conversions: Some(|part| match part {
                Part::Spec => conversions::<etcd_cluster::v1beta1::EtcdClusterSpec>(),
                Part::Status => conversions::<etcd_cluster::v1beta1::EtcdClusterStatus>(),
            }),
        },
        Version {
            name: "v1alpha1",
            crd: etcd_cluster::v1alpha1::EtcdCluster::crd,
            conversions: Some(|part| match part {
                Part::Spec => conversions::<etcd_cluster::v1alpha1::EtcdClusterSpec>(),
                Part::Status => conversions::<etcd_cluster::v1alpha1::EtcdClusterStatus>(),
            }),
        },
    ],
};
/// A member of a cluster.
pub static ETCD_MEMBER: Kind = Kind {
    name: "EtcdMember",
    group: names::ETCD_GROUP,
    cel_rules: etcd_member::object_rules,
    apply_defaults: |_, _| {},
    validate: etcd_member::validation::validate,
    hub: &Version { name: "v1", crd: etcd_member::EtcdMember::crd, conversions: None },
    older: &[],
};
/// A backup of a cluster.
pub static ETCD_BACKUP: Kind = Kind {
    name: "EtcdBackup",
    group: names::ETCD_GROUP,
    cel_rules: etcd_backup::immutable_once_started,
    apply_defaults: |_, _| {},
    validate: etcd_backup::validation::validate,
    hub: &Version { name: "v1", crd: etcd_backup::EtcdBackup::crd, conversions: None },
    older: &[],
};
/// A restore of a cluster.
pub static ETCD_RESTORE: Kind = Kind {
    name: "EtcdRestore",
    group: names::ETCD_GROUP,
    cel_rules: etcd_restore::immutable_except_approval,
    apply_defaults: |_, _| {},
    validate: etcd_restore::validation::validate,
    hub: &Version { name: "v1", crd: etcd_restore::EtcdRestore::crd, conversions: None },
    older: &[],
};
/// The example application.
pub static EXAMPLE_APP: Kind = Kind {
    name: "ExampleApp",
    group: names::APP_GROUP,
    cel_rules: example_app::cel_rules::object_rules,
    apply_defaults: |spec, old| set_defaults(spec, old, example_app::defaults::apply_defaults),
    validate: example_app::validation::validate,
    hub: &Version { name: "v1", crd: example_app::v1::ExampleApp::crd, conversions: None },
    older: &[
        Version {
            name: "v1beta1",
            crd: example_app::v1beta1::ExampleApp::crd,
            conversions: Some(|part| match part {
                Part::Spec => conversions::<example_app::v1beta1::ExampleAppSpec>(),
                Part::Status => conversions::<example_app::v1beta1::ExampleAppStatus>(),
            }),
        },
        Version {
            name: "v1alpha1",
            crd: example_app::v1alpha1::ExampleApp::crd,
            conversions: Some(|part| match part {
                Part::Spec => conversions::<example_app::v1alpha1::ExampleAppSpec>(),
                Part::Status => conversions::<example_app::v1alpha1::ExampleAppStatus>(),
            }),
        },
    ],
};

/// All kinds, in the order of installation.
pub static ALL: [&Kind; 5] =
    [&ETCD_CLUSTER, &ETCD_MEMBER, &ETCD_BACKUP, &ETCD_RESTORE, &EXAMPLE_APP];

/// The kind with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::crd;

    #[test]
    fn plural_of_a_kind_matches_its_crd() {
        let crds = crd::all();
        assert_eq!(crds.len(), ALL.len());
        for crd in crds {
            let names = crd.spec.names;
            let kind = by_name(&names.kind).unwrap();
            assert_eq!(kind.plural(), names.plural);
            assert_eq!(Some(kind.crd_name()), crd.metadata.name);
            assert_eq!(kind.has_older_versions(), crd.spec.conversion.is_some());
        }
    }
}
