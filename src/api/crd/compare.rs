//! Compares the CRDs of a cluster with those of this release.
//! A CRD that loses a version in which objects are stored makes them unreadable; one that loses its
//! conversion webhook corrupts each object at its next write.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

/// A finding about one CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdFinding {
    /// Name of the CRD.
    pub definition: String,
    /// Severity.
    pub severity: Severity,
    /// State and remedy, after the name of the CRD.
    pub message: String,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The CRD is that of this release.
    Ok,
    /// The CRD differs; applying the CRDs of this release fixes it.
    Outdated,
    /// Data would be unreadable or corrupted: this release must not be installed.
    Unsafe,
}

/// Compares a CRD of this release with the one in the cluster.
#[must_use]
pub fn compare(
    ours: &CustomResourceDefinition,
    live: Option<&CustomResourceDefinition>,
) -> Vec<CrdFinding> {
    let definition = ours.metadata.name.clone().unwrap_or_default();
    let finding = |severity, message: String| CrdFinding {
        definition: definition.clone(),
        severity,
        message,
    };
    let Some(live) = live else {
        return vec![finding(Severity::Outdated, "is not installed; apply crds/".to_owned())];
    };
    let mut findings = Vec::new();
    for version in unknown_versions(ours, live) {
        findings.push(finding(
            Severity::Unsafe,
            format!(
                "objects may still be stored as {version}, which this release does not have, and could \
                 not be read; keep a release that has {version} until it has migrated them and \
                 status.storedVersions no longer contains {version}"
            ),
        ));
    }
    if lost_conversion(ours, live) {
        findings.push(finding(
            Severity::Unsafe,
            "has several versions and no conversion webhook: every write changes the apiVersion and \
             does not convert the object; apply crds/ before any object is written"
                .to_owned(),
        ));
    }
    for (condition, message) in unserved(live) {
        let message = format!("is not fully served: {condition} is False: {message}");
        findings.push(finding(Severity::Outdated, message));
    }
    if let (Some(expected), Some(actual)) = (webhook_service(ours), webhook_service(live))
        && expected != actual
    {
        let message = format!("is converted by {actual} and not by {expected}; apply crds/");
        findings.push(finding(Severity::Outdated, message));
    }
    if findings.is_empty() && !same(ours, live) {
        findings
            .push(finding(Severity::Outdated, "differs from this release; apply crds/".to_owned()));
    }
    if findings.is_empty() {
        findings.push(finding(Severity::Ok, "matches this release".to_owned()));
    }
    findings
}

/// Versions in which objects may be stored and which this release does not have.
fn unknown_versions(
    ours: &CustomResourceDefinition,
    live: &CustomResourceDefinition,
) -> Vec<String> {
    let stored = live.status.as_ref().and_then(|status| status.stored_versions.clone());
    let known = |name: &String| ours.spec.versions.iter().any(|version| version.name == *name);
    stored.unwrap_or_default().into_iter().filter(|name| !known(name)).collect()
}

/// Conditions that report that the API server does not serve a CRD, or not by all of its names.
fn unserved(live: &CustomResourceDefinition) -> Vec<(String, String)> {
    let conditions = live.status.as_ref().and_then(|status| status.conditions.clone());
    let relevant = |name: &str| name == "Established" || name == "NamesAccepted";
    let conditions = conditions.unwrap_or_default().into_iter();
    conditions
        .filter(|condition| relevant(&condition.type_) && condition.status == "False")
        .map(|condition| (condition.type_, condition.message.unwrap_or_default()))
        .collect()
}

fn lost_conversion(ours: &CustomResourceDefinition, live: &CustomResourceDefinition) -> bool {
    let strategy = |definition: &CustomResourceDefinition| {
        let conversion = definition.spec.conversion.as_ref();
        conversion.map_or_else(|| "None".to_owned(), |conversion| conversion.strategy.clone())
    };
    strategy(ours) == "Webhook" && strategy(live) != "Webhook" && live.spec.versions.len() > 1
}

