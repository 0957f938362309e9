//! Rules about volumes: large enough, never smaller than before, never of another class.
//! Comes in: the sizes and classes as they were and shall be. Goes out: findings.
//! May touch: the vocabulary of `api`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::size;
use crate::api::bytes;
use crate::api::field::Field;
use crate::api::storage_limits;
use crate::api::strings::{ClassName, VolumeSize};
use crate::api::validation::Findings;

/// What a user says about the volumes of members.
pub(crate) struct Volume<'a> {
    pub(crate) size: &'a Field<VolumeSize>,
    pub(crate) class: &'a Field<ClassName>,
}

/// `VolumePaths` it is said, and what is made anew if it must be otherwise.
pub(crate) struct VolumePaths {
    pub(crate) size: &'static str,
    pub(crate) class: &'static str,
    pub(crate) kind: &'static str,
}

/// Volumes grow, and nothing else.
pub(crate) fn volume(
    was: Option<&Volume<'_>>,
    is: &Volume<'_>,
    at: &VolumePaths,
    findings: &mut Findings,
) {
    minimum_size(is.size, at.size, findings);
    let wanted = size(is.size.known().map(VolumeSize::as_str));
    let Some(was) = was else { return };
    let had = size(was.size.known().map(VolumeSize::as_str));
    match (had, wanted) {
        (Some(had), Some(wanted)) if wanted < had => findings.forbidden(
            at.size,
            format!(
                "may not shrink from {} to {}: a volume cannot be made smaller; restore a backup \
                 into a new {} instead",
                bytes::format(had),
                bytes::format(wanted),
                at.kind,
            ),
        ),
        (Some(had), None) if !is.size.is_set() => findings.forbidden(
            at.size,
            format!(
                "may not be removed: the volumes have {}; leave it as it is",
                bytes::format(had)
            ),
        ),
        (Some(_) | None, Some(_) | None) => {}
    }
    class(was.class, is.class, at, findings);
}

/// etcd needs room before it has any data.
pub(crate) fn minimum_size(given: &Field<VolumeSize>, path: &str, findings: &mut Findings) {
    let bytes = size(given.known().map(VolumeSize::as_str));
    if let Some(error) = bytes.and_then(storage_limits::volume_error) {
        findings.invalid(path, error);
    }
}

fn class(was: &Field<ClassName>, is: &Field<ClassName>, at: &VolumePaths, findings: &mut Findings) {
    if was.known() == is.known() || matches!(is, Field::Invalid(_)) {
        return;
    }
    let stays = was.known().map_or_else(
        || "the default class of that time".to_owned(),
        |class| format!("\"{class}\""),
    );
    findings.forbidden(
        at.class,
        format!(
            "may not be changed: the volumes stay in {stays}; restore a backup into a new {} \
             instead",
            at.kind
        ),
    );
}
