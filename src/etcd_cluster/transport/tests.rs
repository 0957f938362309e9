//! Tests of how schemes are switched.

use jiff::Timestamp;
use serde_json::json;

use super::observed::Transport;
use super::*;
use crate::etcd_cluster::render::tests::cluster;
use crate::etcd_cluster::state::build::tests::objects;
use ClientListeners::{Both, Only};
use Scheme::{Http, Https};

#[test]
fn new_cluster_uses_the_desired_scheme() {
    for desired in [Http, Https] {
        assert_eq!(initial_scheme(desired, &[]), desired);
        assert_eq!(
            listeners(desired, desired, true, &[]),
            Only(desired),
            "no client uses another scheme"
        );
    }
}

#[test]
fn old_scheme_is_advertised_until_all_members_accept_the_new_one() {
    for desired in [Http, Https] {
        let old = desired.other();
        assert_eq!(initial_scheme(desired, &[Only(old), Both]), old);
        assert_eq!(listeners(desired, old, false, &[Only(old); 3]), Both);
        assert_eq!(next_scheme(desired, old, true, &[Both, Both, Only(old)]), old);
        assert_eq!(next_scheme(desired, old, false, &[Both; 3]), old, "a member is unhealthy");
        assert_eq!(next_scheme(desired, old, true, &[Both; 3]), desired);
    }
}

#[test]
fn clients_have_time_to_follow_before_the_old_scheme_is_closed() {
    for desired in [Http, Https] {
        assert_eq!(listeners(desired, desired, true, &[Both; 3]), Both);
        assert_eq!(listeners(desired, desired, false, &[Both; 3]), Only(desired));
        assert_eq!(listeners(desired, desired, false, &[Only(desired), Both]), Only(desired));
    }
}

#[test]
fn switch_can_be_reverted_at_any_time() {
    // Some pods accept both by now; the old scheme is still advertised.
    assert_eq!(listeners(Https, Https, false, &[Both, Only(Https)]), Only(Https));
    // The new scheme is advertised and reverted: no client is cut off either.
    assert_eq!(listeners(Http, Https, true, &[Both, Both]), Both);
    assert_eq!(listeners(Http, Https, false, &[Both, Only(Https)]), Both);
}

#[test]
fn members_have_peer_certs_before_the_first_switch_and_until_after_the_last() {
    assert!(needs_peer_certs(Https, [Http, Http]));
    assert!(needs_peer_certs(Http, [Http, Https]));
    assert!(!needs_peer_certs(Http, [Http, Http]));
    assert_eq!(new_member_scheme(Https, false), Http);
    assert_eq!(new_member_scheme(Https, true), Https);
    assert_eq!(new_member_scheme(Http, true), Http);
}

#[test]
fn scheme_is_parsed_with_and_without_a_url() {
    assert_eq!(Scheme::parse("https://main-a.space.svc:2380"), Some(Https));
    assert_eq!(Scheme::parse("http"), Some(Http));
    assert_eq!(Scheme::parse("unix://x"), None);
}

#[test]
fn overlap_starts_when_the_client_secret_is_written() {
    let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    let spec = cluster(json!({"tls": {"client": {"source": "Managed"}}}));
    let pod = |urls: &str| {
        let args = [format!("--listen-client-urls={urls}")];
        json!({"metadata": {"name": "main-a"}, "spec": {"containers": [{"name": "etcd", "args": args}]}})
    };
    let overlap = |urls: &str, since: &str| {
        let mut objects = objects(Vec::new(), vec![pod(urls)], Vec::new());
        let clients = json!({"clientTLS": {"scheme": "https", "lastTransitionTime": since}});
        objects.cluster.status = Some(serde_json::from_value(clients).unwrap());
        let transport = Transport::observe(&spec, &objects, now);
        let late = transport.clone().restart_overlap(&objects, now);
        (
            transport.client_listeners,
            late.client_listeners,
            late.overlap_end.map(|end| end.to_string()),
        )
    };
    let both = "https://0.0.0.0:2379,http://0.0.0.0:2379";
    let long_ago = "2026-11-16T11:00:00Z";
    let end = Some("2026-11-16T12:02:00Z".to_owned());
    assert_eq!(overlap(both, long_ago), (Only(Https), Both, end));
    let one = "https://0.0.0.0:2379";
    assert_eq!(
        overlap(one, long_ago),
        (Only(Https), Only(Https), None),
        "no client uses the old scheme"
    );
}
