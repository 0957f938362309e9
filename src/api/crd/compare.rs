//! The definitions that a cluster has, beside those of this release.
//! Comes in: both, as objects. Goes out: what differs, and what would strand data.
//! May touch: Kubernetes' types. A definition that loses a version in which objects are stored
//! makes them unreadable; one that loses its conversion makes the next write of each object wrong.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

/// What is said about one definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdFinding {
    /// The definition's name.
    pub definition: String,
    /// How grave it is.
    pub severity: Severity,
    /// What it is, and what to do.
    pub message: String,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// All is as this release has it.
    Ok,
    /// Something differs, and applying the release's definitions mends it.
    Outdated,
    /// Data would be `unknown_versions` or spoiled: this release must not be installed as it is.
    Unsafe,
}

/// Compares one definition of this release with what the cluster has under its name.
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
    for unknown_versions in unknown_versions(ours, live) {
        findings.push(finding(
            Severity::Unsafe,
            format!(
                "objects may still be stored as {unknown_versions}, which this release does not have: they \
                 could no longer be read; stay with a release that has {unknown_versions}, let it migrate \
                 them, and wait until status.storedVersions no longer names it"
            ),
        ));
    }
    if lost_conversion(ours, live) {
        findings.push(finding(
            Severity::Unsafe,
            "has several versions and no conversion by webhook: every write changes the version's \
             name and not the object; apply crds/ before anybody writes"
                .to_owned(),
        ));
    }
    for (condition, message) in unserved(live) {
        let message = format!("is not served as it should be: {condition} is False: {message}");
        findings.push(finding(Severity::Outdated, message));
    }
    if let (Some(here), Some(there)) = (converter(ours), converter(live))
        && here != there
    {
        let message = format!("is converted by {there} and not by {here}; apply crds/");
        findings.push(finding(Severity::Outdated, message));
    }
    if findings.is_empty() && !same(ours, live) {
        findings
            .push(finding(Severity::Outdated, "differs from this release; apply crds/".to_owned()));
    }
    if findings.is_empty() {
        findings.push(finding(Severity::Ok, "is that of this release".to_owned()));
    }
    findings
}

/// Versions in which objects may be stored, and which this release does not have.
fn unknown_versions(
    ours: &CustomResourceDefinition,
    live: &CustomResourceDefinition,
) -> Vec<String> {
    let stored = live.status.as_ref().and_then(|status| status.stored_versions.clone());
    let known = |name: &String| ours.spec.versions.iter().any(|version| version.name == *name);
    stored.unwrap_or_default().into_iter().filter(|name| !known(name)).collect()
}

/// The conditions by which the apiserver says that it does not serve a definition, or not by all of
/// its names.
fn unserved(live: &CustomResourceDefinition) -> Vec<(String, String)> {
    let conditions = live.status.as_ref().and_then(|status| status.conditions.clone());
    let told = |name: &str| name == "Established" || name == "NamesAccepted";
    let all = conditions.unwrap_or_default().into_iter();
    all.filter(|it| told(&it.type_) && it.status == "False")
        .map(|it| (it.type_, it.message.unwrap_or_default()))
        .collect()
}

fn lost_conversion(ours: &CustomResourceDefinition, live: &CustomResourceDefinition) -> bool {
    let strategy = |definition: &CustomResourceDefinition| {
        let conversion = definition.spec.conversion.as_ref();
        conversion.map_or_else(|| "None".to_owned(), |conversion| conversion.strategy.clone())
    };
    strategy(ours) == "Webhook" && strategy(live) != "Webhook" && live.spec.versions.len() > 1
}

/// Who converts, in message.
fn converter(definition: &CustomResourceDefinition) -> Option<String> {
    let webhook = definition.spec.conversion.as_ref()?.webhook.as_ref()?;
    let service = webhook.client_config.as_ref()?.service.as_ref()?;
    let path = service.path.as_deref().unwrap_or_default();
    Some(format!("the Service {}/{}, at {path}", service.namespace, service.name))
}

/// Whether both say the same. The bundle of authorities is put in at run time, and does not count.
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
        spec.preserve_unknown_fields = spec.preserve_unknown_fields.filter(|keeps| *keeps);
        spec.versions.iter_mut().for_each(sorted);
        spec
    };
    plain(ours) == plain(live)
}

/// The apiserver keeps the order of lists that mean the same in any order; we compare them sorted.
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

    fn clusters() -> CustomResourceDefinition {
        crd::all().remove(0)
    }

    fn stored(versions: &[&str]) -> CustomResourceDefinition {
        let mut live = clusters();
        live.status = Some(CustomResourceDefinitionStatus {
            stored_versions: Some(versions.iter().map(ToString::to_string).collect()),
            ..CustomResourceDefinitionStatus::default()
        });
        live
    }

    fn severity(live: Option<&CustomResourceDefinition>) -> Severity {
        compare(&clusters(), live).remove(0).severity
    }

    #[test]
    fn the_definitions_of_this_release_are_fine_with_and_without_a_bundle() {
        let mut live = stored(&["v1"]);
        assert_eq!(severity(Some(&live)), Severity::Ok);
        let webhook = live.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
        let client = webhook.client_config.as_mut().unwrap();
        client.ca_bundle = Some(k8s_openapi::ByteString(b"a bundle".to_vec()));
        assert_eq!(severity(Some(&live)), Severity::Ok);
    }

    #[test]
    fn a_version_that_is_still_stored_and_no_longer_known_strands_data() {
        let findings = compare(&clusters(), Some(&stored(&["v1alpha0", "v1"])));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unsafe);
        assert!(findings[0].message.contains("v1alpha0"), "{}", findings[0].message);
    }

    #[test]
    fn a_definition_without_its_conversion_spoils_data() {
        let mut live = stored(&["v1"]);
        live.spec.conversion = None;
        assert_eq!(severity(Some(&live)), Severity::Unsafe);
    }

    #[test]
    fn a_definition_that_another_service_converts_says_which() {
        let mut live = stored(&["v1"]);
        let webhook = live.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
        let service = webhook.client_config.as_mut().unwrap().service.as_mut().unwrap();
        service.namespace = "elsewhere".to_owned();
        let findings = compare(&clusters(), Some(&live));
        assert_eq!(findings[0].severity, Severity::Outdated);
        assert!(findings[0].message.contains("elsewhere/"), "{}", findings[0].message);
    }

    #[test]
    fn what_is_missing_or_older_is_only_a_difference() {
        assert_eq!(severity(None), Severity::Outdated);
        let mut live = stored(&["v1"]);
        live.spec.names.short_names = None;
        assert_eq!(severity(Some(&live)), Severity::Outdated);
    }
}
