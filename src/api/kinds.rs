//! The kinds of this release, with their versions: the one list that conversion, checks and
//! definitions read.
//! Comes in: nothing. Goes out: kinds by name, versions by `apiVersion`.
//! May touch: the kinds of `api`.
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

/// A kind, its newest version first.
pub struct Kind {
    /// Its name, such as `EtcdCluster`.
    pub name: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// The version that all others are converted through, and that is stored.
    hub: &'static Version,
    /// The versions before it that are still served, the newest first.
    older: &'static [Version],
    /// Rules in CEL over the whole object, the same in every version.
    pub(crate) cel_rules: fn() -> Value,
    /// Fills in what is not said, in the hub's version; what was there before may matter.
    apply_defaults: fn(&mut Value, Option<&Value>),
    /// What only code can check. Both objects are in the hub's version.
    pub(crate) validate: ValidateFn,
}

/// Finds what is wrong with an object, given what it was before.
pub(crate) type ValidateFn = fn(Option<&Value>, &Value, &ValidationContext<'_>, &mut Findings);

/// One version of a kind.
pub struct Version {
    /// Its name, such as `v1beta1`.
    pub name: &'static str,
    crd: fn() -> CustomResourceDefinition,
    conversions: Option<fn(Part) -> (ConvertFn, ConvertFn)>,
}

impl Kind {
    /// The version that all others are converted through, and that is stored.
    #[must_use]
    pub const fn hub(&self) -> &'static Version {
        self.hub
    }

    /// Its versions by priority: the hub, then the older ones.
    pub fn versions(&self) -> impl Iterator<Item = &'static Version> + use<> {
        iter::once(self.hub).chain(self.older)
    }

    /// Whether there is anything to convert.
    #[must_use]
    pub const fn has_older_versions(&self) -> bool {
        !self.older.is_empty()
    }

    /// What its objects are stored under, such as `etcdclusters`.
    #[must_use]
    pub fn plural(&self) -> String {
        format!("{}s", self.name.to_ascii_lowercase())
    }

    /// The name of its crd, such as `etcdclusters.etcd.appdelivery.cncf.io`.
    #[must_use]
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }

    /// The name of what asks Kubernetes' own migrator to store its objects anew.
    #[must_use]
    pub fn migration_name(&self) -> String {
        format!("{}-{}", names::OPERATOR, self.plural())
    }

    /// The version that `api_version`, such as `etcd.appdelivery.cncf.io/v1`, names.
    #[must_use]
    pub fn version_of(&self, api_version: &str) -> Option<&'static Version> {
        let (group, name) = api_version.split_once('/')?;
        self.versions().find(|version| group == self.group && version.name == name)
    }

    /// The object with its silence defaulted in. Both objects are in the hub's version.
    #[must_use]
    pub fn with_defaults(&self, object: &Value, old: Option<&Value>) -> Value {
        let mut object = object.clone();
        let old = old.and_then(|old| old.get(Part::Spec.key()));
        if let Some(spec @ Value::Object(_)) = object.get_mut(Part::Spec.key()) {
            (self.apply_defaults)(spec, old);
        }
        object
    }

    /// The `apiVersion` of one of its versions.
    #[must_use]
    pub fn api_version(&self, version: &Version) -> String {
        format!("{}/{}", self.group, version.name)
    }
}

impl Version {
    /// How a part of it becomes the hub's, and back; nothing for the hub itself.
    pub(crate) fn conversions(&self, part: Part) -> Option<(ConvertFn, ConvertFn)> {
        self.conversions.map(|conversions| conversions(part))
    }

    /// The crd with this version alone.
    pub(crate) fn crd(&self) -> CustomResourceDefinition {
        (self.crd)()
    }
}

/// Fills in a spec. Keys that this release does not know stay as they are: the change is made in
/// what was given, and not in what was understood of it.
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

/// Adds what is not there, at any depth.
fn add(given: &mut Value, defaulted: Value) {
    match (given, defaulted) {
        (Value::Object(given), Value::Object(defaulted)) => {
            for (key, value) in defaulted {
                match given.get_mut(&key) {
                    Some(there) => add(there, value),
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
/// One member of a cluster.
pub static ETCD_MEMBER: Kind = Kind {
    name: "EtcdMember",
    group: names::ETCD_GROUP,
    cel_rules: etcd_member::object_rules,
    apply_defaults: |_, _| {},
    validate: etcd_member::validation::validate,
    hub: &Version { name: "v1", crd: etcd_member::EtcdMember::crd, conversions: None },
    older: &[],
};
/// One backup of a cluster.
pub static ETCD_BACKUP: Kind = Kind {
    name: "EtcdBackup",
    group: names::ETCD_GROUP,
    cel_rules: etcd_backup::immutable_once_started,
    apply_defaults: |_, _| {},
    validate: etcd_backup::validation::validate,
    hub: &Version { name: "v1", crd: etcd_backup::EtcdBackup::crd, conversions: None },
    older: &[],
};
/// One restore of a cluster.
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

/// Every kind, in the order in which they are installed.
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
    fn a_kinds_plural_is_the_one_in_its_definition() {
        let definitions = crd::all();
        assert_eq!(definitions.len(), ALL.len());
        for crd in definitions {
            let names = crd.spec.names;
            let kind = by_name(&names.kind).unwrap();
            assert_eq!(kind.plural(), names.plural);
            assert_eq!(Some(kind.crd_name()), crd.metadata.name);
            assert_eq!(kind.has_older_versions(), crd.spec.conversion.is_some());
        }
    }
}
