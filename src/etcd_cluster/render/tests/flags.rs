//! What etcd is told.

use std::collections::BTreeSet;

use super::*;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_version::Release;
use crate::api::etcd_version::policy::LINES;
use crate::api::field::Field;
use crate::api::told::Told;

use crate::etcd_cluster::compose::tests::stock;
use crate::etcd_cluster::pace::Pace;
use crate::etcd_cluster::render::tune::{Found, smallest_disk, tuning};
use crate::etcd_cluster::stock::Stock;

fn flags(said: Value) -> Vec<String> {
    let spec = cluster(said);
    let blueprint = blueprint(&spec);
    let peers = ["main-b", "main-a"].map(|it| (name(it), blueprint.peer_url(&name(it))));
    blueprint.flags(&name("main-a"), &peers).unwrap()
}

fn has(flags: &[String], flag: &str) {
    assert!(flags.iter().any(|it| it == flag), "{flag} is missing: {flags:#?}");
}

fn says_nothing_of(flags: &[String], word: &str) {
    assert!(!flags.iter().any(|it| it.contains(word)), "{word}: {flags:#?}");
}

#[test]
fn a_member_is_told_who_it_is_and_who_the_others_are() {
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
    // The agent says it, at every start.
    says_nothing_of(&flags, "initial-cluster-state");
}

#[test]
fn a_member_that_is_not_among_the_others_is_added_to_them() {
    let spec = cluster(json!({}));
    let blueprint = blueprint(&spec);
    let (own, other) = (name("main-a"), name("main-b"));
    let with =
        [(own.clone(), blueprint.peer_url(&own)), (other.clone(), blueprint.peer_url(&other))];
    let without = [(other.clone(), blueprint.peer_url(&other))];
    assert_eq!(blueprint.flags(&own, &with), blueprint.flags(&own, &without));
}

#[test]
fn each_minor_version_is_told_in_its_own_words_to_check_its_data() {
    let old = flags(json!({"version": "3.5.35"}));
    has(&old, "--experimental-initial-corrupt-check=true");
    has(&old, "--experimental-compact-hash-check-enabled=true");
    says_nothing_of(&old, "feature-gates");
    for version in ["3.6.16", "3.7.3"] {
        let new = flags(json!({"version": version}));
        has(&new, "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true");
        says_nothing_of(&new, "experimental");
    }
}

/// What `etcd --help` names, per release; a story compares it with the real programs.
const KNOWN: [(&str, &str); 3] = [
    ("3.5.35", include_str!("../../../../tests/etcd_flags/3.5.35.txt")),
    ("3.6.16", include_str!("../../../../tests/etcd_flags/3.6.16.txt")),
    ("3.7.3", include_str!("../../../../tests/etcd_flags/3.7.3.txt")),
];

#[test]
fn no_release_is_told_what_it_does_not_know() {
    let newest: Vec<String> = LINES.iter().map(|it| it.newest.to_string()).collect();
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
        let mut told: BTreeSet<String> = all.into_iter().flat_map(flags).collect();
        told.insert("--initial-cluster-state=new".to_owned());
        assert!(told.len() > 25, "{told:?}");
        for flag in told {
            let name = flag.trim_start_matches("--").split('=').next().unwrap();
            assert!(known.lines().any(|it| it == name), "etcd {version} does not know {flag}");
        }
    }
}

#[test]
fn a_version_that_nobody_looked_at_is_not_started() {
    let spec = EtcdCluster { version: Release::new(3, 8, 0), ..cluster(json!({})) };
    let refused = blueprint(&spec).flags(&name("main-a"), &[]).unwrap_err();
    assert_eq!(refused.to_string(), "spec.version: etcd 3.8 is not in this release");
}

#[test]
fn what_the_user_chose_is_what_runs() {
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
fn the_data_fits_on_its_disk_twice_beside_the_log() {
    const MEBI: u64 = 1 << 20;
    for (disk, quota) in
        [("300Mi", 54), ("1Gi", 320), ("10Gi", 4928), ("17Gi", 8192), ("1Ti", 8192)]
    {
        let flags = flags(json!({"storage": {"size": disk}}));
        has(&flags, &format!("--quota-backend-bytes={}", quota * MEBI));
    }
    has(&flags(json!({"storage": {"size": "300Mi"}})), "--max-wals=2");
    says_nothing_of(&flags(json!({"storage": {"size": "1Gi"}})), "max-wals");
}

#[test]
fn an_election_is_never_closer_than_five_heartbeats() {
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
    for word in ["https", "tls", "cert", "-ca-"] {
        says_nothing_of(&both, word);
    }
    let one = flags(json!({"tls": {"client": off}}));
    has(&one, "--listen-client-urls=http://0.0.0.0:2379");
    has(&one, "--peer-client-cert-auth=true");
    says_nothing_of(&one, "--client-cert-auth");
}

#[test]
fn while_it_is_switched_clients_are_taken_in_both_ways_and_members_have_certificates() {
    use crate::etcd_cluster::doors::found::{Doors, taken_by, way_to};
    use crate::etcd_cluster::doors::{Open, Scheme};
    let off = json!({"source": "Disabled"});
    let (open, closed) =
        (cluster(json!({"tls": {"client": off, "peer": off}})), cluster(json!({})));
    let plain = blueprint(&open).pod(&name("main-a"), Told::Return, &[], "").unwrap();
    assert_eq!((taken_by(&plain), way_to(&plain)), (Some(Open::Only(Scheme::Http)), Scheme::Http));
    let member = blueprint(&open).member(&name("main-a"), Intent::Join, true);
    let stock = Stock {
        cluster: serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main"}, "spec": {},
        }))
        .unwrap(),
        members: vec![member],
        pods: vec![plain],
        claims: Vec::new(),
        services: Vec::new(),
        budgets: Vec::new(),
        predecessors: Vec::new(),
    };
    let doors = Doors::of(&closed, &stock, jiff::Timestamp::UNIX_EPOCH);
    let switching = Blueprint { doors: Some(&doors), ..blueprint(&closed) };
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
    let both = switching.pod(&name("main-a"), Told::Return, &[], "").unwrap();
    assert_eq!((taken_by(&both), way_to(&both)), (Some(Open::Both), Scheme::Https));
    assert_eq!(switching.client_url(&name("main-a")), "http://main-a.space.svc:2379");
    // One that comes now cannot be called by those who have no certificates.
    assert_eq!(switching.peer_url(&name("main-z")), "http://main-z.space.svc:2380");
}

