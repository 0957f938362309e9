//! Tests of the pod of a member.

use super::*;
use crate::api::start_mode::StartMode;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

fn rendered(spec: Value, start_mode: StartMode) -> Pod {
    let spec = cluster(spec);
    blueprint(&spec).pod(&name("main-a"), start_mode, &[], "uid-of-main-a").unwrap()
}

fn spec(spec: Value) -> PodSpec {
    rendered(spec, StartMode::Rejoin).spec.unwrap()
}

fn containers(spec: &PodSpec) -> Vec<&Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers).collect()
}

#[test]
fn pod_meets_the_restricted_pod_security_standard() {
    let spec = spec(json!({}));
    let pod = spec.security_context.as_ref().unwrap();
    assert_eq!((pod.run_as_non_root, pod.run_as_user), (Some(true), Some(65532)));
    assert_eq!(pod.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault");
    assert_eq!(containers(&spec).len(), 2);
    for container in containers(&spec) {
        let own = container.security_context.as_ref().unwrap();
        assert_eq!(own.allow_privilege_escalation, Some(false));
        assert_eq!(own.read_only_root_filesystem, Some(true));
        assert_eq!(own.capabilities.as_ref().unwrap().drop.as_ref().unwrap(), &["ALL"]);
    }
    assert_eq!(spec.automount_service_account_token, Some(false));
    assert_eq!((spec.host_network, spec.host_pid, spec.host_ipc), (None, None, None));
}

#[test]
fn only_a_first_pod_has_a_scheduling_gate() {
    for (start_mode, waits) in
        [(StartMode::Bootstrap, true), (StartMode::Join, true), (StartMode::Rejoin, false)]
    {
        let gates = rendered(json!({}), start_mode).spec.unwrap().scheduling_gates;
        let names: Vec<String> = gates.into_iter().flatten().map(|gate| gate.name).collect();
        let expected: &[&str] = if waits { &[names::SCHEDULING_GATE] } else { &[] };
        assert_eq!(names, expected, "{start_mode}");
    }
}

#[test]
fn etcd_is_started_by_the_agent() {
    let spec =
        rendered(json!({"image": {"repository": "here/etcd"}}), StartMode::Join).spec.unwrap();
    let [etcd] = spec.containers.as_slice() else { panic!("more than etcd") };
    assert_eq!(etcd.image.as_deref(), Some("here/etcd:v3.6.16"));
    let line = etcd.command.as_ref().unwrap().join(" ");
    let expected = "/quorate/quorate agent start --start-mode join --data /var/lib/etcd/data --pod \
                    /var/lib/quorate -- /usr/local/bin/etcd";
    assert_eq!(line, expected);
    assert_eq!(etcd.args.as_ref().unwrap()[0], "--name=main-a");
    let [agent] = spec.init_containers.unwrap().try_into().unwrap();
    assert_eq!(agent.image.as_deref(), Some("quorate/quorate:v1"));
    assert_eq!(agent.args.unwrap().join(" "), "agent install --to /quorate");
}

#[test]
fn etcd_cannot_write_to_its_binary_and_certificates() {
    let spec = spec(json!({}));
    let mounts = spec.containers[0].volume_mounts.as_ref().unwrap();
    let writable: Vec<&str> = mounts
        .iter()
        .filter(|mount| mount.read_only != Some(true))
        .map(|mount| mount.mount_path.as_str())
        .collect();
    assert_eq!(writable, ["/var/lib/etcd", "/var/lib/quorate"]);
    assert!(
        mounts.iter().all(|mount| mount.sub_path.is_none()),
        "the kubelet never updates a subPath"
    );
    for mount in mounts {
        let volumes = spec.volumes.as_ref().unwrap();
        assert!(volumes.iter().any(|volume| volume.name == mount.name), "{}", mount.name);
    }
}

#[test]
fn user_labels_never_override_operator_labels() {
    let pod = rendered(
        json!({"podMetadata": {
            "labels": {
                "team": "a", "app": "mine", names::CLUSTER_LABEL: "other", names::ROLE_LABEL: "voter",
            },
            "annotations": {"note": "b"},
        }}),
        StartMode::Rejoin,
    );
    let labels = pod.metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels["app"].as_str()), ("a", "etcd"));
    assert_eq!(labels[names::CLUSTER_LABEL], "main");
    assert_eq!(labels.get(names::ROLE_LABEL), None, "a user label makes no voter");
    assert_eq!(pod.metadata.annotations.unwrap()["note"], "b");
}

