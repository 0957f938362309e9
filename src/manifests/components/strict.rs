//! An operator that grants itself nothing.
//! Comes in: nothing. Goes out: a part that sees bindings and makes none.
//! May touch: `api::names`. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::json;

use super::super::kustomize::Target;
use super::super::rights;
use super::{Change, Component, deployment, flag};
use crate::api::names;

pub(super) fn component() -> Component {
    Component {
        name: "strict",
        note: "The operator grants itself nothing: an administrator binds the ClusterRole \
               quorate-namespace in each namespace\nthat it shall work in. deploy/README.md has \
               the command.\nkubectl apply -k deploy/overlays/strict",
        stands_alone: true,
        needs: &[],
        resources: Vec::new(),
        changes: vec![
            Change {
                file: "flag.yaml",
                body: json!([flag("--grants=strict")]),
                targets: vec![deployment()],
            },
            Change {
                file: "cluster-role.yaml",
                body: json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": names::OPERATOR},
                    "rules": rights::rules(
                        [
                            rights::kinds_everywhere(),
                            rights::belongings_everywhere(),
                            rights::definitions(),
                            rights::granted_by_others(),
                        ]
                        .concat()
                    ),
                }),
                targets: vec![Target::one("ClusterRole", names::OPERATOR)],
            },
        ],
    }
}
