//! What can be added to the base, or taken from it: one folder for each choice, and an overlay for
//! those that do not want to combine them.
//! Comes in: what was chosen about an installation. Goes out: files for kustomize.
//! May touch: `api` and k8s-openapi types. Pure. Each part appends its own flag and touches its own
//! objects, so that several of them go together.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod cert_manager;
mod certificate_files;
mod kubernetes_migration;
mod namespaced;
mod network_policy;
mod strict;

use serde_json::{Value, json};

use super::kustomize::{Kustomization, PART, Patch, Target, WHOLE};
use super::yaml::{self, Unwritable, document};
use super::{File, Install};
use crate::api::names;

/// One part.
struct Component {
    name: &'static str,
    /// What it is, for whoever opens the folder.
    note: &'static str,
    /// Whether it is an installation of its own together with the base.
    stands_alone: bool,
    /// Other parts that it needs.
    needs: &'static [&'static str],
    /// Objects that it adds.
    resources: Vec<Resources>,
    /// Objects that it changes.
    changes: Vec<Change>,
}

/// A file with objects.
struct Resources {
    file: &'static str,
    note: &'static str,
    documents: Vec<String>,
}

/// A file with one change, and the objects that it is made to.
struct Change {
    file: &'static str,
    body: Value,
    targets: Vec<Target>,
}

/// Every part, and every overlay.
pub(super) fn files(install: &Install) -> Result<Vec<File>, Unwritable> {
    let namespace = install.namespace.as_str();
    let components = [
        certificate_files::component(),
        cert_manager::component(namespace)?,
        kubernetes_migration::component(namespace)?,
        namespaced::component(),
        network_policy::component(namespace)?,
        strict::component(),
    ];
    let mut files = Vec::new();
    for component in components {
        if component.stands_alone {
            files.push(overlay(&component)?);
        }
        files.extend(written(component)?);
    }
    Ok(files)
}

/// The base and one part.
fn overlay(component: &Component) -> Result<File, Unwritable> {
    let kustomization = Kustomization {
        meta: WHOLE,
        resources: vec!["../../base".to_owned()],
        components: vec![format!("../../components/{}", component.name)],
        patches: Vec::new(),
    };
    Ok(File {
        path: format!("overlays/{}/kustomization.yaml", component.name),
        text: yaml::noted(component.note, &[document(&kustomization)?]),
    })
}

fn written(component: Component) -> Result<Vec<File>, Unwritable> {
    let Component { name, note, stands_alone: _, needs, resources, changes } = component;
    let path = |file: &str| format!("components/{name}/{file}");
    let mut files = Vec::new();
    let kustomization = Kustomization {
        meta: PART,
        resources: resources.iter().map(|it| it.file.to_owned()).collect(),
        components: needs.iter().map(|it| format!("../{it}")).collect(),
        patches: changes.iter().flat_map(patches).collect(),
    };
    files.push(File {
        path: path("kustomization.yaml"),
        text: yaml::noted(note, &[document(&kustomization)?]),
    });
    for Resources { file, note, documents } in resources {
        files.push(File { path: path(file), text: yaml::noted(note, &documents) });
    }
    for Change { file, body, targets: _ } in changes {
        files.push(File { path: path(file), text: yaml::file(&[document(&body)?]) });
    }
    Ok(files)
}

fn patches(change: &Change) -> Vec<Patch> {
    let patch = |target: &Target| Patch { path: change.file.to_owned(), target: target.clone() };
    change.targets.iter().map(patch).collect()
}

/// The operator's Deployment.
fn deployment() -> Target {
    Target::one("Deployment", names::OPERATOR)
}

/// Where the operator's container is in that.
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// One more flag for `quorate run`, behind those that other parts have added.
fn flag(flag: &str) -> Value {
    json!({"op": "add", "path": format!("{CONTAINER}/args/-"), "value": flag})
}

/// Takes objects away. kustomize wants a kind and a name here, and goes by the targets.
fn removal(targets: Vec<Target>) -> Change {
    let body = json!({
        "$patch": "delete",
        "apiVersion": "v1",
        "kind": "Anything",
        "metadata": {"name": "anything"},
    });
    Change { file: "remove.yaml", body, targets }
}
