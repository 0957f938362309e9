//! Certificates and keys, as they come from anyone.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::issue::{self, Validity};
use proptest::prelude::*;

fn authority() -> CertificateAuthority {
    let at = |second| Timestamp::from_second(second).unwrap();
    let life = Validity { from: at(1_800_000_000), until: at(1_900_000_000) };
    issue::self_signed_ca("an authority", life).unwrap()
}

#[test]
fn an_authority_is_read_back_as_it_was_written() {
    let made = authority();
    let pem = made.certificate.pem();
    assert!(pem.lines().all(|line| line.len() <= 64), "{pem}");
    assert_eq!(CertificateAuthority::read(pem.as_bytes(), made.key.pem().as_bytes()), Ok(made));
}

#[test]
fn what_is_not_an_authority_is_named() {
    let (one, other) = (authority(), authority());
    let (pem, key) = (one.certificate.pem(), one.key.pem());
    let long = vec![b' '; MAX_PEM_BYTES + 1];
    let leaf = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let (leaf, leaf_key) = (leaf.cert.pem(), leaf.signing_key.serialize_pem());
    let two = format!("{pem}{pem}");
    for (certificate, key, why) in [
        (pem.as_bytes(), other.key.pem().as_bytes(), ParseError::KeyOfAnother),
        (leaf.as_bytes(), leaf_key.as_bytes(), ParseError::NotAnAuthority),
        (two.as_bytes(), key.as_bytes(), ParseError::NotPem),
        (b"", key.as_bytes(), ParseError::NotPem),
        (pem.as_bytes(), b"", ParseError::NotPem),
        (pem.as_bytes(), pem.as_bytes(), ParseError::NotPem),
        (&long, key.as_bytes(), ParseError::TooLong),
        (pem.as_bytes(), &long, ParseError::TooLong),
        (super::pem("CERTIFICATE", b"x").as_bytes(), key.as_bytes(), ParseError::NotACertificate),
        (pem.as_bytes(), super::pem("PRIVATE KEY", b"x").as_bytes(), ParseError::NotAKey),
    ] {
        assert_eq!(CertificateAuthority::read(certificate, key), Err(why));
    }
}

#[test]
fn a_key_is_shown_to_nobody() {
    let made = authority();
    let shown = format!("{made:?} {:?}", made.key);
    let secret = made.key.pem();
    assert!(shown.contains("PrivateKey(..)"), "{shown}");
    for line in secret.lines() {
        assert!(!shown.contains(line));
    }
    assert!(shown.len() < 200, "{shown}");
}

#[test]
fn a_bundle_holds_what_is_in_it_byte_for_byte() {
    let (one, other) = (authority().certificate, authority().certificate);
    let both = bundle([&one, &other]);
    assert!(holds(&both, &one.der) && holds(&both, &other.der));
    assert!(!holds(&bundle([&one]), &other.der));
    assert!(!holds(b"", &one.der) && !holds(&vec![b'-'; MAX_PEM_BYTES + 1], &one.der));
    assert_eq!(Certificate::list(&both), [one, other]);
}

#[test]
fn a_list_has_a_bound_and_leaves_out_what_is_no_authority() {
    let one = authority().certificate;
    let garbage = super::pem("CERTIFICATE", b"garbage");
    let mixed = format!("{garbage}{}{garbage}", one.pem());
    assert_eq!(Certificate::list(mixed.as_bytes()), std::slice::from_ref(&one));
    let many: Vec<&Certificate> = (0..20).map(|_| &one).collect();
    assert_eq!(Certificate::list(&bundle(many)).len(), MAX_CERTIFICATES);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fail_otherwise_than_in_words(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let wrapped = super::pem("CERTIFICATE", &bytes);
        let key = super::pem("PRIVATE KEY", &bytes);
        prop_assert!(CertificateAuthority::read(&bytes, &bytes).is_err());
        prop_assert!(CertificateAuthority::read(wrapped.as_bytes(), key.as_bytes()).is_err());
        Certificate::list(&bytes);
        holds(&bytes, &bytes);
        prop_assert!(bytes.is_empty() || holds(wrapped.as_bytes(), &bytes));
    }

    #[test]
    fn an_authority_with_one_flipped_byte_is_whole_or_unfit(place in 0_usize..700, flip in 1_u8..255) {
        let made = authority();
        let mut pem = made.certificate.pem().into_bytes();
        let place = place % pem.len();
        pem[place] ^= flip;
        if let Ok(read) = CertificateAuthority::read(&pem, made.key.pem().as_bytes()) {
            prop_assert_eq!(read.key, made.key);
        }
    }
}
