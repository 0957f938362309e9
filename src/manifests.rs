//! The installation manifests as typed objects, from which `deploy/` is generated.
//!
//! Order of documents: the order in which they must be applied.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod components;
mod deployment;
mod disruption;
mod kustomize;
mod labels;
mod namespace;
pub mod rbac;
mod service;
mod service_account;
mod user_roles;
mod webhooks;
mod yaml;

use crate::api::{crd, names};
use kustomize::{KUSTOMIZATION, Kustomization};
use rbac::Scope;
pub use yaml::{YamlError, document};

/// The options of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The namespace of the operator.
    pub namespace: String,
    /// The operator's image.
    pub image: String,
    /// Whether the namespace is part of the installation. An existing namespace must not get the
    /// operator's labels, and must not be deleted with the installation.
    pub with_namespace: bool,
    /// Whether the CRDs are part of the installation. Deleting them deletes every object of their
    /// kinds.
    pub with_definitions: bool,
}

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the target directory, such as `base/deployment.yaml`.
    pub path: String,
    /// The content.
    pub text: String,
}

/// Objects that share one file of the base.
struct Group {
    name: &'static str,
    documents: Vec<String>,
}

/// All files: the kustomize base, components, overlays, and the single-file installation.
///
/// # Errors
///
/// If an object cannot be serialized as YAML, which is a bug.
pub fn files(install: &Install) -> Result<Vec<File>, YamlError> {
    let groups = groups(install)?;
    let mut files: Vec<File> = groups
        .iter()
        .map(|group| File {
            path: format!("base/{}", group.name),
            text: yaml::file(&group.documents),
        })
        .collect();
    let kustomization = Kustomization {
        meta: KUSTOMIZATION,
        resources: groups.iter().map(|group| group.name.to_owned()).collect(),
        components: Vec::new(),
        patches: Vec::new(),
    };
    files.push(File {
        path: "base/kustomization.yaml".to_owned(),
        text: yaml::file(&[document(&kustomization)?]),
    });
    files.extend(components::files(install)?);
    files.push(File { path: "install.yaml".to_owned(), text: single_file(groups) });
    Ok(files)
}

/// The single-file installation, for `kubectl apply`.
///
/// # Errors
///
/// As [`files`].
pub fn install(install: &Install) -> Result<String, YamlError> {
    Ok(single_file(groups(install)?))
}

fn single_file(groups: Vec<Group>) -> String {
    let documents: Vec<String> = groups.into_iter().flat_map(|group| group.documents).collect();
    yaml::file(&documents)
}

/// In the order of application: the namespace first, because nothing else can be created without
/// it; the CRDs before the operator, which watches them; the permissions before the pods that need
/// them. The webhooks are last: from then on requests fail until a replica serves them.
fn groups(install: &Install) -> Result<Vec<Group>, YamlError> {
    let namespace = install.namespace.as_str();
    let mut groups = Vec::new();
    if install.with_namespace {
        let documents = vec![document(&namespace::namespace(namespace))?];
        groups.push(Group { name: "namespace.yaml", documents });
    }
    if install.with_definitions {
        let definitions = crd::with_webhook_namespace(namespace);
        let documents = definitions.iter().map(document).collect::<Result<_, _>>()?;
        groups.push(Group { name: "definitions.yaml", documents });
    }
    groups.extend([
        Group { name: "access.yaml", documents: access(namespace)? },
        Group {
            name: "service.yaml",
            documents: vec![
                document(&service::metrics(namespace))?,
                document(&service::webhook(namespace))?,
            ],
        },
        Group {
            name: "deployment.yaml",
            documents: vec![document(&deployment::deployment(install))?],
        },
        Group {
            name: "disruption-budget.yaml",
            documents: vec![document(&disruption::disruption_budget(namespace))?],
        },
        Group {
            name: "webhooks.yaml",
            documents: vec![
                document(&webhooks::mutating(namespace))?,
                document(&webhooks::validating(namespace))?,
            ],
        },
    ]);
    Ok(groups)
}

/// The `ServiceAccount`, and its roles by scope.
fn access(namespace: &str) -> Result<Vec<String>, YamlError> {
    let cluster_role = |name, scope| {
        document(&service_account::cluster_role(name, service_account::permissions_in(scope)))
    };
    let bound = |name| document(&service_account::cluster_role_binding(name, namespace));
    Ok(vec![
        document(&service_account::service_account(namespace))?,
        document(&service_account::role(
            namespace,
            service_account::permissions_in(Scope::OwnNamespace),
        ))?,
        document(&service_account::role_binding(namespace))?,
        cluster_role(names::OPERATOR, Scope::Cluster)?,
        bound(names::OPERATOR)?,
        cluster_role(names::WEBHOOKS_ROLE, Scope::Webhooks)?,
        bound(names::WEBHOOKS_ROLE)?,
        cluster_role(names::NAMESPACE_ROLE, Scope::GrantedNamespace)?,
        document(&user_roles::view())?,
        document(&user_roles::edit())?,
    ])
}
