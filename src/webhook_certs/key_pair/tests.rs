//! Key pairs from files, valid and broken.
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
    let certificate =
        CertificateParams::new(vec!["a.b.svc".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn parse_error(certificate: &str, key: &str) -> KeyPairError {
    parse(certificate.as_bytes(), key.as_bytes()).unwrap_err()
}

#[test]
fn matching_key_pair_is_parsed_with_its_chain() {
    let (certificate, key) = pair();
    let ca = issue::new_ca(&Lifetimes::default(), at(0)).unwrap().certificate;
    let chain = [certificate.as_bytes(), &bundle([&ca])].concat();
    let pair = parse(&chain, key.as_bytes()).unwrap();
    assert_eq!(pair.key.cert.len(), 2);
    assert!(!pair.certificate.der.is_empty() && pair.certificate.valid_at(at(0)));
}

#[test]
fn each_invalid_key_pair_has_its_own_error() {
    let (certificate, key) = pair();
    let (other, other_key) = pair();
    assert_eq!(parse_error(&certificate, &other_key), KeyPairError::Mismatch);
    assert_eq!(parse_error(&other, &key), KeyPairError::Mismatch);
    assert_eq!(parse_error(&certificate, "?"), KeyPairError::Key);
    assert_eq!(parse_error("?", &key), NOT_PEM);
    assert_eq!(parse_error(&key, &key), NOT_PEM);
    assert_eq!(parse_error(&certificate.repeat(9), &key), KeyPairError::TooMany);
    let truncated = certificate.replace("-----END CERTIFICATE-----", "");
    assert_eq!(parse_error(&truncated, &key), NOT_PEM);
}

#[test]
fn valid_certificate_replaces_any_and_invalid_one_only_an_invalid_one() {
    let certificate =
        |from, until| Certificate { der: Vec::new(), from: at(from), until: at(until) };
    let (valid, early, expired) = (certificate(0, 9), certificate(6, 9), certificate(0, 4));
    for (new, serving, expected) in [
        (&expired, None, true),
        (&valid, Some(&valid), true),
        (&valid, Some(&expired), true),
        (&early, Some(&valid), false),
        (&expired, Some(&valid), false),
        (&expired, Some(&early), true),
    ] {
        assert_eq!(replaces(new, serving, at(5)), expected, "{new:?} for {serving:?}");
    }
}

#[test]
fn debug_output_contains_no_key_material() {
    let (certificate, key) = pair();
    let output = format!("{:?}", parse(certificate.as_bytes(), key.as_bytes()).unwrap());
    assert!(key.lines().all(|line| !output.contains(line)), "{output}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_rejected_without_a_panic(
        certificate in proptest::collection::vec(any::<u8>(), 0..300),
        key in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        prop_assert!(parse(&certificate, &key).is_err());
    }
}
