//! Certificates, keys and bundles, valid and broken.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::issue::{self, Validity};
use proptest::prelude::*;

fn ca() -> CertificateAuthority {
    let at = |second| Timestamp::from_second(second).unwrap();
    let validity = Validity { from: at(1_800_000_000), until: at(1_900_000_000) };
    issue::self_signed_ca("test CA", validity).unwrap()
}

#[test]
fn ca_is_parsed_from_its_own_pem() {
    let ca = ca();
    let pem = ca.certificate.pem();
    assert!(pem.lines().all(|line| line.len() <= 64), "{pem}");
    assert_eq!(CertificateAuthority::from_pem(pem.as_bytes(), ca.key.pem().as_bytes()), Ok(ca));
}

#[test]
fn each_invalid_ca_has_its_own_error() {
    let (one, other) = (ca(), ca());
    let (pem, key) = (one.certificate.pem(), one.key.pem());
    let long = vec![b' '; MAX_PEM_BYTES + 1];
    let leaf = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let (leaf, leaf_key) = (leaf.cert.pem(), leaf.signing_key.serialize_pem());
    let two = format!("{pem}{pem}");
    for (certificate, key, error) in [
        (pem.as_bytes(), other.key.pem().as_bytes(), ParseError::KeyMismatch),
        (leaf.as_bytes(), leaf_key.as_bytes(), ParseError::NotACa),
        (two.as_bytes(), key.as_bytes(), ParseError::NotPem),
        (b"", key.as_bytes(), ParseError::NotPem),
        (pem.as_bytes(), b"", ParseError::NotPem),
        (pem.as_bytes(), pem.as_bytes(), ParseError::NotPem),
        (&long, key.as_bytes(), ParseError::TooLarge),
        (pem.as_bytes(), &long, ParseError::TooLarge),
        (super::pem("CERTIFICATE", b"x").as_bytes(), key.as_bytes(), ParseError::NotACertificate),
        (pem.as_bytes(), super::pem("PRIVATE KEY", b"x").as_bytes(), ParseError::NotAKey),
    ] {
        assert_eq!(CertificateAuthority::from_pem(certificate, key), Err(error));
    }
}

#[test]
fn debug_output_contains_no_key_material() {
    let ca = ca();
    let output = format!("{ca:?} {:?}", ca.key);
    let secret = ca.key.pem();
    assert!(output.contains("PrivateKey(..)"), "{output}");
    for line in secret.lines() {
        assert!(!output.contains(line));
    }
    assert!(output.len() < 200, "{output}");
}

#[test]
fn bundle_contains_compares_certificates_byte_by_byte() {
    let (one, other) = (ca().certificate, ca().certificate);
    let both = bundle([&one, &other]);
    assert!(bundle_contains(&both, &one.der) && bundle_contains(&both, &other.der));
    assert!(!bundle_contains(&bundle([&one]), &other.der));
    assert!(
        !bundle_contains(b"", &one.der)
            && !bundle_contains(&vec![b'-'; MAX_PEM_BYTES + 1], &one.der)
    );
    assert_eq!(Certificate::parse_ca_bundle(&both), [one, other]);
}

#[test]
fn parsed_bundle_is_bounded_and_skips_blocks_that_are_no_ca() {
    let one = ca().certificate;
    let garbage = super::pem("CERTIFICATE", b"garbage");
    let mixed = format!("{garbage}{}{garbage}", one.pem());
    assert_eq!(Certificate::parse_ca_bundle(mixed.as_bytes()), std::slice::from_ref(&one));
    let many: Vec<&Certificate> = (0..20).map(|_| &one).collect();
    assert_eq!(Certificate::parse_ca_bundle(&bundle(many)).len(), MAX_CERTIFICATES);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_rejected_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let wrapped = super::pem("CERTIFICATE", &bytes);
        let key = super::pem("PRIVATE KEY", &bytes);
        prop_assert!(CertificateAuthority::from_pem(&bytes, &bytes).is_err());
        prop_assert!(CertificateAuthority::from_pem(wrapped.as_bytes(), key.as_bytes()).is_err());
        Certificate::parse_ca_bundle(&bytes);
        bundle_contains(&bytes, &bytes);
        prop_assert!(bytes.is_empty() || bundle_contains(wrapped.as_bytes(), &bytes));
    }

    #[test]
    fn ca_with_one_flipped_byte_is_rejected_or_keeps_its_key(
        index in 0_usize..700,
        flip in 1_u8..255,
    ) {
        let ca = ca();
        let mut pem = ca.certificate.pem().into_bytes();
        let index = index % pem.len();
        pem[index] ^= flip;
        if let Ok(parsed) = CertificateAuthority::from_pem(&pem, ca.key.pem().as_bytes()) {
            prop_assert_eq!(parsed.key, ca.key);
        }
    }
}
