//! Who is given up, and whose pod fails, one sentence each.

use serde_json::{Value, json};

use crate::etcd_cluster::compose::tests::{container, heard, member, pod, seen, stock};
use crate::etcd_cluster::heard::Heard;
use crate::etcd_cluster::seen::Reading;

#[test]
fn a_member_is_given_up_after_its_time_and_not_while_it_is_heard() {
    let unwell = |since: &str| {
        json!({"conditions": [{"type": "Healthy", "status": "False", "lastTransitionTime": since,
                               "reason": "Silent", "message": "x"}]})
    };
    let given_up = |status: Value, pods: Vec<Value>, heard: &Heard| {
        let member = member("main-a", "2026-11-16T10:00:00Z", status);
        seen(&stock(vec![member], pods, vec![]), heard).members[0].given_up
    };
    let (long, short) = ("2026-11-16T11:49:00Z", "2026-11-16T11:58:00Z");
    assert!(given_up(unwell(long), vec![], &Heard::nothing()));
    assert!(!given_up(unwell(short), vec![], &Heard::nothing()));
    assert!(!given_up(json!({}), vec![], &Heard::nothing()), "nobody has seen it unwell");
    let crashes = vec![pod("main-a", container(json!({"waiting": {}}), json!({}), 3))];
    assert!(given_up(unwell(short), crashes.clone(), &Heard::nothing()), "it keeps crashing");
    assert!(!given_up(unwell("2026-11-16T11:59:30Z"), crashes, &Heard::nothing()), "too early");
    let alone = heard(&[("main-a", 1, 1, false)], &[(1, "main-a", false)]);
    let nobody = Heard { council: Reading::Unknown, ..alone.clone() };
    let ages = "2026-11-16T10:00:00Z";
    assert!(!given_up(unwell(ages), vec![], &nobody), "it lacks only the others");
    assert!(given_up(unwell(ages), vec![], &alone), "they agree, and it never does");
    assert!(!given_up(unwell(long), vec![], &alone), "it may have much to read");
    let agrees = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    assert!(!given_up(unwell(ages), vec![], &agrees));
}

#[test]
fn a_pod_fails_that_crashes_too_often_or_cannot_be_made_for_a_minute() {
    let waits = |why: &str| json!({"waiting": {"reason": why}});
    let (early, late) = ("2026-11-16T11:59:30Z", "2026-11-16T11:58:30Z");
    for (state, restarts, made_at, expected) in [
        (waits("CrashLoopBackOff"), 3, early, true),
        (waits("CrashLoopBackOff"), 2, late, false),
        (waits("ImagePullBackOff"), 0, late, true),
        (waits("ImagePullBackOff"), 0, early, false),
        (waits("ContainerCreating"), 0, late, false),
        (json!({"running": {}}), 3, late, false),
    ] {
        let mut made = pod("main-a", container(state.clone(), json!({}), restarts));
        made["metadata"]["creationTimestamp"] = json!(made_at);
        let stock =
            stock(vec![member("main-a", "2026-11-16T10:00:00Z", json!({}))], vec![made], vec![]);
        let fails = |heard: &Heard| seen(&stock, heard).members[0].fails;
        assert_eq!(fails(&Heard::nothing()), expected, "{state} {restarts} {made_at}");
        let heard = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
        assert!(!fails(&heard), "it is heard: {state}");
    }
}

#[test]
fn a_member_fails_whose_pod_is_refused_for_a_minute() {
    let fails = |reason: &str, since: &str| {
        let status = json!({"conditions": [{"type": "Healthy", "status": "False", "lastTransitionTime": since,
                                            "reason": reason, "message": "exceeded quota"}]});
        let member = member("main-a", "2026-11-16T10:00:00Z", status);
        seen(&stock(vec![member], vec![], vec![]), &Heard::nothing()).members[0].fails
    };
    assert!(fails("PodRefused", "2026-11-16T11:58:30Z"));
    assert!(!fails("PodRefused", "2026-11-16T11:59:30Z"), "too early");
    assert!(!fails("NoPod", "2026-11-16T11:58:30Z"), "it is about to be made");
}
