//! How a door is opened and closed again, one sentence each.

use jiff::Timestamp;
use serde_json::json;

use super::observed::Transport;
use super::*;
use crate::etcd_cluster::render::tests::cluster;
use crate::etcd_cluster::state::build::tests::objects;
use ClientListeners::{Both, Only};
use Scheme::{Http, Https};

#[test]
fn a_new_cluster_is_open_as_it_is_wanted() {
    for wanted in [Http, Https] {
        assert_eq!(initial_scheme(wanted, &[]), wanted);
        assert_eq!(
            listeners(wanted, wanted, true, &[]),
            Only(wanted),
            "nobody has come in another way"
        );
    }
}

#[test]
fn what_runs_in_another_way_is_told_until_all_can_follow() {
    for wanted in [Http, Https] {
        let old = wanted.other();
        assert_eq!(initial_scheme(wanted, &[Only(old), Both]), old);
        assert_eq!(listeners(wanted, old, false, &[Only(old); 3]), Both);
        assert_eq!(next_scheme(wanted, old, true, &[Both, Both, Only(old)]), old);
        assert_eq!(next_scheme(wanted, old, false, &[Both; 3]), old, "somebody is not well");
        assert_eq!(next_scheme(wanted, old, true, &[Both; 3]), wanted);
    }
}

#[test]
fn clients_have_time_to_follow_and_then_the_old_way_ends() {
    for wanted in [Http, Https] {
        assert_eq!(listeners(wanted, wanted, true, &[Both; 3]), Both);
        assert_eq!(listeners(wanted, wanted, false, &[Both; 3]), Only(wanted));
        assert_eq!(listeners(wanted, wanted, false, &[Only(wanted), Both]), Only(wanted));
    }
}

#[test]
fn a_change_that_is_taken_back_before_anybody_was_told_leaves_nothing_behind() {
    // Some take both by now; applications were told of the old way long ago.
    assert_eq!(listeners(Https, Https, false, &[Both, Only(Https)]), Only(Https));
    // Applications were told, and shall go back: nobody is cut off on that way, either.
    assert_eq!(listeners(Http, Https, true, &[Both, Both]), Both);
    assert_eq!(listeners(Http, Https, false, &[Both, Only(Https)]), Both);
}

#[test]
fn members_have_certificates_before_the_first_is_called_so_and_until_the_last_is_not() {
    assert!(needs_peer_certs(Https, [Http, Http]));
    assert!(needs_peer_certs(Http, [Http, Https]));
    assert!(!needs_peer_certs(Http, [Http, Http]));
    assert_eq!(new_member_scheme(Https, false), Http);
    assert_eq!(new_member_scheme(Https, true), Https);
    assert_eq!(new_member_scheme(Http, true), Http);
}

#[test]
fn a_scheme_is_read_from_a_url_and_from_a_word() {
    assert_eq!(Scheme::parse("https://main-a.space.svc:2380"), Some(Https));
    assert_eq!(Scheme::parse("http"), Some(Http));
    assert_eq!(Scheme::parse("unix://x"), None);
}

#[test]
fn the_time_of_clients_begins_when_they_were_told_and_not_when_that_was_decided() {
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
    let until = Some("2026-11-16T12:02:00Z".to_owned());
    assert_eq!(overlap(both, long_ago), (Only(Https), Both, until));
    let one = "https://0.0.0.0:2379";
    assert_eq!(
        overlap(one, long_ago),
        (Only(Https), Only(Https), None),
        "nobody comes in the old way"
    );
}
