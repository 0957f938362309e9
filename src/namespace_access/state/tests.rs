//! The state of bindings, objects and namespaces.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};

use super::*;
use crate::namespace_access::render;

const OPERATOR: &str = "quorate-system";

fn changed(change: impl FnOnce(&mut RoleBinding)) -> BindingState {
    let mut binding = render::binding("here", OPERATOR);
    change(&mut binding);
    binding_entry(&binding, OPERATOR).data
}

fn other_subject() -> Subject {
    Subject { kind: "User".to_owned(), name: "eve".to_owned(), ..Subject::default() }
}

#[test]
fn created_binding_is_managed_and_grants_the_role() {
    let created =
        BindingState { managed: true, subjects_match: true, grants_role: true, terminating: false };
    assert_eq!(changed(|_| {}), created);
}

#[test]
fn binding_without_label_grants_the_role_and_is_unmanaged() {
    let bound = changed(|binding| binding.metadata.labels = None);
    assert!(bound.grants_role && !bound.managed);
    let with_others = changed(|binding| {
        binding.metadata.labels = None;
        binding.subjects.as_mut().unwrap().push(other_subject());
    });
    assert!(with_others.grants_role && !with_others.subjects_match);
}

#[test]
fn binding_to_another_role_is_never_managed() {
    for change in [
        |role: &mut RoleRef| role.name = "admin".to_owned(),
        |role: &mut RoleRef| role.kind = "Role".to_owned(),
        |role: &mut RoleRef| role.api_group = "example.com".to_owned(),
    ] {
        let other = changed(|binding| change(&mut binding.role_ref));
        assert!(!other.managed && !other.grants_role);
    }
}

#[test]
fn only_the_operators_service_account_matches() {
    for change in [
        |subject: &mut Subject| subject.name = "default".to_owned(),
        |subject: &mut Subject| subject.namespace = Some("elsewhere".to_owned()),
        |subject: &mut Subject| subject.namespace = None,
        |subject: &mut Subject| subject.kind = "User".to_owned(),
        |subject: &mut Subject| subject.api_group = Some("rbac.authorization.k8s.io".to_owned()),
    ] {
        let drifted = changed(|binding| change(&mut binding.subjects.as_mut().unwrap()[0]));
        assert!(drifted.managed && !drifted.subjects_match && !drifted.grants_role);
    }
    assert!(!changed(|binding| binding.subjects = None).grants_role);
    let wider = changed(|binding| binding.subjects.as_mut().unwrap().push(other_subject()));
    assert!(wider.grants_role && !wider.subjects_match);
}

#[test]
fn binding_with_deletion_timestamp_is_terminating() {
    let time = Time(jiff::Timestamp::UNIX_EPOCH);
    assert!(changed(|binding| binding.metadata.deletion_timestamp = Some(time)).terminating);
}

#[test]
fn condition_is_detected_by_the_field_manager() {
    let managed_by = |manager: &str| ObjectMeta {
        managed_fields: Some(vec![ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            ..ManagedFieldsEntry::default()
        }]),
        ..ObjectMeta::default()
    };
    assert!(object_entry(&managed_by("quorate-namespace-access")).data.has_condition);
    assert!(
        !object_entry(&managed_by("kubectl")).data.has_condition
            && !object_entry(&managed_by("quorate")).data.has_condition
    );
    assert!(!object_entry(&ObjectMeta::default()).data.has_condition);
}

#[test]
fn namespace_is_empty_only_if_the_lists_of_all_kinds_are_complete() {
    let mut watches = WatchState::default();
    for kind in kinds::ALL {
        assert_eq!(
            watches.namespace_use("here"),
            NamespaceUse::Unknown,
            "{} is not listed",
            kind.name
        );
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListStarted));
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListComplete));
    }
    assert_eq!(watches.namespace_use("here"), NamespaceUse::Empty);
    for kind in kinds::ALL {
        let mut watches = watches.clone();
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::WatchFailed));
        assert_eq!(watches.namespace_use("here"), NamespaceUse::Unknown, "{} failed", kind.name);
    }
}
