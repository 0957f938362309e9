//! Component: `RoleBindings` are created by an administrator; the operator only watches them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::kustomize::Target;
use super::super::rbac;
use super::{Component, PatchFile, deployment, flag};
use crate::api::names;

pub(super) fn component() -> Component {
    Component {
        name: "strict",
        note: "The operator creates no RoleBindings: an administrator binds the ClusterRole \
               quorate-namespace in each\nnamespace that the operator manages. See deploy/README.md for \
               the command.\nkubectl apply -k deploy/overlays/strict",
        has_overlay: true,
        needs: &[],
        resources: Vec::new(),
        patches: vec![
            PatchFile {
                file: "flag.yaml",
                body: json!([flag("--namespace-access=manual")]),
                targets: vec![deployment()],
            },
            PatchFile {
                file: "cluster-role.yaml",
                body: json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": names::OPERATOR},
                    "rules": rbac::rules(
                        [
                            rbac::watch_own_kinds(),
                            rbac::watch_owned_objects(),
                            rbac::definitions(),
                            rbac::manual_namespace_access(),
                        ]
                        .concat()
                    ),
                }),
                targets: vec![Target::object("ClusterRole", names::OPERATOR)],
            },
        ],
    }
}
