//! The Secret, as it is written and as others leave it.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::webhook_certs::issue;
use crate::webhook_certs::lifetimes::Lifetimes;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn authority(second: i64) -> CertificateAuthority {
    issue::authority(&Lifetimes::default(), at(second)).unwrap()
}

/// Everything that a ring can have.
fn full() -> CaSet {
    let ca_set = CaSet::new(authority(0), &[]).with_next(authority(10)).promote(at(20));
    ca_set.with_next(authority(30))
}

fn put(secret: &mut Secret, key: &str, value: &[u8]) {
    let data = secret.data.get_or_insert_default();
    data.insert(key.to_owned(), ByteString(value.to_vec()));
}

#[test]
fn a_ring_is_read_back_as_it_was_written() {
    for ca_set in [CaSet::new(authority(0), &[]), full(), full().without_previous()] {
        let secret = created("space", &ca_set);
        assert_eq!(read(&secret), (ca_set, Vec::new()));
        assert_eq!(secret.metadata.name.as_deref(), Some("quorate-webhook-ca"));
        assert_eq!(secret.metadata.namespace.as_deref(), Some("space"));
    }
}

#[test]
fn the_bundle_for_people_is_the_bundle() {
    let (ca_set, secret) = (full(), created("space", &full()));
    let data = secret.data.unwrap();
    assert_eq!(Certificate::list(&data[BUNDLE].0).len(), 3);
    assert_eq!(Certificate::list(&ca_set.bundle()).len(), 3);
    assert!(!data.contains_key("previous.key"), "the key of what signed before is gone");
}

#[test]
fn what_others_added_stays_and_what_was_read_is_named() {
    let mut secret = created("space", &full());
    secret.metadata.uid = Some("uid".to_owned());
    secret.metadata.resource_version = Some("7".to_owned());
    secret.metadata.annotations.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
    put(&mut secret, "more", b"more");
    let written = replaced(&secret, &full().without_previous());
    assert_eq!(written.metadata.uid.as_deref(), Some("uid"));
    assert_eq!(written.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(written.metadata.annotations.unwrap()["a"], "b");
    let data = written.data.unwrap();
    assert_eq!(data["more"].0, b"more");
    assert!(!data.contains_key(PREVIOUS));
}

#[test]
fn a_promotion_is_written_down_and_never_too_early() {
    let time = Timestamp::from_millisecond(1_800_000_000_001).unwrap();
    let secret = created("space", &CaSet { promoted: Some(time), ..full() });
    let notes = secret.metadata.annotations.as_ref().unwrap();
    assert_eq!(notes[PROMOTED_AT], "2027-01-15T08:00:01Z");
    assert_eq!(read(&secret).0.promoted, Some(at(1)));
    let mut garbled = secret.clone();
    garbled.metadata.annotations.as_mut().unwrap().insert(PROMOTED_AT.to_owned(), "?".to_owned());
    assert_eq!(read(&garbled).0.promoted, None);
}

#[test]
fn of_a_broken_pair_the_certificate_stays_trusted() {
    let ca_set = CaSet::new(authority(0), &[]);
    let certificate = ca_set.current.clone().unwrap().certificate;
    let other = authority(5).key.pem();
    for (key, why) in [
        (None, ParseError::Missing),
        (Some("?"), ParseError::NotPem),
        (Some(other.as_str()), ParseError::KeyOfAnother),
    ] {
        let mut secret = created("space", &ca_set);
        match key {
            Some(key) => put(&mut secret, "current.key", key.as_bytes()),
            None => drop(secret.data.as_mut().unwrap().remove("current.key")),
        }
        let (read, invalid) = read(&secret);
        assert_eq!(invalid, [InvalidEntry { place: "current.key", why }]);
        assert_eq!(read.current, None);
        assert_eq!(read.previous, std::slice::from_ref(&certificate));
        assert_eq!(read.bundle(), ca_set.bundle());
    }
}

#[test]
fn damage_is_named_by_its_place_and_gone_after_one_write() {
    let ca_set = full();
    for place in ["current.crt", "current.key", "next.crt", "next.key", PREVIOUS, BUNDLE] {
        let mut secret = created("space", &ca_set);
        put(&mut secret, place, b"?");
        let (left, invalid) = read(&secret);
        assert!(invalid.iter().any(|it| it.place == place), "{place}: {invalid:?}");
        let mended = replaced(&secret, &left);
        assert_eq!(read(&mended), (left, Vec::new()), "{place}");
    }
}

#[test]
fn a_secret_without_data_is_an_empty_ring() {
    let (ca_set, invalid) = read(&Secret::default());
    assert_eq!(ca_set, CaSet::default());
    assert_eq!(invalid, [InvalidEntry { place: BUNDLE, why: ParseError::NotPem }]);
}

proptest! {
    #[test]
    fn whatever_is_in_the_secret_is_read_and_one_write_makes_it_whole(
        place in prop::sample::select(vec![
            "current.crt", "current.key", "next.crt", "next.key", "previous.crt", "ca.crt",
        ]),
        cut in 0_usize..900,
        with in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut secret = created("space", &full());
        let mut value = secret.data.as_ref().unwrap()[place].0.clone();
        let cut = cut % value.len();
        value.splice(cut..(cut + with.len()).min(value.len()), with);
        put(&mut secret, place, &value);
        let (ca_set, _) = read(&secret);
        prop_assert!(ca_set.certificates().len() <= 8);
        let mended = replaced(&secret, &ca_set.with_remembered(&[]));
        let (_, invalid) = read(&mended);
        prop_assert_eq!(invalid, Vec::new());
    }
}
