//! What a member's pod is.

use super::*;
use crate::api::told::Told;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

fn rendered(said: Value, told: Told) -> Pod {
    let spec = cluster(said);
    blueprint(&spec).pod(&name("main-a"), told, &[], "uid-of-main-a").unwrap()
}

fn spec(said: Value) -> PodSpec {
    rendered(said, Told::Return).spec.unwrap()
}

fn containers(spec: &PodSpec) -> Vec<&Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers).collect()
}

#[test]
fn a_pod_is_one_that_the_restricted_standard_admits() {
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
fn only_a_first_pod_waits_to_be_let_go() {
    for (told, waits) in [(Told::Found, true), (Told::Join, true), (Told::Return, false)] {
        let gates = rendered(json!({}), told).spec.unwrap().scheduling_gates;
        let names: Vec<String> = gates.into_iter().flatten().map(|gate| gate.name).collect();
        let expected: &[&str] = if waits { &[names::SCHEDULING_GATE] } else { &[] };
        assert_eq!(names, expected, "{told}");
    }
}

#[test]
fn etcd_starts_by_way_of_the_agent() {
    let spec = rendered(json!({"image": {"repository": "here/etcd"}}), Told::Join).spec.unwrap();
    let [etcd] = spec.containers.as_slice() else { panic!("more than etcd") };
    assert_eq!(etcd.image.as_deref(), Some("here/etcd:v3.6.16"));
    let line = etcd.command.as_ref().unwrap().join(" ");
    let expected = "/quorate/quorate agent start --told join --data /var/lib/etcd/data --pod \
                    /var/lib/quorate -- /usr/local/bin/etcd";
    assert_eq!(line, expected);
    assert_eq!(etcd.args.as_ref().unwrap()[0], "--name=main-a");
    let [agent] = spec.init_containers.unwrap().try_into().unwrap();
    assert_eq!(agent.image.as_deref(), Some("quorate/quorate:v1"));
    assert_eq!(agent.args.unwrap().join(" "), "agent install --to /quorate");
}

#[test]
fn what_etcd_starts_from_cannot_be_written_by_it() {
    let spec = spec(json!({}));
    let mounts = spec.containers[0].volume_mounts.as_ref().unwrap();
    let writable: Vec<&str> = mounts
        .iter()
        .filter(|mount| mount.read_only != Some(true))
        .map(|mount| mount.mount_path.as_str())
        .collect();
    assert_eq!(writable, ["/var/lib/etcd", "/var/lib/quorate"]);
    assert!(mounts.iter().all(|mount| mount.sub_path.is_none()), "they would not be renewed");
    for mount in mounts {
        let volumes = spec.volumes.as_ref().unwrap();
        assert!(volumes.iter().any(|it| it.name == mount.name), "{}", mount.name);
    }
}

#[test]
fn the_users_labels_are_there_and_never_in_the_place_of_ours() {
    let pod = rendered(
        json!({"podMetadata": {
            "labels": {
                "team": "a", "app": "mine", names::CLUSTER_LABEL: "other", names::ROLE_LABEL: "voter",
            },
            "annotations": {"note": "b"},
        }}),
        Told::Return,
    );
    let labels = pod.metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels["app"].as_str()), ("a", "etcd"));
    assert_eq!(labels[names::CLUSTER_LABEL], "main");
    assert_eq!(labels.get(names::ROLE_LABEL), None, "nobody votes by saying so");
    assert_eq!(pod.metadata.annotations.unwrap()["note"], "b");
}

#[test]
fn a_pod_has_its_members_name_and_goes_with_it() {
    let pod = rendered(json!({"deletionPolicy": "Disconnect"}), Told::Found);
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
fn data_in_memory_is_in_the_pod_and_has_a_limit() {
    let data = |said| spec(said).volumes.unwrap().into_iter().find(|it| it.name == "data").unwrap();
    let memory = data(json!({"storage": {"medium": "Memory", "size": "1Gi"}})).empty_dir.unwrap();
    assert_eq!(memory.medium.as_deref(), Some("Memory"));
    assert_eq!(memory.size_limit.unwrap().0, "1Gi");
    let disk = data(json!({}));
    assert_eq!(disk.persistent_volume_claim.unwrap().claim_name, "main-a");
}

#[test]
fn without_certificates_no_secret_is_asked_for() {
    let off = json!({"source": "Disabled"});
    for (tls, asked) in [
        (json!({}), true),
        (json!({"client": off}), true),
        (json!({"client": off, "peer": off}), false),
    ] {
        let volumes = spec(json!({"tls": tls})).volumes.unwrap();
        assert_eq!(volumes.iter().any(|it| it.secret.is_some()), asked, "{tls}");
    }
}

#[test]
fn keys_that_are_not_needed_are_not_in_the_pod() {
    let off = json!({"source": "Disabled"});
    for (tls, expected) in [
        (json!({}), None),
        (json!({"client": off}), Some(vec!["peer.crt", "peer.key", "peer-ca.crt"])),
        (json!({"peer": off}), Some(vec!["server.crt", "server.key", "client-ca.crt"])),
    ] {
        let volumes = spec(json!({"tls": tls})).volumes.unwrap();
        let secret = volumes.into_iter().find_map(|it| it.secret).unwrap();
        let keys = secret.items.map(|all| all.into_iter().map(|it| it.key).collect::<Vec<_>>());
        assert_eq!(keys, expected.map(|it| it.iter().map(ToString::to_string).collect()), "{tls}");
    }
}

#[test]
fn members_avoid_each_other_unless_the_user_says_where_they_like_to_be() {
    let silent = spec(json!({}));
    assert!(silent.affinity.unwrap().pod_anti_affinity.is_some());
    assert_eq!(silent.topology_spread_constraints.unwrap().len(), 1);
    let said = spec(json!({"placement": {"affinity": {}}}));
    assert_eq!(said.affinity, Some(k8s_openapi::api::core::v1::Affinity::default()));
    assert_eq!(said.topology_spread_constraints, None);
}

#[test]
fn go_is_told_its_limits() {
    let variables = |said| {
        let env = spec(said).containers.remove(0).env.unwrap().into_iter();
        env.map(|it| (it.name, it.value.unwrap())).collect::<Vec<_>>()
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
    assert_eq!(limited("Memory", "2"), pair("2", "540000000"), "data counts, too");
}

#[test]
fn a_pod_can_be_guaranteed_what_it_asks_for() {
    let amounts = json!({"cpu": "10m", "memory": "64Mi"});
    let spec = spec(json!({"resources": {"requests": amounts, "limits": amounts}}));
    for container in containers(&spec) {
        let resources = container.resources.as_ref().unwrap();
        assert_eq!(json!(resources.requests), amounts, "{} holds more", container.name);
        assert_eq!(json!(resources.limits), amounts, "{} is not guaranteed", container.name);
    }
}
