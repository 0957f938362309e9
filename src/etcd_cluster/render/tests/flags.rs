//! Tests of the etcd flags.

use std::collections::BTreeSet;

use super::*;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_version::Release;
use crate::api::etcd_version::policy::SUPPORTED_MINORS;
use crate::api::field::Field;
use crate::api::start_mode::StartMode;

use crate::etcd_cluster::heartbeat::HeartbeatProfile;
use crate::etcd_cluster::observe::objects::ClusterObjects;
use crate::etcd_cluster::render::options::{Measured, smallest_volume, tuning_status};
use crate::etcd_cluster::state::build::tests::objects;

fn flags(spec: Value) -> Vec<String> {
    let spec = cluster(spec);
    let blueprint = blueprint(&spec);
    let peers = ["main-b", "main-a"].map(|peer| (name(peer), blueprint.peer_url(&name(peer))));
    blueprint.flags(&name("main-a"), &peers).unwrap()
}

fn has(flags: &[String], flag: &str) {
    assert!(flags.iter().any(|present| present == flag), "{flag} is missing: {flags:#?}");
}

fn lacks(flags: &[String], text: &str) {
    assert!(!flags.iter().any(|flag| flag.contains(text)), "{text}: {flags:#?}");
}

#[test]
fn flags_name_the_member_and_its_peers() {
    let flags = flags(json!({}));
    let all = "main-a=https://main-a.space.svc:2380,main-b=https://main-b.space.svc:2380";
    for flag in [
        "--name=main-a",
        "--data-dir=/var/lib/etcd/data",
        "--listen-client-urls=https://0.0.0.0:2379",
        "--advertise-client-urls=https://main-a.space.svc:2379",
        "--initial-advertise-peer-urls=https://main-a.space.svc:2380",
        "--listen-metrics-urls=http://0.0.0.0:2381",
        &format!("--initial-cluster={all}"),
        &format!("--initial-cluster-token=space-main-{UID}"),
        "--client-cert-auth=true",
        "--peer-client-cert-auth=true",
        "--trusted-ca-file=/etc/etcd/tls/client-ca.crt",
        "--peer-trusted-ca-file=/etc/etcd/tls/peer-ca.crt",
    ] {
        has(&flags, flag);
    }
    // The agent adds it at every start.
    lacks(&flags, "initial-cluster-state");
}

#[test]
fn initial_cluster_always_contains_the_member_itself() {
    let spec = cluster(json!({}));
    let blueprint = blueprint(&spec);
    let (own, other) = (name("main-a"), name("main-b"));
    let with =
        [(own.clone(), blueprint.peer_url(&own)), (other.clone(), blueprint.peer_url(&other))];
    let without = [(other.clone(), blueprint.peer_url(&other))];
    assert_eq!(blueprint.flags(&own, &with), blueprint.flags(&own, &without));
}

#[test]
fn corruption_check_flags_fit_the_minor_version() {
    let old = flags(json!({"version": "3.5.35"}));
    has(&old, "--experimental-initial-corrupt-check=true");
    has(&old, "--experimental-compact-hash-check-enabled=true");
    lacks(&old, "feature-gates");
    for version in ["3.6.16", "3.7.3"] {
        let new = flags(json!({"version": version}));
        has(&new, "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true");
        lacks(&new, "experimental");
    }
}

/// What `etcd --help` names, per release; an end-to-end test compares it with the real binaries.
const KNOWN: [(&str, &str); 3] = [
    ("3.5.35", include_str!("../../../../tests/etcd_flags/3.5.35.txt")),
    ("3.6.16", include_str!("../../../../tests/etcd_flags/3.6.16.txt")),
    ("3.7.3", include_str!("../../../../tests/etcd_flags/3.7.3.txt")),
];

#[test]
fn no_release_gets_an_unknown_flag() {
    let newest: Vec<String> = SUPPORTED_MINORS.iter().map(|line| line.newest.to_string()).collect();
    assert_eq!(
        newest,
        KNOWN.map(|(version, _)| version),
        "record the flags of each newest release"
    );
    let off = json!({"source": "Disabled"});
    for (version, known) in KNOWN {
        let all = [
            json!({"version": version, "storage": {"size": "300Mi"}}),
            json!({"version": version, "tls": {"client": off, "peer": off}}),
            json!({"version": version, "options": {
                "quota": "1Gi", "autoCompaction": {"mode": "Revision", "retentionRevisions": 1000},
                "snapshotCount": 5000, "heartbeatMilliseconds": 200, "electionMilliseconds": 2000,
            }}),
        ];
        let mut all_flags: BTreeSet<String> = all.into_iter().flat_map(flags).collect();
        all_flags.insert("--initial-cluster-state=new".to_owned());
        assert!(all_flags.len() > 25, "{all_flags:?}");
        for flag in all_flags {
            let name = flag.trim_start_matches("--").split('=').next().unwrap();
            assert!(known.lines().any(|line| line == name), "etcd {version} does not know {flag}");
        }
    }
}

