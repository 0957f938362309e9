//! Pairs as others put them into files.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::ca::bundle;
use crate::webhook_certs::issue;
use crate::webhook_certs::lifetimes::Lifetimes;
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let made =
        CertificateParams::new(vec!["a.b.svc".to_owned()]).unwrap().self_signed(&key).unwrap();
    (made.pem(), key.serialize_pem())
}

fn refused(certificate: &str, key: &str) -> KeyPairError {
    read(certificate.as_bytes(), key.as_bytes()).unwrap_err()
}

#[test]
fn a_pair_that_belongs_together_is_taken_with_its_chain() {
    let (certificate, key) = pair();
    let authority = issue::authority(&Lifetimes::default(), at(0)).unwrap().certificate;
    let chain = [certificate.as_bytes(), &bundle([&authority])].concat();
    let shown = read(&chain, key.as_bytes()).unwrap();
    assert_eq!(shown.key.cert.len(), 2);
    assert!(!shown.certificate.der.is_empty() && shown.certificate.valid_at(at(0)));
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_in_words() {
    let (certificate, key) = pair();
    let (other, other_key) = pair();
    assert_eq!(refused(&certificate, &other_key), KeyPairError::Mismatch);
    assert_eq!(refused(&other, &key), KeyPairError::Mismatch);
    assert_eq!(refused(&certificate, "?"), KeyPairError::Key);
    assert_eq!(refused("?", &key), NOT_PEM);
    assert_eq!(refused(&key, &key), NOT_PEM);
    assert_eq!(refused(&certificate.repeat(9), &key), KeyPairError::TooMany);
    let torn = certificate.replace("-----END CERTIFICATE-----", "");
    assert_eq!(refused(&torn, &key), NOT_PEM);
}

#[test]
fn one_that_is_valid_takes_the_place_of_any_and_one_that_is_not_only_of_its_like() {
    let certificate =
        |from, until| Certificate { der: Vec::new(), from: at(from), until: at(until) };
    let (good, early, ended) = (certificate(0, 9), certificate(6, 9), certificate(0, 4));
    for (found, shown, better) in [
        (&ended, None, true),
        (&good, Some(&good), true),
        (&good, Some(&ended), true),
        (&early, Some(&good), false),
        (&ended, Some(&good), false),
        (&ended, Some(&early), true),
    ] {
        assert_eq!(is_better(found, shown, at(5)), better, "{found:?} for {shown:?}");
    }
}

#[test]
fn a_key_is_not_shown() {
    let (certificate, key) = pair();
    let shown = format!("{:?}", read(certificate.as_bytes(), key.as_bytes()).unwrap());
    assert!(key.lines().all(|line| !shown.contains(line)), "{shown}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        certificate in proptest::collection::vec(any::<u8>(), 0..300),
        key in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        prop_assert!(read(&certificate, &key).is_err());
    }
}