/// The Service of the conversion webhook, for a message.
fn webhook_service(definition: &CustomResourceDefinition) -> Option<String> {
    let webhook = definition.spec.conversion.as_ref()?.webhook.as_ref()?;
    let service = webhook.client_config.as_ref()?.service.as_ref()?;
    let path = service.path.as_deref().unwrap_or_default();
    Some(format!("the Service {}/{} at {path}", service.namespace, service.name))
}

/// Whether both are equal. `caBundle` is injected at runtime and ignored.
fn same(ours: &CustomResourceDefinition, live: &CustomResourceDefinition) -> bool {
    let plain = |definition: &CustomResourceDefinition| {
        let mut spec = definition.spec.clone();
        let client = spec
            .conversion
            .as_mut()
            .and_then(|conversion| conversion.webhook.as_mut())
            .and_then(|webhook| webhook.client_config.as_mut());
        if let Some(client) = client {
            client.ca_bundle = None;
        }
        if spec.conversion.as_ref().is_some_and(|conversion| conversion.webhook.is_none()) {
            spec.conversion = None;
        }
        spec.names.list_kind = None;
        spec.preserve_unknown_fields = spec.preserve_unknown_fields.filter(|preserve| *preserve);
        spec.versions.iter_mut().for_each(sorted);
        spec
    };
    plain(ours) == plain(live)
}

/// The API server keeps the order of lists whose order has no meaning; they are compared sorted.
fn sorted(version: &mut CustomResourceDefinitionVersion) {
    if let Some(fields) = version.selectable_fields.as_mut() {
        fields.sort_by(|one, other| one.json_path.cmp(&other.json_path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::crd;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionStatus;

    fn cluster_crd() -> CustomResourceDefinition {
        crd::all().remove(0)
    }

    fn stored(versions: &[&str]) -> CustomResourceDefinition {
        let mut live = cluster_crd();
        live.status = Some(CustomResourceDefinitionStatus {
            stored_versions: Some(versions.iter().map(ToString::to_string).collect()),
            ..CustomResourceDefinitionStatus::default()
        });
        live
    }

    fn severity(live: Option<&CustomResourceDefinition>) -> Severity {
        compare(&cluster_crd(), live).remove(0).severity
    }

    #[test]
    fn crds_of_this_release_are_ok_with_and_without_a_bundle() {
        let mut live = stored(&["v1"]);
        assert_eq!(severity(Some(&live)), Severity::Ok);
        let webhook = live.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
        let client = webhook.client_config.as_mut().unwrap();
        client.ca_bundle = Some(k8s_openapi::ByteString(b"a bundle".to_vec()));
        assert_eq!(severity(Some(&live)), Severity::Ok);
    }

    #[test]
    fn unknown_stored_version_is_unsafe() {
        let findings = compare(&cluster_crd(), Some(&stored(&["v1alpha0", "v1"])));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unsafe);
        assert!(findings[0].message.contains("v1alpha0"), "{}", findings[0].message);
    }

    #[test]
    fn missing_conversion_is_unsafe() {
        let mut live = stored(&["v1"]);
        live.spec.conversion = None;
        assert_eq!(severity(Some(&live)), Severity::Unsafe);
    }

    #[test]
    fn other_conversion_service_is_named() {
        let mut live = stored(&["v1"]);
        let webhook = live.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
        let service = webhook.client_config.as_mut().unwrap().service.as_mut().unwrap();
        service.namespace = "elsewhere".to_owned();
        let findings = compare(&cluster_crd(), Some(&live));
        assert_eq!(findings[0].severity, Severity::Outdated);
        assert!(findings[0].message.contains("elsewhere/"), "{}", findings[0].message);
    }

    #[test]
    fn missing_or_older_crd_is_outdated() {
        assert_eq!(severity(None), Severity::Outdated);
        let mut live = stored(&["v1"]);
        live.spec.names.short_names = None;
        assert_eq!(severity(Some(&live)), Severity::Outdated);
    }
}
