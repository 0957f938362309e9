//! How small and how large volumes and quotas may be: the figures, and the rules in CEL with them.
//! Comes in: where a version keeps its sizes. Goes out: bounds, `x-kubernetes-validations`, and the
//! sentences that CEL and `check` share.
//! May touch: `bytes`, `cel`. A figure stands here once; every rule and every sentence is made of it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use crate::api::bytes;
use crate::api::cel::{has_path, rule};

const MEBI: u64 = 1 << 20;
/// etcd sets aside 64 MiB for each piece of its log before it has written anything.
const MIN_VOLUME: u64 = 300 * MEBI;
const MIN_QUOTA: u64 = 16 * MEBI;
/// Beyond this etcd itself warns: it keeps the whole index in memory and reads all of it at start.
const MAX_QUOTA: u64 = 8 * 1024 * MEBI;
/// How much of a disk the data may take.
const SHARE: Share = Share { parts: 4, of: 5, words: "four fifths" };

/// So many parts of so many, and the same in words.
struct Share {
    parts: u8,
    of: u8,
    words: &'static str,
}

/// What is wrong with the size of a volume.
pub(crate) fn volume_error(size: u64) -> Option<String> {
    (size < MIN_VOLUME).then(volume_too_small)
}

/// What is wrong with a quota, whatever the disk.
pub(crate) fn quota_error(quota: u64) -> Option<String> {
    match quota {
        ..MIN_QUOTA => Some(quota_too_small()),
        MIN_QUOTA..=MAX_QUOTA => None,
        _ => Some(quota_too_large()),
    }
}

/// What is wrong with a quota on a disk of this size, which is said at `place`.
pub(crate) fn quota_error_for_volume(disk: u64, place: &str, quota: u64) -> Option<String> {
    let most = max_quota_for_volume(disk);
    (quota > most).then(|| {
        let (most, share) = (bytes::format(most), SHARE.words);
        format!("must be at most {most} ({share} of `{place}`): {SPACE_FOR_LOG}")
    })
}

/// The largest quota for a disk of this size.
fn max_quota_for_volume(disk: u64) -> u64 {
    let Share { parts, of, words: _ } = SHARE;
    // In 128 bits: the disk times the parts may be more than 64 can count.
    let most = u128::from(disk).saturating_mul(u128::from(parts)).div_euclid(u128::from(of));
    u64::try_from(most).unwrap_or(u64::MAX)
}

const SPACE_FOR_LOG: &str = "the log and snapshots need room, too";

fn volume_too_small() -> String {
    let least = bytes::format(MIN_VOLUME);
    format!("must be at least {least}: etcd sets space aside for its log before it writes anything")
}

fn quota_too_small() -> String {
    format!("must be at least {}, or the first writes fill it", bytes::format(MIN_QUOTA))
}

fn quota_too_large() -> String {
    format!("must be at most {}: etcd is made for no more", bytes::format(MAX_QUOTA))
}

/// The rules of a volume's size: large enough, and never smaller than before.
pub(crate) fn volume_cel() -> Value {
    json!([
        rule(
            "!isQuantity(self) || !isQuantity(oldSelf) || \
             quantity(self).compareTo(quantity(oldSelf)) >= 0",
            "may not shrink: a volume cannot be made smaller; restore a backup into a new cluster \
             instead",
        ),
        within(">=", MIN_VOLUME, volume_too_small()),
    ])
}

/// The rules of a quota by itself.
pub(crate) fn quota_cel() -> Value {
    json!([within(">=", MIN_QUOTA, quota_too_small()), within("<=", MAX_QUOTA, quota_too_large()),])
}

/// A size against a bound. What is no size is for its pattern to refuse, and for nobody else.
fn within(compares: &str, bound: u64, message: String) -> Value {
    let bound = bytes::format(bound);
    let size = format!("quantity(self).compareTo(quantity('{bound}')) {compares} 0");
    rule(format!("!isQuantity(self) || {size}"), message)
}

