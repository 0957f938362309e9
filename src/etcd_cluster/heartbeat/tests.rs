//! Tests of the heartbeat profiles.

use serde_json::json;

use super::*;
use crate::api::etcd_cluster::v1::status::TuningEntry;
use crate::api::field::Field;

const METRICS: &str = r#"
# TYPE etcd_network_peer_round_trip_time_seconds histogram
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="0.0001"} 0
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="0.1024"} 3
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="0.2048"} 40
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="+Inf"} 41
etcd_network_peer_round_trip_time_seconds_sum{To="a1"} 5.1
etcd_network_peer_round_trip_time_seconds_bucket{To="b2",le="0.0001"} 1e+01
etcd_network_peer_round_trip_time_seconds_bucket{To="b2",le="+Inf"} 10
etcd_network_peer_round_trip_time_seconds_bucket{To="c3",le="soon"} 10
etcd_network_peer_round_trip_time_seconds_bucket{le="0.0001"} 10
etcd_network_peer_round_trip_time_seconds_bucket 7
"#;

fn peers() -> BTreeSet<String> {
    ["a1", "b2", "c3"].map(str::to_owned).into()
}

const fn trip(at_least: u64, at_most: u64) -> RoundTrip {
    RoundTrip { at_least, at_most }
}

#[test]
fn histogram_is_parsed_and_invalid_lines_are_skipped() {
    let histogram = parse_histogram(METRICS, &peers());
    assert_eq!(histogram.keys().collect::<Vec<_>>(), ["a1", "b2"]);
    let a1: Vec<_> = histogram["a1"].iter().map(|(bound, count)| (*bound, *count)).collect();
    assert_eq!(a1, [(100, 0), (102_400, 3), (204_800, 40), (u64::MAX, 41)]);
    assert_eq!(histogram["b2"][&100], 10);
    let remaining = BTreeSet::from(["a1".to_owned()]);
    let histogram = parse_histogram(METRICS, &remaining);
    assert_eq!(histogram.keys().collect::<Vec<_>>(), ["a1"], "b2 was removed");
}

#[test]
fn outliers_do_not_count() {
    // Cumulative counts up to 1 ms, 100 ms, 200 ms, and without bound.
    let pair = |counts: [u64; 4]| {
        pair_round_trip(
            &[1000, 100_000, 200_000, u64::MAX].into_iter().zip(counts).collect::<Vec<_>>(),
        )
    };
    assert_eq!(pair([20, 20, 20, 20]), Some(trip(0, 1000)));
    assert_eq!(pair([10, 10, 12, 12]), Some(trip(0, 200_000)), "two of twelve were slow");
    assert_eq!(pair([2, 2, 20, 20]), Some(trip(100_000, 200_000)), "nine of ten were slow");
    assert_eq!(pair([3, 3, 20, 20]), Some(trip(0, 200_000)));
    assert_eq!(pair([0, 0, 0, 20]), Some(trip(200_000, u64::MAX)));
    assert_eq!(pair([0, 0, 0, 7]), None, "too few");
}

#[test]
fn slowest_pair_counts_and_only_new_samples() {
    let nothing = RttHistogram::from([
        ("a1".to_owned(), BTreeMap::new()),
        ("b2".to_owned(), BTreeMap::new()),
    ]);
    let now = parse_histogram(METRICS, &peers());
    assert_eq!(round_trip([(&nothing, &now)]), Some(trip(102_400, 204_800)));
    assert_eq!(round_trip([(&now, &now)]), None, "no new samples");
    let mut later = now.clone();
    for counts in later.values_mut() {
        for (bound, count) in counts.iter_mut() {
            *count += if *bound >= 100 { 20 } else { 0 };
        }
    }
    assert_eq!(round_trip([(&now, &later)]), Some(trip(0, 100)), "old samples do not count");
    assert_eq!(round_trip([(&RttHistogram::new(), &now)]), None, "one pair is unknown");
    assert_eq!(round_trip([]), None);
}

