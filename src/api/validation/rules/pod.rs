//! Rules about what is handed on to pods: labels, resources, tolerations, images.
//! Comes in: the blocks of a spec. Goes out: findings. May touch: `pod`, `store_names`.
//! What a Pod would be refused for later, by somebody whom the user never sees, is said here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::field::Field;
use crate::api::names;
use crate::api::pod::quantity::Quantity;
use crate::api::pod::{Annotations, Image, Labels, Resources, Toleration, TolerationOperator};
use crate::api::validation::Findings;
use crate::api::validation::path::{FieldPath, Segment};
use crate::api::{object_store, suggest};

/// Labels that say who a pod belongs to; a user's would break what selects by them.
const RESERVED_KEYS: &[&str] = &["app", "etcd_cluster"];
const RESERVED_DOMAINS: &[&str] = &["kubernetes.io", "k8s.io", "appdelivery.cncf.io"];

/// Labels must have keys that Kubernetes takes and that are not ours.
pub(crate) fn labels(field: &Field<Labels>, path: &str, findings: &mut Findings) {
    for key in field.known().into_iter().flat_map(Labels::keys) {
        let here = FieldPath::from(path).key(key);
        if let Some(error) = key_error(key) {
            findings.invalid(here, error);
        } else if is_reserved(key) {
            let detail =
                "may not be set here: the operator or Kubernetes sets it; choose another key";
            findings.forbidden(here, detail);
        }
    }
}

/// Keys of annotations and of node labels must be keys; they may be anybody's.
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
    RESERVED_DOMAINS.iter().any(|ours| {
        domain == *ours || domain.strip_suffix(ours).is_some_and(|rest| rest.ends_with('.'))
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

/// A container may not ask for more than it is allowed.
pub(crate) fn resources(field: &Field<Resources>, path: &str, findings: &mut Findings) {
    let Some(Resources { requests, limits }) = field.known() else { return };
    for (name, list) in [("requests", requests), ("limits", limits)] {
        for (resource, amount) in list.known().into_iter().flatten() {
            let here = FieldPath::from(format!("{path}.{name}")).key(resource);
            let known = matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage")
                || resource.starts_with("hugepages-")
                || resource.contains('/');
            let error = match amount_value(amount) {
                _ if !known => unknown_resource(resource),
                None => "must be an amount, such as \"500m\" or \"1Gi\"".to_owned(),
                Some(..0.0) => {
                    "must be at least 0; leave it out to say nothing about it".to_owned()
                }
                Some(_) => continue,
            };
            findings.invalid(here, error);
        }
    }
    let limits = limits.known();
    for (resource, asked) in requests.known().into_iter().flatten() {
        let limit = limits.and_then(|limits| limits.get(resource));
        // What is less than nothing was named above, and is nothing to compare with.
        let counted = |amount| amount_value(amount).filter(|number| *number >= 0.0);
        let pair = limit.and_then(|limit| Some((counted(asked)?, counted(limit)?)));
        if pair.is_some_and(|(asked, limit)| asked > limit) {
            let here = FieldPath::from(format!("{path}.requests")).key(resource);
            let limit = limit.map(|limit| serde_json::json!(limit).to_string()).unwrap_or_default();
            findings.invalid(
                here,
                format!(
                    "must be at most what `{path}.limits` has for {resource}, which is {limit}"
                ),
            );
        }
    }
}

fn unknown_resource(name: &str) -> String {
    let hint = suggest::did_you_mean(name, ["cpu", "memory", "ephemeral-storage"])
        .map(|meant| format!(" (did you mean {meant}?)"))
        .unwrap_or_default();
    format!(
        "\"{name}\" is not a resource of containers; there are cpu, memory, ephemeral-storage, \
         hugepages-<size> and <domain>/<name>{hint}"
    )
}

/// An amount in thousandths, which is the least that is ever meant.
fn amount_value(amount: &Quantity) -> Option<f64> {
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
    let text = match amount {
        Quantity::Number(number) => return number.to_string().parse().ok(),
        Quantity::Text(text) => text,
    };
    let with_suffix = SUFFIXES.iter().find_map(|(suffix, factor)| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        Some(number * factor)
    });
    with_suffix.or_else(|| text.parse().ok()).filter(|number: &f64| number.is_finite())
}

/// A toleration of any value cannot name one.
pub(crate) fn tolerations(field: &Field<Vec<Toleration>>, path: &str, findings: &mut Findings) {
    for (index, toleration) in field.known().into_iter().flatten().enumerate() {
        let here = FieldPath::from(path).child(Segment::Index(index));
        let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
        let exists = operator.known() == Some(&TolerationOperator::Exists);
        if exists && value.known().is_some_and(|value| !value.as_str().is_empty()) {
            findings.invalid(
                here.child(Segment::Field("value".to_owned())),
                "must be left out with the operator \"Exists\", which tolerates any value",
            );
        }
        if key.known().is_none() && !exists {
            let detail = "say the taint's key, or the operator \"Exists\" to tolerate all";
            findings.required(here.child(Segment::Field("key".to_owned())), detail);
        }
        let evicts = effect.known().is_none_or(|effect| effect.as_str() == "NoExecute");
        if toleration_seconds.known().is_some() && !evicts {
            findings.invalid(
                here.child(Segment::Field("tolerationSeconds".to_owned())),
                "must be left out unless the effect is \"NoExecute\", which alone evicts",
            );
        }
    }
}

/// An image's tag is the version's, so the repository has none.
pub(crate) fn image(field: &Field<Image>, path: &str, findings: &mut Findings) {
    let repository = field.known().and_then(|image| image.repository.known());
    let error = repository.and_then(|it| object_store::repository_error(it.as_str()));
    if let Some(error) = error {
        findings.invalid(format!("{path}.repository"), error);
    }
}
