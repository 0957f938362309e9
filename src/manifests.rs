//! What an administrator installs, as typed objects: the one truth behind `deploy/`.
//! Comes in: a namespace and an image. Goes out: documents in the order in which they must be
//! applied, the kustomize base, and the single file with everything.
//! May touch: `api` only. Pure; `app` prints and writes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod access;
mod availability;
mod deployment;
mod labels;
mod namespace;
mod service;
mod yaml;

pub use yaml::{Unwritable, document};

/// What can be chosen about an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The namespace that everything lives in.
    pub namespace: String,
    /// The operator's image.
    pub image: String,
    /// Whether the namespace belongs to the installation. One that was there before must not get
    /// our labels, and must not go when the installation goes.
    pub with_namespace: bool,
}

/// One file to be written, its path relative to the folder that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Such as `base/deployment.yaml`.
    pub path: String,
    /// The whole text of the file.
    pub text: String,
}

/// Objects that belong together and share one file of the base.
struct Group {
    name: &'static str,
    documents: Vec<String>,
}

/// All files: the kustomize base, and the single file that installs everything.
///
/// # Errors
///
/// When an object cannot be written as YAML; with the types we have this is a bug.
pub fn files(install: &Install) -> Result<Vec<File>, Unwritable> {
    let groups = groups(install)?;
    let mut files: Vec<File> = groups
        .iter()
        .map(|group| File {
            path: format!("base/{}", group.name),
            text: yaml::file(&group.documents),
        })
        .collect();
    let names = groups.iter().map(|group| group.name).collect();
    files.push(File {
        path: "base/kustomization.yaml".to_owned(),
        text: yaml::file(&[yaml::kustomization(names)?]),
    });
    files.push(File { path: "install.yaml".to_owned(), text: whole(groups) });
    Ok(files)
}

/// The single file that installs everything with one `kubectl apply`.
///
/// # Errors
///
/// As [`files`].
pub fn install(install: &Install) -> Result<String, Unwritable> {
    Ok(whole(groups(install)?))
}

fn whole(groups: Vec<Group>) -> String {
    let documents: Vec<String> = groups.into_iter().flat_map(|group| group.documents).collect();
    yaml::file(&documents)
}

/// The namespace comes first because nothing else can be created without it, the rights before
/// the pods that need them.
fn groups(install: &Install) -> Result<Vec<Group>, Unwritable> {
    let namespace = install.namespace.as_str();
    let mut groups = Vec::new();
    if install.with_namespace {
        groups.push(Group {
            name: "namespace.yaml",
            documents: vec![document(&namespace::namespace(namespace))?],
        });
    }
    groups.extend([
        Group {
            name: "access.yaml",
            documents: vec![
                document(&access::service_account(namespace))?,
                document(&access::role(namespace))?,
                document(&access::role_binding(namespace))?,
            ],
        },
        Group { name: "service.yaml", documents: vec![document(&service::service(namespace))?] },
        Group {
            name: "deployment.yaml",
            documents: vec![document(&deployment::deployment(install))?],
        },
        Group {
            name: "disruption-budget.yaml",
            documents: vec![document(&availability::disruption_budget(namespace))?],
        },
    ]);
    Ok(groups)
}
