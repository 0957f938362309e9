//! Types of kustomization files.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;

/// A base or an overlay.
pub(super) const KUSTOMIZATION: Meta =
    Meta { api_version: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization" };
/// A component, which can be combined with others.
pub(super) const COMPONENT: Meta =
    Meta { api_version: "kustomize.config.k8s.io/v1alpha1", kind: "Component" };

/// `apiVersion` and `kind`.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    api_version: &'static str,
    kind: &'static str,
}

/// One `kustomization.yaml`.
#[derive(Serialize)]
pub(super) struct Kustomization {
    #[serde(flatten)]
    pub(super) meta: Meta,
    /// Files and directories with objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) resources: Vec<String>,
    /// Directories of components.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) components: Vec<String>,
    /// Patches of the objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) patches: Vec<Patch>,
}

/// A patch, in a file beside the kustomization.
#[derive(Serialize)]
pub(super) struct Patch {
    /// The file.
    pub(super) path: String,
    /// The patched objects.
    pub(super) target: Target,
}

/// An object, or all objects of a kind.
#[derive(Clone, Serialize)]
pub(super) struct Target {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl Target {
    /// One object.
    pub(super) fn object(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: Some(name.to_owned()) }
    }

    /// Every object of a kind.
    pub(super) fn all(kind: &str) -> Self {
        Self { kind: kind.to_owned(), name: None }
    }
}