#[test]
fn profile_changes_only_if_it_is_certainly_wrong() {
    let default = HeartbeatProfile::ETCD_DEFAULT;
    for (measured, heartbeat) in [
        (None, 100),
        (Some(trip(0, 100)), 100),
        // Less or more than a hundred milliseconds.
        (Some(trip(51_200, 102_400)), 100),
        (Some(trip(102_400, 204_800)), 250),
        (Some(trip(819_200, 1_638_400)), 250),
    ] {
        assert_eq!(default.next(measured).heartbeat(), heartbeat, "{measured:?}");
    }
    let second = default.next(Some(trip(102_400, 204_800)));
    for (measured, heartbeat) in [
        (None, 250),
        (Some(trip(102_400, 204_800)), 250),
        (Some(trip(25_600, 51_200)), 250),
        (Some(trip(12_800, 25_600)), 100),
        (Some(trip(204_800, 409_600)), 250),
        (Some(trip(409_600, 819_200)), 500),
    ] {
        assert_eq!(second.next(measured).heartbeat(), heartbeat, "{measured:?}");
    }
}

#[test]
fn every_measurement_leads_to_a_stable_profile() {
    let bounds: Vec<u64> = (0..16).map(|shift| 100 << shift).collect();
    for pair in bounds.windows(2) {
        for start in HeartbeatProfile::all() {
            let mut profile = start;
            for _ in 0..PROFILES.len() {
                profile = profile.next(Some(trip(pair[0], pair[1])));
            }
            assert_eq!(profile.next(Some(trip(pair[0], pair[1]))), profile, "{start:?} {pair:?}");
        }
    }
}

#[test]
fn adjacent_profiles_are_compatible() {
    for pair in PROFILES.windows(2) {
        let [(_, election), (heartbeat, _)] = pair else { panic!() };
        assert!(heartbeat * 2 <= *election, "{pair:?}");
    }
    for (heartbeat, election) in PROFILES {
        assert!(heartbeat * 5 <= election && election <= 50_000);
    }
}

fn status(value: &str) -> EtcdClusterStatus {
    EtcdClusterStatus {
        tuning: Field::Known(vec![TuningEntry {
            option: Field::Known(HEARTBEAT_FLAG.into()),
            value: Field::Known(value.to_owned().into()),
            reason: Field::Absent,
        }]),
        ..EtcdClusterStatus::default()
    }
}

fn pod(args: &[&str]) -> Pod {
    serde_json::from_value(json!({"spec": {"containers": [{"name": "etcd", "args": args}]}}))
        .unwrap()
}

#[test]
fn next_profile_is_chosen_once_all_members_use_the_recorded_one() {
    let far = Some(trip(819_200, 1_638_400));
    let (default, second) = (pod(&["--name=a"]), pod(&["--name=b", "--heartbeat-interval=250"]));
    let desired = |status: &EtcdClusterStatus, pods: &[&Pod]| {
        let pods: Vec<Pod> = pods.iter().map(|pod| (*pod).clone()).collect();
        HeartbeatProfile::desired(Some(status), &pods, far).heartbeat()
    };
    assert_eq!(desired(&EtcdClusterStatus::default(), &[&default, &default, &default]), 250);
    let recorded = status("250");
    assert_eq!(
        desired(&recorded, &[&default, &default, &default]),
        250,
        "recorded, and not used by any member yet"
    );
    assert_eq!(desired(&recorded, &[&second, &second, &default]), 250);
    assert_eq!(desired(&recorded, &[&second, &second, &second]), 500);
    assert_eq!(desired(&EtcdClusterStatus::default(), &[&default, &second, &default]), 100);
}

#[test]
fn profile_is_recorded_in_the_status() {
    for profile in HeartbeatProfile::all() {
        assert_eq!(HeartbeatProfile::recorded(&status(&profile.heartbeat().to_string())), profile);
    }
    // Set in the spec, or invalid.
    assert_eq!(HeartbeatProfile::recorded(&status("123")), HeartbeatProfile::ETCD_DEFAULT);
    assert_eq!(HeartbeatProfile::recorded(&status("slow")), HeartbeatProfile::ETCD_DEFAULT);
    assert_eq!(
        HeartbeatProfile::recorded(&EtcdClusterStatus::default()),
        HeartbeatProfile::ETCD_DEFAULT
    );
}