/// A quota leaves room on its disk, if a spec says both.
pub(crate) fn quota_fits_cel(quota: &str, disk: &str) -> Value {
    let Share { parts, of, words } = SHARE;
    let said = format!("{} && {}", has_path("self", quota), has_path("self", disk));
    let sizes = format!("isQuantity(self.{quota}) && isQuantity(self.{disk})");
    let (left, right) = (times(quota, of), times(disk, parts));
    rule(
        format!("!({said} && {sizes}) || {left}.compareTo({right}) <= 0"),
        format!("`{quota}` must be at most {words} of `{disk}`: {SPACE_FOR_LOG}"),
    )
}

/// So many times the size at `path`. CEL adds quantities and cannot multiply them; as whole numbers
/// it would fail on sizes such as `1.001Ki`.
fn times(path: &str, count: u8) -> String {
    let size = format!("quantity(self.{path})");
    (1..count).fold(size.clone(), |sum, _| format!("{sum}.add({size})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::violations;

    fn cluster(size: &str) -> Value {
        let spec = json!({"version": "3.6.16", "storage": {"size": size}});
        json!({"metadata": {"name": "main"}, "spec": spec})
    }

    /// What the rules of v1 say to a cluster with this quota on this disk.
    fn said(quota: &str, disk: &str) -> Vec<String> {
        let mut cluster = cluster(disk);
        cluster["spec"]["options"]["quota"] = quota.into();
        violations("EtcdCluster", "v1", None, &cluster)
    }

    #[test]
    fn a_bound_is_written_to_the_byte() {
        // `about 1.1Gi` would be no quantity, and no rule.
        for bound in [MIN_VOLUME, MIN_QUOTA, MAX_QUOTA] {
            assert_eq!(bytes::parse(&bytes::format(bound)), Some(bound));
        }
    }

    #[test]
    fn the_rules_and_the_checks_draw_the_same_lines() {
        let at = |bytes: u64| bytes.to_string();
        for size in [0, MIN_VOLUME - 1, MIN_VOLUME, MIN_VOLUME + 1] {
            let expected: Vec<String> = volume_error(size).into_iter().collect();
            let said = violations("EtcdCluster", "v1", None, &cluster(&at(size)));
            assert_eq!(said, expected, "{size}");
        }
        for quota in [0, MIN_QUOTA - 1, MIN_QUOTA, MAX_QUOTA, MAX_QUOTA + 1] {
            let expected: Vec<String> = quota_error(quota).into_iter().collect();
            assert_eq!(said(&at(quota), "1Ti"), expected, "{quota}");
        }
        for disk in (0..25).map(|more| (1 << 30) + more) {
            let most = max_quota_for_volume(disk);
            assert_eq!(said(&at(most), &at(disk)), [""; 0], "{most} of {disk}");
            assert_eq!(said(&at(most + 1), &at(disk)).len(), 1, "{} of {disk}", most + 1);
        }
    }

    #[test]
    fn parts_of_a_byte_are_added_up_and_not_refused() {
        assert_eq!(said("7.92Gi", "9.9Gi"), [""; 0]);
        assert_eq!(said("7.921Gi", "9.9Gi").len(), 1);
        assert_eq!(said("16384.001Ki", "307200.001Ki"), [""; 0]);
    }

    #[test]
    fn what_is_no_size_is_not_judged_by_its_size() {
        assert_eq!(said("ten", "1Ti"), [""; 0]);
        assert_eq!(said("1Gi", "10 apples"), [""; 0]);
        assert_eq!(said("", ""), [""; 0]);
    }

    #[test]
    fn a_share_of_a_disk_is_never_more_than_can_be_counted() {
        assert_eq!(max_quota_for_volume(0), 0);
        assert_eq!(max_quota_for_volume(4), 3);
        assert_eq!(max_quota_for_volume(10 << 30), 8 << 30);
        assert_eq!(max_quota_for_volume(u64::MAX), u64::MAX / 5 * 4);
    }
}
