//! Kustomize components and overlays.
//!
//! Each component appends its own flag and patches its own objects, so that several can be
//! combined.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod cert_manager;
mod certificate_files;
mod kubernetes_migration;
mod namespaced;
mod network_policy;
mod strict;

use serde_json::{Value, json};

use super::kustomize::{COMPONENT, KUSTOMIZATION, Kustomization, Patch, Target};
use super::yaml::{self, YamlError, document};
use super::{File, Install};
use crate::api::names;

/// One component.
struct Component {
    name: &'static str,
    /// The comment in its `kustomization.yaml`.
    note: &'static str,
    /// Whether there is an overlay with the base and this component.
    has_overlay: bool,
    /// Components that it needs.
    needs: &'static [&'static str],
    /// Objects that it adds.
    resources: Vec<ResourceFile>,
    /// Objects that it changes.
    patches: Vec<PatchFile>,
}

/// A file with objects.
struct ResourceFile {
    file: &'static str,
    note: &'static str,
    documents: Vec<String>,
}

/// A file with one patch, and its targets.
struct PatchFile {
    file: &'static str,
    body: Value,
    targets: Vec<Target>,
}

/// Every component and every overlay.
pub(super) fn files(install: &Install) -> Result<Vec<File>, YamlError> {
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
        if component.has_overlay {
            files.push(overlay(&component)?);
        }
        files.extend(render(component)?);
    }
    Ok(files)
}

/// The base and one component.
fn overlay(component: &Component) -> Result<File, YamlError> {
    let kustomization = Kustomization {
        meta: KUSTOMIZATION,
        resources: vec!["../../base".to_owned()],
        components: vec![format!("../../components/{}", component.name)],
        patches: Vec::new(),
    };
    Ok(File {
        path: format!("overlays/{}/kustomization.yaml", component.name),
        text: yaml::file_with_note(component.note, &[document(&kustomization)?]),
    })
}

fn render(component: Component) -> Result<Vec<File>, YamlError> {
    let Component { name, note, has_overlay: _, needs, resources, patches: patch_files } =
        component;
    let path = |file: &str| format!("components/{name}/{file}");
    let mut files = Vec::new();
    let kustomization = Kustomization {
        meta: COMPONENT,
        resources: resources.iter().map(|resource| resource.file.to_owned()).collect(),
        components: needs.iter().map(|name| format!("../{name}")).collect(),
        patches: patch_files.iter().flat_map(patches).collect(),
    };
    files.push(File {
        path: path("kustomization.yaml"),
        text: yaml::file_with_note(note, &[document(&kustomization)?]),
    });
    for ResourceFile { file, note, documents } in resources {
        files.push(File { path: path(file), text: yaml::file_with_note(note, &documents) });
    }
    for PatchFile { file, body, targets: _ } in patch_files {
        files.push(File { path: path(file), text: yaml::file(&[document(&body)?]) });
    }
    Ok(files)
}

fn patches(file: &PatchFile) -> Vec<Patch> {
    let patch = |target: &Target| Patch { path: file.file.to_owned(), target: target.clone() };
    file.targets.iter().map(patch).collect()
}

/// The operator's Deployment.
fn deployment() -> Target {
    Target::object("Deployment", names::OPERATOR)
}

/// The path of the operator's container in it.
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// Appends a flag of `quorate run`, after those of other components.
fn flag(flag: &str) -> Value {
    json!({"op": "add", "path": format!("{CONTAINER}/args/-"), "value": flag})
}

/// Removes objects. kustomize requires a kind and a name here, but uses the targets.
fn removal(targets: Vec<Target>) -> PatchFile {
    let body = json!({
        "$patch": "delete",
        "apiVersion": "v1",
        "kind": "Anything",
        "metadata": {"name": "anything"},
    });
    PatchFile { file: "remove.yaml", body, targets }
}