#[test]
fn pod_has_the_name_of_its_member_and_is_owned_by_it() {
    let pod = rendered(json!({"deletionPolicy": "Disconnect"}), StartMode::Bootstrap);
    assert_eq!(pod.metadata.name.as_deref(), Some("main-a"));
    let owners = pod.metadata.owner_references.unwrap();
    assert_eq!((owners[0].kind.as_str(), owners[0].uid.as_str()), ("EtcdMember", "uid-of-main-a"));
    let spec = pod.spec.unwrap();
    assert_eq!(
        (spec.hostname.as_deref(), spec.subdomain.as_deref()),
        (Some("main-a"), Some("main"))
    );
}

#[test]
fn data_in_memory_is_an_empty_dir_with_a_limit() {
    let data = |fields| {
        let mut volumes = spec(fields).volumes.unwrap().into_iter();
        volumes.find(|volume| volume.name == "data").unwrap()
    };
    let memory = data(json!({"storage": {"medium": "Memory", "size": "1Gi"}})).empty_dir.unwrap();
    assert_eq!(memory.medium.as_deref(), Some("Memory"));
    assert_eq!(memory.size_limit.unwrap().0, "1Gi");
    let disk = data(json!({}));
    assert_eq!(disk.persistent_volume_claim.unwrap().claim_name, "main-a");
}

#[test]
fn without_tls_no_secret_is_mounted() {
    let off = json!({"source": "Disabled"});
    for (tls, expected) in [
        (json!({}), true),
        (json!({"client": off}), true),
        (json!({"client": off, "peer": off}), false),
    ] {
        let volumes = spec(json!({"tls": tls})).volumes.unwrap();
        assert_eq!(volumes.iter().any(|volume| volume.secret.is_some()), expected, "{tls}");
    }
}

#[test]
fn unneeded_keys_are_not_mounted() {
    let off = json!({"source": "Disabled"});
    for (tls, expected) in [
        (json!({}), None),
        (json!({"client": off}), Some(vec!["peer.crt", "peer.key", "peer-ca.crt"])),
        (json!({"peer": off}), Some(vec!["server.crt", "server.key", "client-ca.crt"])),
    ] {
        let volumes = spec(json!({"tls": tls})).volumes.unwrap();
        let secret = volumes.into_iter().find_map(|volume| volume.secret).unwrap();
        let keys = secret.items.map(|items| items.into_iter().map(|item| item.key).collect());
        let expected: Option<Vec<String>> =
            expected.map(|keys| keys.iter().map(ToString::to_string).collect());
        assert_eq!(keys, expected, "{tls}");
    }
}

#[test]
fn members_prefer_different_nodes_unless_the_spec_sets_affinity() {
    let unset = spec(json!({}));
    assert!(unset.affinity.unwrap().pod_anti_affinity.is_some());
    assert_eq!(unset.topology_spread_constraints.unwrap().len(), 1);
    let set = spec(json!({"placement": {"affinity": {}}}));
    assert_eq!(set.affinity, Some(k8s_openapi::api::core::v1::Affinity::default()));
    assert_eq!(set.topology_spread_constraints, None);
}

#[test]
fn go_env_follows_the_limits() {
    let variables = |fields| {
        let env = spec(fields).containers.remove(0).env.unwrap().into_iter();
        env.map(|variable| (variable.name, variable.value.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(variables(json!({})), []);
    let limited = |medium: &str, cpu: &str| {
        variables(json!({
            "resources": {"limits": {"cpu": cpu, "memory": "1000M"}},
            "storage": {"medium": medium, "size": "400M"},
        }))
    };
    let pair = |count: &str, bytes: &str| {
        vec![
            ("GOMAXPROCS".to_owned(), count.to_owned()),
            ("GOMEMLIMIT".to_owned(), bytes.to_owned()),
        ]
    };
    assert_eq!(limited("Disk", "1500m"), pair("2", "900000000"));
    assert_eq!(limited("Disk", "10m"), pair("1", "900000000"));
    assert_eq!(limited("Memory", "2"), pair("2", "540000000"), "data in memory counts, too");
}

#[test]
fn pod_can_have_qos_class_guaranteed() {
    let amounts = json!({"cpu": "10m", "memory": "64Mi"});
    let spec = spec(json!({"resources": {"requests": amounts, "limits": amounts}}));
    for container in containers(&spec) {
        let resources = container.resources.as_ref().unwrap();
        assert_eq!(json!(resources.requests), amounts, "{} reserves more", container.name);
        assert_eq!(json!(resources.limits), amounts, "{} is not guaranteed", container.name);
    }
}
