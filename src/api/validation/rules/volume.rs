//! Validation of volumes: minimum size, no shrinking, immutable StorageClass.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::size;
use crate::api::bytes;
use crate::api::field::Field;
use crate::api::storage_limits;
use crate::api::strings::{ClassName, VolumeSize};
use crate::api::validation::Findings;

/// Volume fields of a spec.
pub(crate) struct VolumeFields<'a> {
    pub(crate) size: &'a Field<VolumeSize>,
    pub(crate) class: &'a Field<ClassName>,
}

/// Field paths of a volume, and the kind to create instead of an impossible change.
pub(crate) struct VolumePaths {
    pub(crate) size: &'static str,
    pub(crate) class: &'static str,
    pub(crate) kind: &'static str,
}

/// The size may only increase, and nothing else may change.
pub(crate) fn volume(
    was: Option<&VolumeFields<'_>>,
    is: &VolumeFields<'_>,
    at: &VolumePaths,
    findings: &mut Findings,
) {
    minimum_size(is.size, at.size, findings);
    let desired = size(is.size.known().map(VolumeSize::as_str));
    let Some(was) = was else { return };
    let previous = size(was.size.known().map(VolumeSize::as_str));
    match (previous, desired) {
        (Some(previous), Some(desired)) if desired < previous => findings.forbidden(
            at.size,
            format!(
                "may not be decreased from {} to {}: a volume cannot shrink; create a new {} and copy \
                 the data",
                bytes::format(previous),
                bytes::format(desired),
                at.kind,
            ),
        ),
        (Some(previous), None) if !is.size.is_set() => findings.forbidden(
            at.size,
            format!("may not be removed: the volumes have {}", bytes::format(previous)),
        ),
        (Some(_) | None, Some(_) | None) => {}
    }
    class(was.class, is.class, at, findings);
}

/// etcd needs space before it has any data.
pub(crate) fn minimum_size(field: &Field<VolumeSize>, path: &str, findings: &mut Findings) {
    let bytes = size(field.known().map(VolumeSize::as_str));
    if let Some(error) = bytes.and_then(storage_limits::volume_error) {
        findings.invalid(path, error);
    }
}

fn class(was: &Field<ClassName>, is: &Field<ClassName>, at: &VolumePaths, findings: &mut Findings) {
    if was.known() == is.known() || matches!(is, Field::Invalid(_)) {
        return;
    }
    let current = was.known().map_or_else(
        || "the default StorageClass at creation".to_owned(),
        |class| format!("\"{class}\""),
    );
    findings.forbidden(
        at.class,
        format!(
            "may not be changed: the volumes have {current}; create a new {} and copy the data",
            at.kind
        ),
    );
}
