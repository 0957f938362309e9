//! Validation of fields that are passed on to pods: labels, resources, tolerations, images.
//! Otherwise the API server would reject the pod later, where the user does not see the error.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::field::Field;
use crate::api::names;
use crate::api::pod::quantity::Quantity;
use crate::api::pod::{Annotations, Image, Labels, Resources, Toleration, TolerationOperator};
use crate::api::validation::Findings;
use crate::api::validation::path::{FieldPath, Segment};
use crate::api::{object_store, suggest};

/// Labels that selectors use; a user's value would break the selectors.
const RESERVED_KEYS: &[&str] = &["app", "etcd_cluster"];
const RESERVED_DOMAINS: &[&str] = &["kubernetes.io", "k8s.io", "appdelivery.cncf.io"];

/// Label keys must be valid and not reserved.
pub(crate) fn labels(field: &Field<Labels>, path: &str, findings: &mut Findings) {
    for key in field.known().into_iter().flat_map(Labels::keys) {
        let here = FieldPath::from(path).key(key);
        if let Some(error) = key_error(key) {
            findings.invalid(here, error);
        } else if is_reserved(key) {
            let detail = "is reserved for Kubernetes and the operator; choose another key";
            findings.forbidden(here, detail);
        }
    }
}

/// Keys of annotations and node labels must be valid; reserved ones are allowed.
pub(crate) fn keys<'a>(
    field: impl IntoIterator<Item = &'a String>,
    path: &str,
    findings: &mut Findings,
) {
    for key in field {
        if let Some(error) = key_error(key) {
            findings.invalid(FieldPath::from(path).key(key), error);
        }
    }
}

/// The keys of annotations.
pub(crate) fn annotations(field: &Field<Annotations>, path: &str, findings: &mut Findings) {
    keys(field.known().into_iter().flat_map(Annotations::keys), path, findings);
}

fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return RESERVED_KEYS.contains(&key) };
    RESERVED_DOMAINS.iter().any(|reserved| {
        domain == *reserved || domain.strip_suffix(reserved).is_some_and(|rest| rest.ends_with('.'))
    })
}

fn key_error(key: &str) -> Option<String> {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let inner = |byte: u8| plain(byte) || matches!(byte, b'-' | b'_' | b'.');
    let good = (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && name.bytes().next().is_some_and(plain)
        && name.bytes().next_back().is_some_and(plain)
        && domain.is_none_or(names::is_dns_subdomain);
    (!good).then(|| {
        "the key must be a name of at most 63 letters, digits, dashes, underscores and dots, or a \
         domain, a slash and such a name"
            .to_owned()
    })
}

/// Requests must not exceed limits.
pub(crate) fn resources(field: &Field<Resources>, path: &str, findings: &mut Findings) {
    let Some(Resources { requests, limits }) = field.known() else { return };
    for (name, list) in [("requests", requests), ("limits", limits)] {
        for (resource, quantity) in list.known().into_iter().flatten() {
            let here = FieldPath::from(format!("{path}.{name}")).key(resource);
            let known = matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage")
                || resource.starts_with("hugepages-")
                || resource.contains('/');
            let error = match quantity_value(quantity) {
                _ if !known => unknown_resource(resource),
                None => "must be a quantity, such as \"500m\" or \"1Gi\"".to_owned(),
                Some(..0.0) => "must be at least 0; remove it to leave it unset".to_owned(),
                Some(_) => continue,
            };
            findings.invalid(here, error);
        }
    }
    let limits = limits.known();
    for (resource, request) in requests.known().into_iter().flatten() {
        let limit = limits.and_then(|limits| limits.get(resource));
        // Negative quantities are reported above and not compared.
        let valid = |quantity| quantity_value(quantity).filter(|number| *number >= 0.0);
        let pair = limit.and_then(|limit| Some((valid(request)?, valid(limit)?)));
        if pair.is_some_and(|(request, limit)| request > limit) {
            let here = FieldPath::from(format!("{path}.requests")).key(resource);
            let limit = limit.map(|limit| serde_json::json!(limit).to_string()).unwrap_or_default();
            findings.invalid(
                here,
                format!(
                    "must be at most the {resource} limit in `{path}.limits`, which is {limit}"
                ),
            );
        }
    }
}

fn unknown_resource(name: &str) -> String {
    let hint = suggest::did_you_mean(name, ["cpu", "memory", "ephemeral-storage"])
        .map(|suggestion| format!(" (did you mean {suggestion}?)"))
        .unwrap_or_default();
    format!(
        "\"{name}\" is not a container resource; supported are cpu, memory, ephemeral-storage, \
         hugepages-<size> and <domain>/<name>{hint}"
    )
}

/// The number of a quantity.
fn quantity_value(quantity: &Quantity) -> Option<f64> {
    const SUFFIXES: &[(&str, f64)] = &[
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let text = match quantity {
        Quantity::Number(number) => return number.to_string().parse().ok(),
        Quantity::Text(text) => text,
    };
    let with_suffix = SUFFIXES.iter().find_map(|(suffix, factor)| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        Some(number * factor)
    });
    with_suffix.or_else(|| text.parse().ok()).filter(|number: &f64| number.is_finite())
}

/// Fields of a toleration must match its operator and effect.
pub(crate) fn tolerations(field: &Field<Vec<Toleration>>, path: &str, findings: &mut Findings) {
    for (index, toleration) in field.known().into_iter().flatten().enumerate() {
        let here = FieldPath::from(path).child(Segment::Index(index));
        let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
        let exists = operator.known() == Some(&TolerationOperator::Exists);
        if exists && value.known().is_some_and(|value| !value.as_str().is_empty()) {
            findings.invalid(
                here.child(Segment::Field("value".to_owned())),
                "must not be set with the operator \"Exists\", which tolerates any value",
            );
        }
        if key.known().is_none() && !exists {
            let detail = "set the key of the taint, or the operator \"Exists\" to tolerate all";
            findings.required(here.child(Segment::Field("key".to_owned())), detail);
        }
        let evicts = effect.known().is_none_or(|effect| effect.as_str() == "NoExecute");
        if toleration_seconds.known().is_some() && !evicts {
            findings.invalid(
                here.child(Segment::Field("tolerationSeconds".to_owned())),
                "must not be set unless the effect is \"NoExecute\", the only one that evicts",
            );
        }
    }
}

/// The repository must not have a tag: the version selects it.
pub(crate) fn image(field: &Field<Image>, path: &str, findings: &mut Findings) {
    let repository = field.known().and_then(|image| image.repository.known());
    let error = repository.and_then(|name| object_store::repository_error(name.as_str()));
    if let Some(error) = error {
        findings.invalid(format!("{path}.repository"), error);
    }
}