#[test]
fn unsupported_version_is_not_rendered() {
    let spec = EtcdCluster { version: Release::new(3, 8, 0), ..cluster(json!({})) };
    let error = blueprint(&spec).flags(&name("main-a"), &[]).unwrap_err();
    assert_eq!(error.to_string(), "spec.version: etcd 3.8 is not supported in this release");
}

#[test]
fn options_of_the_spec_become_flags() {
    let flags = flags(json!({"options": {
        "quota": "1Gi", "autoCompaction": {"mode": "Revision", "retentionRevisions": 1000},
        "snapshotCount": 5000, "heartbeatMilliseconds": 200, "electionMilliseconds": 2000,
    }}));
    for flag in [
        "--quota-backend-bytes=1073741824",
        "--auto-compaction-mode=revision",
        "--auto-compaction-retention=1000",
        "--snapshot-count=5000",
        "--heartbeat-interval=200",
        "--election-timeout=2000",
    ] {
        has(&flags, flag);
    }
    has(
        &self::flags(json!({"options": {"autoCompaction": {"retentionSeconds": 90}}})),
        "--auto-compaction-retention=90s",
    );
}

#[test]
fn derived_quota_fits_on_the_volume_twice_beside_the_wal() {
    const MEBI: u64 = 1 << 20;
    for (disk, quota) in
        [("300Mi", 54), ("1Gi", 320), ("10Gi", 4928), ("17Gi", 8192), ("1Ti", 8192)]
    {
        let flags = flags(json!({"storage": {"size": disk}}));
        has(&flags, &format!("--quota-backend-bytes={}", quota * MEBI));
    }
    has(&flags(json!({"storage": {"size": "300Mi"}})), "--max-wals=2");
    lacks(&flags(json!({"storage": {"size": "1Gi"}})), "max-wals");
}

#[test]
fn election_timeout_is_at_least_five_heartbeats() {
    for (heartbeat, election) in [(10, 1000), (150, 1500), (10_000, 50_000)] {
        let flags = flags(json!({"options": {"heartbeatMilliseconds": heartbeat}}));
        has(&flags, &format!("--election-timeout={election}"));
    }
    for (election, heartbeat) in [(50, 5), (1000, 100), (50_000, 100)] {
        let flags = flags(json!({"options": {"electionMilliseconds": election}}));
        has(&flags, &format!("--heartbeat-interval={heartbeat}"));
    }
}

#[test]
fn connections_in_the_clear_have_no_certificates() {
    let off = json!({"source": "Disabled"});
    let both = flags(json!({"tls": {"client": off, "peer": off}}));
    for text in ["https", "tls", "cert", "-ca-"] {
        lacks(&both, text);
    }
    let one = flags(json!({"tls": {"client": off}}));
    has(&one, "--listen-client-urls=http://0.0.0.0:2379");
    has(&one, "--peer-client-cert-auth=true");
    lacks(&one, "--client-cert-auth");
}

#[test]
fn tls_transition_accepts_both_client_schemes_and_mounts_peer_certs() {
    use crate::etcd_cluster::transport::observed::{Transport, listeners_of, operator_scheme};
    use crate::etcd_cluster::transport::{ClientListeners, Scheme};
    let off = json!({"source": "Disabled"});
    let (open, closed) =
        (cluster(json!({"tls": {"client": off, "peer": off}})), cluster(json!({})));
    let plain = blueprint(&open).pod(&name("main-a"), StartMode::Rejoin, &[], "").unwrap();
    assert_eq!(
        (listeners_of(&plain), operator_scheme(&plain)),
        (Some(ClientListeners::Only(Scheme::Http)), Scheme::Http)
    );
    let member = blueprint(&open).member(&name("main-a"), Intent::Join, true);
    let objects = ClusterObjects {
        cluster: serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main"}, "spec": {},
        }))
        .unwrap(),
        members: vec![member],
        pods: vec![plain],
        pvcs: Vec::new(),
        services: Vec::new(),
        pdbs: Vec::new(),
        previous_cluster_objects: Vec::new(),
    };
    let transport = Transport::observe(&closed, &objects, jiff::Timestamp::UNIX_EPOCH);
    let switching = Blueprint { transport: Some(&transport), ..blueprint(&closed) };
    let flags = switching.flags(&name("main-a"), &[]).unwrap();
    let hosts = "http://main-a.space.svc:2379,https://main-a.space.svc:2379";
    for flag in [
        "--listen-client-urls=http://0.0.0.0:2379,https://0.0.0.0:2379",
        &format!("--advertise-client-urls={hosts}"),
        "--listen-peer-urls=http://0.0.0.0:2380",
        "--initial-advertise-peer-urls=http://main-a.space.svc:2380",
        "--peer-cert-file=/etc/etcd/tls/peer.crt",
        "--cert-file=/etc/etcd/tls/server.crt",
    ] {
        has(&flags, flag);
    }
    let both = switching.pod(&name("main-a"), StartMode::Rejoin, &[], "").unwrap();
    assert_eq!(
        (listeners_of(&both), operator_scheme(&both)),
        (Some(ClientListeners::Both), Scheme::Https)
    );
    assert_eq!(switching.client_url(&name("main-a")), "http://main-a.space.svc:2379");
    // Members without certificates cannot dial a new member with TLS.
    assert_eq!(switching.peer_url(&name("main-z")), "http://main-z.space.svc:2380");
}

