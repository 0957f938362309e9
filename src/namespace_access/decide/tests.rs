//! Which bindings are created, repaired and deleted.

use std::time::Duration;

use super::*;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::namespace_access::backoff::{Backoff, Outcome};
use crate::namespace_access::model::cluster::entry;
use crate::namespace_access::state::{KindRef, ObjectInfo, WatchEvent, WatchState};
use crate::namespace_access::store::StoreEvent;

const MANAGED: BindingState =
    BindingState { managed: true, subjects_match: true, grants_role: true, terminating: false };
const UNMANAGED: BindingState = BindingState { managed: false, ..MANAGED };
const DRIFTED: BindingState = BindingState { subjects_match: false, grants_role: false, ..MANAGED };
const MISMATCHED: BindingState =
    BindingState { managed: false, subjects_match: false, grants_role: false, terminating: false };

/// Complete lists, with objects of one kind and bindings in the given namespaces.
fn watches(objects: &[&str], bindings: &[(&str, BindingState)]) -> WatchState {
    let mut watches = WatchState::default();
    for kind in kinds::ALL {
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListStarted));
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListComplete));
    }
    watches.apply(WatchEvent::Binding(StoreEvent::ListStarted));
    for (namespace, state) in bindings {
        let binding = entry(namespace, names::NAMESPACE_ROLE_BINDING, ("b1", 7), *state);
        watches.apply(WatchEvent::Binding(StoreEvent::Listed(binding)));
    }
    watches.apply(WatchEvent::Binding(StoreEvent::ListComplete));
    for namespace in objects {
        let object = entry(namespace, "object", ("o1", 1), ObjectInfo { has_condition: false });
        watches
            .apply(WatchEvent::Object(KindRef(&kinds::ETCD_CLUSTER), StoreEvent::Applied(object)));
    }
    watches
}

fn plan_in(mode: NamespaceAccess, watches: &WatchState, backoff: &Backoff) -> Plan {
    decide(&ObservedState { mode, watches, backoff, now: MonotonicTime::default() })
}

fn plan(watches: &WatchState) -> Plan {
    plan_in(NamespaceAccess::Auto, watches, &Backoff::default())
}

/// The only action of a plan.
fn action(watches: &WatchState) -> Option<Action> {
    let steps = plan(watches).steps;
    assert!(steps.len() <= 1, "{steps:?}");
    steps.into_iter().next().map(|step| step.action)
}

fn target() -> Target {
    Target { uid: "b1".to_owned(), resource_version: "7".to_owned() }
}

#[test]
fn binding_is_created_when_an_object_appears() {
    let plan = plan(&watches(&["a"], &[]));
    let step =
        Step { namespace: "a".to_owned(), action: Action::Create, reason: Reason::ObjectAppeared };
    assert_eq!(plan, Plan { steps: vec![step], ..Plan::default() });
}

#[test]
fn object_of_any_kind_causes_a_binding() {
    for kind in kinds::ALL {
        let mut watches = watches(&[], &[]);
        let object = entry("a", "object", ("o1", 1), ObjectInfo { has_condition: false });
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::Applied(object)));
        assert_eq!(action(&watches), Some(Action::Create), "{}", kind.name);
    }
}

#[test]
fn one_complete_list_is_enough_to_create_a_binding() {
    let mut watches = watches(&["a"], &[]);
    watches.apply(WatchEvent::Object(KindRef(&kinds::EXAMPLE_APP), StoreEvent::WatchFailed));
    assert_eq!(action(&watches), Some(Action::Create));
}

#[test]
fn granted_namespace_with_objects_needs_no_step() {
    for state in [MANAGED, UNMANAGED] {
        assert_eq!(plan(&watches(&["a"], &[("a", state)])), Plan::default());
    }
}

#[test]
fn binding_is_deleted_with_the_last_object() {
    assert_eq!(action(&watches(&[], &[("a", MANAGED)])), Some(Action::Delete(target())));
    let steps = plan(&watches(&["b"], &[("a", MANAGED), ("b", MANAGED)])).steps;
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].namespace.as_str(), steps[0].reason), ("a", Reason::LastObjectDeleted));
}