#[test]
fn certificates_from_elsewhere_are_where_our_own_would_be() {
    let other = json!({"source": "Secret", "secretRef": {"name": "mine"}});
    assert_eq!(flags(json!({"tls": {"peer": other, "client": other}})), flags(json!({})));
}

#[test]
fn where_others_sign_for_members_these_ask_each_other_for_the_name_of_the_cluster() {
    let asks = "--peer-cert-allowed-hostname=main.space.svc";
    for version in ["3.5.35", "3.6.16", "3.7.3"] {
        let spec = cluster(json!({"version": version}));
        let named = Blueprint { named: true, ..blueprint(&spec) };
        has(&named.flags(&name("main-a"), &[]).unwrap(), asks);
        let ours = blueprint(&spec).flags(&name("main-a"), &[]).unwrap();
        says_nothing_of(&ours, "allowed-hostname");
    }
    let open = cluster(json!({"tls": {"peer": {"source": "Disabled"}}}));
    let named = Blueprint { named: true, ..blueprint(&open) };
    says_nothing_of(&named.flags(&name("main-a"), &[]).unwrap(), "allowed-hostname");
}

#[test]
fn a_pace_that_was_measured_is_told_and_kept_and_etcds_own_needs_no_flag() {
    let spec = cluster(json!({}));
    let paced = |pace: Pace| {
        let found = Found { pace, disk: None };
        let flags = Blueprint { found, ..blueprint(&spec) }.flags(&name("main-a"), &[]).unwrap();
        flags.into_iter().filter(|it| it.contains("heartbeat") || it.contains("election")).collect()
    };
    for pace in Pace::all() {
        let flags: Vec<String> = paced(pace);
        let expected = [
            format!("--heartbeat-interval={}", pace.heartbeat()),
            format!("--election-timeout={}", pace.election()),
        ];
        assert_eq!(flags, if pace.is_own() { &[][..] } else { &expected[..] });
        let status = EtcdClusterStatus {
            tuning: Field::Known(tuning(&spec, Found { pace, disk: None })),
            ..EtcdClusterStatus::default()
        };
        assert_eq!(Pace::told(&status), pace, "what is told is what is kept");
    }
}

#[test]
fn a_quota_fits_on_the_disk_that_is_there_and_not_on_the_one_that_was_asked_for() {
    let spec = cluster(json!({"storage": {"size": "20Gi"}}));
    let quota = |disk| {
        let found = Found { disk, ..Found::default() };
        let flags = Blueprint { found, ..blueprint(&spec) }.flags(&name("main-a"), &[]).unwrap();
        let told = flags.iter().find_map(|it| it.strip_prefix("--quota-backend-bytes="));
        told.unwrap().parse::<u64>().unwrap() >> 20
    };
    assert_eq!(quota(None), 8192);
    assert_eq!(quota(Some(100 << 30)), 8192, "there may be more than was asked for");
    assert_eq!(quota(Some(2 << 30)), 832, "it has not grown");
    let member = |name: &str, intent: &str| json!({"metadata": {"name": name}, "spec": {"clusterName": "main", "name": name, "peerURL": "", "intent": intent}});
    let claim = |name: &str, size: &str| json!({"metadata": {"name": name}, "status": {"capacity": {"storage": size}}});
    let stock = stock(
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
        smallest_disk(&stock),
        Some(2 << 30),
        "who goes does not count, nor who has none yet"
    );
}

#[test]
fn what_the_operator_chose_is_told_with_its_reason_and_nothing_else_is() {
    let told = |said| serde_json::to_value(tuning(&cluster(said), Found::default())).unwrap();
    let options = |told: &Value| -> Vec<String> {
        let all = told.as_array().unwrap().iter();
        all.map(|it| it["option"].as_str().unwrap().to_owned()).collect()
    };
    let silent = told(json!({}));
    assert_eq!(
        options(&silent),
        [
            "quota-backend-bytes",
            "auto-compaction-retention",
            "snapshot-count",
            "feature-gates",
            "heartbeat-interval",
            "election-timeout",
        ]
    );
    for tuned in silent.as_array().unwrap() {
        assert!(tuned["why"].as_str().unwrap().len() > 10, "{tuned}");
    }
    let said = told(json!({
        "options": {
            "quota": "1Gi", "autoCompaction": {"retentionSeconds": 90}, "snapshotCount": 5000,
            "heartbeatMilliseconds": 200, "electionMilliseconds": 2000,
        },
        "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
    }));
    assert_eq!(options(&said), ["feature-gates", "GOMAXPROCS", "GOMEMLIMIT"]);
}
