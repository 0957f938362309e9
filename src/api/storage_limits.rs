//! Limits of volume sizes and quotas, with the CEL rules and messages derived from them.
//! Each limit is defined once, and CEL and `validation` share the messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use crate::api::bytes;
use crate::api::cel::{has_path, rule};

const MEBI: u64 = 1 << 20;
/// etcd preallocates 64 MiB for each WAL file before the first write.
const MIN_VOLUME: u64 = 300 * MEBI;
const MIN_QUOTA: u64 = 16 * MEBI;
/// etcd warns above this size: it keeps the whole index in memory and reads it at each start.
const MAX_QUOTA: u64 = 8 * 1024 * MEBI;
/// Maximum share of the volume for the database.
const MAX_SHARE: Share = Share { parts: 4, of: 5, text: "four fifths" };

/// A fraction and its text.
struct Share {
    parts: u8,
    of: u8,
    text: &'static str,
}

/// Error of the size of a volume.
pub(crate) fn volume_error(size: u64) -> Option<String> {
    (size < MIN_VOLUME).then(volume_too_small)
}

/// Error of a quota, independent of the volume.
pub(crate) fn quota_error(quota: u64) -> Option<String> {
    match quota {
        ..MIN_QUOTA => Some(quota_too_small()),
        MIN_QUOTA..=MAX_QUOTA => None,
        _ => Some(quota_too_large()),
    }
}

/// Error of a quota on a volume of this size, which is set in the field `path`.
pub(crate) fn quota_error_for_volume(volume: u64, path: &str, quota: u64) -> Option<String> {
    let max = max_quota_for_volume(volume);
    (quota > max).then(|| {
        let (max, share) = (bytes::format(max), MAX_SHARE.text);
        format!("must be at most {max} ({share} of `{path}`): {SPACE_FOR_LOG}")
    })
}

/// The maximum quota for a volume of this size.
fn max_quota_for_volume(volume: u64) -> u64 {
    let Share { parts, of, text: _ } = MAX_SHARE;
    // In 128 bits: the product may exceed 64 bits.
    let max = u128::from(volume).saturating_mul(u128::from(parts)).div_euclid(u128::from(of));
    u64::try_from(max).unwrap_or(u64::MAX)
}

const SPACE_FOR_LOG: &str = "the WAL and snapshots need space, too";

fn volume_too_small() -> String {
    let min = bytes::format(MIN_VOLUME);
    format!("must be at least {min}: etcd preallocates its WAL before the first write")
}

fn quota_too_small() -> String {
    format!(
        "must be at least {}: the first writes would reach a smaller quota",
        bytes::format(MIN_QUOTA)
    )
}

fn quota_too_large() -> String {
    format!("must be at most {}, the maximum that etcd supports", bytes::format(MAX_QUOTA))
}

/// CEL rules of a volume size: the minimum, and that it never decreases.
pub(crate) fn volume_cel() -> Value {
    json!([
        rule(
            "!isQuantity(self) || !isQuantity(oldSelf) || \
             quantity(self).compareTo(quantity(oldSelf)) >= 0",
            "may not be decreased: a volume cannot shrink; create a new cluster and copy the data",
        ),
        bound_rule(">=", MIN_VOLUME, volume_too_small()),
    ])
}

/// CEL rules of a quota, independent of the volume.
pub(crate) fn quota_cel() -> Value {
    json!([
        bound_rule(">=", MIN_QUOTA, quota_too_small()),
        bound_rule("<=", MAX_QUOTA, quota_too_large()),
    ])
}

/// CEL rule that compares a size with a bound. An invalid size is rejected by its pattern alone.
fn bound_rule(operator: &str, bound: u64, message: String) -> Value {
    let bound = bytes::format(bound);
    let size = format!("quantity(self).compareTo(quantity('{bound}')) {operator} 0");
    rule(format!("!isQuantity(self) || {size}"), message)
}

/// CEL rule that a quota fits its volume, if a spec sets both.
pub(crate) fn quota_fits_cel(quota: &str, volume: &str) -> Value {
    let Share { parts, of, text } = MAX_SHARE;
    let set = format!("{} && {}", has_path("self", quota), has_path("self", volume));
    let sizes = format!("isQuantity(self.{quota}) && isQuantity(self.{volume})");
    let (left, right) = (times(quota, of), times(volume, parts));
    rule(
        format!("!({set} && {sizes}) || {left}.compareTo({right}) <= 0"),
        format!("`{quota}` must be at most {text} of `{volume}`: {SPACE_FOR_LOG}"),
    )
}

/// A multiple of the size at `path`. CEL can add quantities and not multiply them; a conversion to
/// integers would fail on sizes such as `1.001Ki`.
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

    /// Violations of a v1 cluster with this quota and volume size.
    fn quota_violations(quota: &str, volume: &str) -> Vec<String> {
        let mut cluster = cluster(volume);
        cluster["spec"]["options"]["quota"] = quota.into();
        violations("EtcdCluster", "v1", None, &cluster)
    }

    #[test]
    fn bounds_are_formatted_exactly() {
        // `about 1.1Gi` would be no quantity in a rule.
        for bound in [MIN_VOLUME, MIN_QUOTA, MAX_QUOTA] {
            assert_eq!(bytes::parse(&bytes::format(bound)), Some(bound));
        }
    }

    #[test]
    fn cel_rules_and_validation_have_the_same_bounds() {
        let at = |bytes: u64| bytes.to_string();
        for size in [0, MIN_VOLUME - 1, MIN_VOLUME, MIN_VOLUME + 1] {
            let expected: Vec<String> = volume_error(size).into_iter().collect();
            let actual = violations("EtcdCluster", "v1", None, &cluster(&at(size)));
            assert_eq!(actual, expected, "{size}");
        }
        for quota in [0, MIN_QUOTA - 1, MIN_QUOTA, MAX_QUOTA, MAX_QUOTA + 1] {
            let expected: Vec<String> = quota_error(quota).into_iter().collect();
            assert_eq!(quota_violations(&at(quota), "1Ti"), expected, "{quota}");
        }
        for volume in (0..25).map(|more| (1 << 30) + more) {
            let max = max_quota_for_volume(volume);
            assert_eq!(quota_violations(&at(max), &at(volume)), [""; 0], "{max} of {volume}");
            assert_eq!(
                quota_violations(&at(max + 1), &at(volume)).len(),
                1,
                "{} of {volume}",
                max + 1
            );
        }
    }

    #[test]
    fn fractions_of_a_byte_are_added_and_not_rejected() {
        assert_eq!(quota_violations("7.92Gi", "9.9Gi"), [""; 0]);
        assert_eq!(quota_violations("7.921Gi", "9.9Gi").len(), 1);
        assert_eq!(quota_violations("16384.001Ki", "307200.001Ki"), [""; 0]);
    }

    #[test]
    fn invalid_size_is_not_compared() {
        assert_eq!(quota_violations("ten", "1Ti"), [""; 0]);
        assert_eq!(quota_violations("1Gi", "10 apples"), [""; 0]);
        assert_eq!(quota_violations("", ""), [""; 0]);
    }

    #[test]
    fn maximum_quota_does_not_overflow() {
        assert_eq!(max_quota_for_volume(0), 0);
        assert_eq!(max_quota_for_volume(4), 3);
        assert_eq!(max_quota_for_volume(10 << 30), 8 << 30);
        assert_eq!(max_quota_for_volume(u64::MAX), u64::MAX / 5 * 4);
    }
}