#[test]
fn external_certificates_have_the_same_paths() {
    let other = json!({"source": "Secret", "secretRef": {"name": "mine"}});
    assert_eq!(flags(json!({"tls": {"peer": other, "client": other}})), flags(json!({})));
}

#[test]
fn external_peer_cas_require_the_cluster_name() {
    let required = "--peer-cert-allowed-hostname=main.space.svc";
    for version in ["3.5.35", "3.6.16", "3.7.3"] {
        let spec = cluster(json!({"version": version}));
        let named = Blueprint { requires_cluster_name: true, ..blueprint(&spec) };
        has(&named.flags(&name("main-a"), &[]).unwrap(), required);
        let ours = blueprint(&spec).flags(&name("main-a"), &[]).unwrap();
        lacks(&ours, "allowed-hostname");
    }
    let open = cluster(json!({"tls": {"peer": {"source": "Disabled"}}}));
    let named = Blueprint { requires_cluster_name: true, ..blueprint(&open) };
    lacks(&named.flags(&name("main-a"), &[]).unwrap(), "allowed-hostname");
}

#[test]
fn measured_heartbeat_profile_is_reported_and_rendered_and_the_default_needs_no_flag() {
    let spec = cluster(json!({}));
    let paced = |pace: HeartbeatProfile| {
        let measured = Measured { heartbeat: pace, smallest_volume: None };
        let flags = Blueprint { measured, ..blueprint(&spec) }.flags(&name("main-a"), &[]).unwrap();
        flags
            .into_iter()
            .filter(|flag| flag.contains("heartbeat") || flag.contains("election"))
            .collect()
    };
    for pace in HeartbeatProfile::all() {
        let flags: Vec<String> = paced(pace);
        let expected = [
            format!("--heartbeat-interval={}", pace.heartbeat()),
            format!("--election-timeout={}", pace.election()),
        ];
        assert_eq!(flags, if pace.is_default() { &[][..] } else { &expected[..] });
        let status = EtcdClusterStatus {
            tuning: Field::Known(tuning_status(
                &spec,
                Measured { heartbeat: pace, smallest_volume: None },
            )),
            ..EtcdClusterStatus::default()
        };
        assert_eq!(HeartbeatProfile::recorded(&status), pace, "the reported profile is used again");
    }
}

#[test]
fn derived_quota_fits_on_the_smallest_existing_volume() {
    let spec = cluster(json!({"storage": {"size": "20Gi"}}));
    let quota = |disk| {
        let measured = Measured { smallest_volume: disk, ..Measured::default() };
        let flags = Blueprint { measured, ..blueprint(&spec) }.flags(&name("main-a"), &[]).unwrap();
        let quota = flags.iter().find_map(|flag| flag.strip_prefix("--quota-backend-bytes="));
        quota.unwrap().parse::<u64>().unwrap() >> 20
    };
    assert_eq!(quota(None), 8192);
    assert_eq!(quota(Some(100 << 30)), 8192, "capacity may exceed the request");
    assert_eq!(quota(Some(2 << 30)), 832, "not resized yet");
    let member = |name: &str, intent: &str| json!({"metadata": {"name": name}, "spec": {"clusterName": "main", "name": name, "peerURL": "", "intent": intent}});
    let claim = |name: &str, size: &str| json!({"metadata": {"name": name}, "status": {"capacity": {"storage": size}}});
    let objects = objects(
        vec![member("a", "Join"), member("b", "Join"), member("c", "Leave"), member("d", "Join")],
        Vec::new(),
        vec![
            claim("a", "20Gi"),
            claim("b", "2Gi"),
            claim("c", "1Gi"),
            json!({"metadata": {"name": "d"}}),
        ],
    );
    assert_eq!(
        smallest_volume(&objects),
        Some(2 << 30),
        "leaving members and PVCs without capacity do not count"
    );
}

#[test]
fn only_derived_options_are_reported_each_with_a_reason() {
    let reported =
        |spec| serde_json::to_value(tuning_status(&cluster(spec), Measured::default())).unwrap();
    let options = |reported: &Value| -> Vec<String> {
        let all = reported.as_array().unwrap().iter();
        all.map(|entry| entry["option"].as_str().unwrap().to_owned()).collect()
    };
    let unset = reported(json!({}));
    assert_eq!(
        options(&unset),
        [
            "quota-backend-bytes",
            "auto-compaction-retention",
            "snapshot-count",
            "feature-gates",
            "heartbeat-interval",
            "election-timeout",
        ]
    );
    for tuned in unset.as_array().unwrap() {
        assert!(tuned["reason"].as_str().unwrap().len() > 10, "{tuned}");
    }
    let set = reported(json!({
        "options": {
            "quota": "1Gi", "autoCompaction": {"retentionSeconds": 90}, "snapshotCount": 5000,
            "heartbeatMilliseconds": 200, "electionMilliseconds": 2000,
        },
        "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
    }));
    assert_eq!(options(&set), ["feature-gates", "GOMAXPROCS", "GOMEMLIMIT"]);
}
