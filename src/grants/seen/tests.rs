//! How a binding looks to the operator, and what is known of a namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};

use super::*;
use crate::grants::render;

const OPERATOR: &str = "quorate-system";

fn changed(change: impl FnOnce(&mut RoleBinding)) -> Bond {
    let mut binding = render::binding("here", OPERATOR);
    change(&mut binding);
    bond(&binding, OPERATOR).what
}

fn stranger() -> Subject {
    Subject { kind: "User".to_owned(), name: "eve".to_owned(), ..Subject::default() }
}

#[test]
fn the_binding_that_we_make_is_ours_and_grants() {
    let made = Bond { ours: true, exact: true, gives: true, going: false };
    assert_eq!(changed(|_| {}), made);
}

#[test]
fn what_an_administrator_binds_grants_and_is_not_ours() {
    let bound = changed(|binding| binding.metadata.labels = None);
    assert!(bound.gives && !bound.ours);
    let with_others = changed(|binding| {
        binding.metadata.labels = None;
        binding.subjects.as_mut().unwrap().push(stranger());
    });
    assert!(with_others.gives && !with_others.exact);
}

#[test]
fn a_binding_to_another_role_is_never_ours_whatever_its_label_says() {
    for change in [
        |role: &mut RoleRef| role.name = "admin".to_owned(),
        |role: &mut RoleRef| role.kind = "Role".to_owned(),
        |role: &mut RoleRef| role.api_group = "example.com".to_owned(),
    ] {
        let other = changed(|binding| change(&mut binding.role_ref));
        assert!(!other.ours && !other.gives);
    }
}

#[test]
fn only_our_account_is_us() {
    for change in [
        |it: &mut Subject| it.name = "default".to_owned(),
        |it: &mut Subject| it.namespace = Some("elsewhere".to_owned()),
        |it: &mut Subject| it.namespace = None,
        |it: &mut Subject| it.kind = "User".to_owned(),
        |it: &mut Subject| it.api_group = Some("rbac.authorization.k8s.io".to_owned()),
    ] {
        let drifted = changed(|binding| change(&mut binding.subjects.as_mut().unwrap()[0]));
        assert!(drifted.ours && !drifted.exact && !drifted.gives);
    }
    assert!(!changed(|binding| binding.subjects = None).gives);
    let wider = changed(|binding| binding.subjects.as_mut().unwrap().push(stranger()));
    assert!(wider.gives && !wider.exact);
}

#[test]
fn a_binding_that_is_being_deleted_is_going() {
    let time = Time(jiff::Timestamp::UNIX_EPOCH);
    assert!(changed(|binding| binding.metadata.deletion_timestamp = Some(time)).going);
}

#[test]
fn an_object_is_marked_if_this_wing_applied_something() {
    let by = |manager: &str| ObjectMeta {
        managed_fields: Some(vec![ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            ..ManagedFieldsEntry::default()
        }]),
        ..ObjectMeta::default()
    };
    assert!(thing(&by("quorate-grants")).what.marked);
    assert!(!thing(&by("kubectl")).what.marked && !thing(&by("quorate")).what.marked);
    assert!(!thing(&ObjectMeta::default()).what.marked);
}

#[test]
fn a_namespace_is_empty_only_if_every_kind_is_known() {
    let mut world = World::default();
    for kind in kinds::ALL {
        assert_eq!(world.lives("here"), Lives::Unsure, "{} is not known", kind.name);
        world.take(News::Object(Which(kind), Change::Begun));
        world.take(News::Object(Which(kind), Change::Complete));
    }
    assert_eq!(world.lives("here"), Lives::Nothing);
    for kind in kinds::ALL {
        let mut world = world.clone();
        world.take(News::Object(Which(kind), Change::Lost));
        assert_eq!(world.lives("here"), Lives::Unsure, "{} is lost", kind.name);
    }
}
