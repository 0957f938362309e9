//! The Secret as written by the operator and as changed by other writers.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::webhook_certs::issue;
use crate::webhook_certs::lifetimes::Lifetimes;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn ca(second: i64) -> CertificateAuthority {
    issue::new_ca(&Lifetimes::default(), at(second)).unwrap()
}

/// A CA set with a current, a next and a previous CA.
fn full() -> CaSet {
    let ca_set = CaSet::new(ca(0), &[]).with_next(ca(10)).activate_next(at(20));
    ca_set.with_next(ca(30))
}

fn put(secret: &mut Secret, key: &str, value: &[u8]) {
    let data = secret.data.get_or_insert_default();
    data.insert(key.to_owned(), ByteString(value.to_vec()));
}

#[test]
fn ca_set_is_parsed_from_its_own_secret() {
    for ca_set in [CaSet::new(ca(0), &[]), full(), full().without_previous()] {
        let secret = new_secret("space", &ca_set);
        assert_eq!(parse(&secret), (ca_set, Vec::new()));
        assert_eq!(secret.metadata.name.as_deref(), Some("quorate-webhook-ca"));
        assert_eq!(secret.metadata.namespace.as_deref(), Some("space"));
    }
}

#[test]
fn ca_crt_contains_the_whole_bundle_and_no_previous_key_is_stored() {
    let (ca_set, secret) = (full(), new_secret("space", &full()));
    let data = secret.data.unwrap();
    assert_eq!(Certificate::parse_ca_bundle(&data[BUNDLE].0).len(), 3);
    assert_eq!(Certificate::parse_ca_bundle(&ca_set.bundle()).len(), 3);
    assert!(!data.contains_key("previous.key"), "the key of the previous CA is deleted");
}

#[test]
fn update_preserves_other_entries_and_carries_uid_and_resource_version() {
    let mut secret = new_secret("space", &full());
    secret.metadata.uid = Some("uid".to_owned());
    secret.metadata.resource_version = Some("7".to_owned());
    secret.metadata.annotations.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
    put(&mut secret, "more", b"more");
    let written = updated_secret(&secret, &full().without_previous());
    assert_eq!(written.metadata.uid.as_deref(), Some("uid"));
    assert_eq!(written.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(written.metadata.annotations.unwrap()["a"], "b");
    let data = written.data.unwrap();
    assert_eq!(data["more"].0, b"more");
    assert!(!data.contains_key(PREVIOUS));
}

#[test]
fn rotation_time_is_recorded_and_rounded_up() {
    let time = Timestamp::from_millisecond(1_800_000_000_001).unwrap();
    let secret = new_secret("space", &CaSet { rotated_at: Some(time), ..full() });
    let annotations = secret.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[ROTATED_AT], "2027-01-15T08:00:01Z");
    assert_eq!(parse(&secret).0.rotated_at, Some(at(1)));
    let mut invalid = secret.clone();
    invalid.metadata.annotations.as_mut().unwrap().insert(ROTATED_AT.to_owned(), "?".to_owned());
    assert_eq!(parse(&invalid).0.rotated_at, None);
}

#[test]
fn ca_with_an_invalid_key_stays_trusted() {
    let ca_set = CaSet::new(ca(0), &[]);
    let certificate = ca_set.current.clone().unwrap().certificate;
    let other = ca(5).key.pem();
    for (key, error) in [
        (None, ParseError::Missing),
        (Some("?"), ParseError::NotPem),
        (Some(other.as_str()), ParseError::KeyMismatch),
    ] {
        let mut secret = new_secret("space", &ca_set);
        match key {
            Some(key) => put(&mut secret, "current.key", key.as_bytes()),
            None => drop(secret.data.as_mut().unwrap().remove("current.key")),
        }
        let (parsed, invalid) = parse(&secret);
        assert_eq!(invalid, [InvalidEntry { key: "current.key", error }]);
        assert_eq!(parsed.current, None);
        assert_eq!(parsed.previous, std::slice::from_ref(&certificate));
        assert_eq!(parsed.bundle(), ca_set.bundle());
    }
}

#[test]
fn invalid_entry_is_reported_by_its_key_and_repaired_by_one_write() {
    let ca_set = full();
    for key in ["current.crt", "current.key", "next.crt", "next.key", PREVIOUS, BUNDLE] {
        let mut secret = new_secret("space", &ca_set);
        put(&mut secret, key, b"?");
        let (left, invalid) = parse(&secret);
        assert!(invalid.iter().any(|entry| entry.key == key), "{key}: {invalid:?}");
        let repaired = updated_secret(&secret, &left);
        assert_eq!(parse(&repaired), (left, Vec::new()), "{key}");
    }
}

#[test]
fn secret_without_data_is_an_empty_ca_set() {
    let (ca_set, invalid) = parse(&Secret::default());
    assert_eq!(ca_set, CaSet::default());
    assert_eq!(invalid, [InvalidEntry { key: BUNDLE, error: ParseError::NotPem }]);
}

proptest! {
    #[test]
    fn any_content_is_parsed_and_one_write_repairs_it(
        key in prop::sample::select(vec![
            "current.crt", "current.key", "next.crt", "next.key", "previous.crt", "ca.crt",
        ]),
        cut in 0_usize..900,
        with in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut secret = new_secret("space", &full());
        let mut value = secret.data.as_ref().unwrap()[key].0.clone();
        let cut = cut % value.len();
        value.splice(cut..(cut + with.len()).min(value.len()), with);
        put(&mut secret, key, &value);
        let (ca_set, _) = parse(&secret);
        prop_assert!(ca_set.certificates().len() <= 8);
        let repaired = updated_secret(&secret, &ca_set.with_known(&[]));
        let (_, invalid) = parse(&repaired);
        prop_assert_eq!(invalid, Vec::new());
    }
}