#[test]
fn no_binding_is_deleted_while_the_list_of_a_kind_is_incomplete() {
    for kind in kinds::ALL {
        for event in [StoreEvent::WatchFailed, StoreEvent::ListStarted] {
            let mut watches = watches(&[], &[("a", MANAGED)]);
            watches.apply(WatchEvent::Object(KindRef(kind), event));
            assert_eq!(plan(&watches), Plan::default(), "{}", kind.name);
        }
    }
}

#[test]
fn no_step_is_planned_until_the_list_of_bindings_is_complete() {
    for event in [StoreEvent::WatchFailed, StoreEvent::ListStarted] {
        let mut watches = watches(&["a"], &[("b", MANAGED), ("c", MISMATCHED)]);
        watches.apply(WatchEvent::Binding(event));
        assert_eq!(plan(&watches), Plan::default());
    }
}

#[test]
fn unmanaged_binding_is_never_written() {
    for state in [UNMANAGED, MISMATCHED, BindingState { subjects_match: false, ..UNMANAGED }] {
        for objects in [&["a"][..], &[]] {
            assert_eq!(plan(&watches(objects, &[("a", state)])).steps, []);
        }
    }
}

#[test]
fn mismatching_unmanaged_binding_blocks_a_namespace_with_objects() {
    let blocked = plan(&watches(&["a"], &[("a", MISMATCHED), ("b", MISMATCHED)])).blocked;
    assert_eq!(blocked, BTreeMap::from([("a".to_owned(), "b1".to_owned())]));
}

#[test]
fn managed_binding_with_changed_subjects_is_repaired() {
    let wider = BindingState { subjects_match: false, ..MANAGED };
    for state in [DRIFTED, wider] {
        for objects in [&["a"][..], &[]] {
            let action = action(&watches(objects, &[("a", state)]));
            assert_eq!(action, Some(Action::Repair(target())));
        }
    }
}

#[test]
fn terminating_binding_is_not_written() {
    for state in [MANAGED, DRIFTED] {
        for objects in [&["a"][..], &[]] {
            let terminating = BindingState { terminating: true, ..state };
            assert_eq!(plan(&watches(objects, &[("a", terminating)])), Plan::default());
        }
    }
}

#[test]
fn manual_mode_writes_no_binding() {
    for bindings in [&[][..], &[("a", MANAGED)], &[("a", DRIFTED)], &[("a", MISMATCHED)]] {
        for objects in [&["a"][..], &[]] {
            let watches = watches(objects, bindings);
            assert_eq!(plan_in(NamespaceAccess::Manual, &watches, &Backoff::default()).steps, []);
        }
    }
}

#[test]
fn namespace_that_backs_off_does_not_delay_the_others() {
    let watches = watches(&["a", "b"], &[]);
    let mut backoff = Backoff::default();
    backoff.record(
        BackoffKey::Namespace("a".to_owned()),
        Outcome::NotNow,
        MonotonicTime::default(),
    );
    let steps = plan_in(NamespaceAccess::Auto, &watches, &backoff).steps;
    assert_eq!(steps.iter().map(|step| step.namespace.as_str()).collect::<Vec<_>>(), ["b"]);
    let later = MonotonicTime::new(Duration::from_secs(2));
    let observed = ObservedState {
        mode: NamespaceAccess::Auto,
        watches: &watches,
        backoff: &backoff,
        now: later,
    };
    assert_eq!(decide(&observed).steps.len(), 2);
    backoff.record(
        BackoffKey::Namespace("a".to_owned()),
        Outcome::Unknown,
        MonotonicTime::default(),
    );
    assert_eq!(plan_in(NamespaceAccess::Auto, &watches, &backoff).steps, []);
}

#[test]
fn steps_of_one_reconciliation_are_limited() {
    let many: Vec<String> = (0..=MAX_STEPS).map(|number| format!("n{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = plan(&watches(&many, &[]));
    assert!(long.more && long.steps.len() == MAX_STEPS);
    let limit = plan(&watches(&many[1..], &[]));
    assert!(!limit.more && limit.steps.len() == MAX_STEPS);
}
