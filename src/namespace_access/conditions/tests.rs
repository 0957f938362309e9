//! Which objects get or lose the condition.

use super::*;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::namespace_access::backoff::{AppliedCondition, Backoff, Outcome};
use crate::namespace_access::model::cluster::entry;
use crate::namespace_access::state::{WatchEvent, WatchState};
use crate::namespace_access::store::StoreEvent;

const GRANTING: BindingState =
    BindingState { managed: false, subjects_match: true, grants_role: true, terminating: false };
const MISMATCHED: BindingState =
    BindingState { managed: false, subjects_match: false, grants_role: false, terminating: false };

fn watches(objects: &[(&str, bool)], binding: Option<BindingState>) -> WatchState {
    let mut watches = WatchState::default();
    watches.apply(WatchEvent::Object(KindRef(&kinds::EXAMPLE_APP), StoreEvent::ListStarted));
    for (uid, has_condition) in objects {
        let object = entry("a", uid, (uid, 5), ObjectInfo { has_condition: *has_condition });
        watches.apply(WatchEvent::Object(KindRef(&kinds::EXAMPLE_APP), StoreEvent::Listed(object)));
    }
    watches.apply(WatchEvent::Object(KindRef(&kinds::EXAMPLE_APP), StoreEvent::ListComplete));
    watches.apply(WatchEvent::Binding(StoreEvent::ListStarted));
    watches.apply(WatchEvent::Binding(StoreEvent::ListComplete));
    if let Some(state) = binding {
        watches.apply(WatchEvent::Binding(StoreEvent::Applied(entry(
            "a",
            names::NAMESPACE_ROLE_BINDING,
            ("b1", 7),
            state,
        ))));
    }
    watches
}

fn conditions(
    mode: NamespaceAccess,
    watches: &WatchState,
    backoff: &Backoff,
) -> Vec<AccessCondition> {
    let (updates, _) =
        pending_updates(&ObservedState { mode, watches, backoff, now: MonotonicTime::default() });
    updates.into_iter().map(|update| update.condition).collect()
}

fn manual(watches: &WatchState) -> Vec<AccessCondition> {
    conditions(NamespaceAccess::Manual, watches, &Backoff::default())
}

fn applied(condition: AccessCondition) -> AppliedCondition {
    AppliedCondition { condition, before: "4".to_owned(), after: "5".to_owned() }
}

const MISSING: AccessCondition = AccessCondition::NotGranted(MissingAccess::NoBinding);

#[test]
fn object_in_a_namespace_without_access_gets_the_condition() {
    assert_eq!(manual(&watches(&[("o1", false)], None)), [MISSING]);
}

#[test]
fn mismatching_binding_is_distinguished_from_a_missing_one() {
    let condition = manual(&watches(&[("o1", false)], Some(MISMATCHED)));
    assert_eq!(condition, [AccessCondition::NotGranted(MissingAccess::BindingMismatch)]);
}

#[test]
fn granted_access_only_removes_existing_conditions() {
    let watches = watches(&[("o1", false), ("o2", true)], Some(GRANTING));
    for mode in [NamespaceAccess::Manual, NamespaceAccess::Auto] {
        let (updates, _) = pending_updates(&ObservedState {
            mode,
            watches: &watches,
            backoff: &Backoff::default(),
            now: MonotonicTime::default(),
        });
        let updates: Vec<_> =
            updates.iter().map(|update| (update.uid.as_str(), update.condition)).collect();
        assert_eq!(updates, [("o2", AccessCondition::Absent)]);
    }
}

#[test]
fn auto_mode_sets_no_condition() {
    let watches = watches(&[("o1", false), ("o2", true)], None);
    assert_eq!(conditions(NamespaceAccess::Auto, &watches, &Backoff::default()), []);
}

#[test]
fn no_condition_is_set_until_the_list_of_bindings_is_complete() {
    for event in [StoreEvent::WatchFailed, StoreEvent::ListStarted] {
        let mut watches = watches(&[("o1", false)], None);
        watches.apply(WatchEvent::Binding(event));
        assert_eq!(manual(&watches), []);
    }
}

#[test]
fn condition_is_applied_once_and_again_after_the_object_or_the_binding_changed() {
    let ungranted = watches(&[("o1", true)], None);
    let mut backoff = Backoff::default();
    backoff.record_applied("o1", applied(MISSING));
    assert_eq!(conditions(NamespaceAccess::Manual, &ungranted, &backoff), []);
    // The watch has not yet delivered our own write.
    let before =
        AppliedCondition { before: "5".to_owned(), after: "6".to_owned(), ..applied(MISSING) };
    backoff.record_applied("o1", before);
    assert_eq!(conditions(NamespaceAccess::Manual, &ungranted, &backoff), []);
    // The object was changed by another writer since.
    backoff.record_applied("o1", AppliedCondition { after: "4".to_owned(), ..applied(MISSING) });
    assert_eq!(conditions(NamespaceAccess::Manual, &ungranted, &backoff), [MISSING]);
    backoff.record_applied("o1", applied(MISSING));
    let granted = watches(&[("o1", true)], Some(GRANTING));
    assert_eq!(conditions(NamespaceAccess::Manual, &granted, &backoff), [AccessCondition::Absent]);
}

#[test]
fn updates_are_limited_and_skip_objects_that_back_off() {
    let uids: Vec<String> =
        (0..=MAX_CONDITION_UPDATES).map(|number| format!("o{number}")).collect();
    let objects: Vec<(&str, bool)> = uids.iter().map(|uid| (uid.as_str(), false)).collect();
    let watches = watches(&objects, None);
    let mut backoff = Backoff::default();
    let now = MonotonicTime::default();
    let observed =
        ObservedState { mode: NamespaceAccess::Manual, watches: &watches, backoff: &backoff, now };
    let (updates, more) = pending_updates(&observed);
    assert!(more && updates.len() == MAX_CONDITION_UPDATES);
    backoff.record(BackoffKey::Object("o0".to_owned()), Outcome::Rejected, now);
    let observed =
        ObservedState { mode: NamespaceAccess::Manual, watches: &watches, backoff: &backoff, now };
    let (updates, more) = pending_updates(&observed);
    assert!(
        !more
            && updates.len() == MAX_CONDITION_UPDATES
            && updates.iter().all(|update| update.uid != "o0")
    );
    backoff.record(BackoffKey::Object("o0".to_owned()), Outcome::Unknown, now);
    let observed =
        ObservedState { mode: NamespaceAccess::Manual, watches: &watches, backoff: &backoff, now };
    assert_eq!(pending_updates(&observed), (Vec::new(), false));
}
