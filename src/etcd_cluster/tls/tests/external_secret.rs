//! What is taken from Secrets of somebody else's, and what is said of those that cannot be used.

use super::super::external_secret::{CertificateProblem, ExternalCertificate, Requirements};
use super::super::trust_bundle::Side;
use super::*;
use crate::pki::issue::{CertificateRequest, Purpose, Validity, self_signed_ca, sign};
use crate::pki::leaf::{CertifiedKey, VerifyError};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};

const YEAR: i64 = 365 * 24 * 60 * 60;

/// Somebody's authority, and what it has signed for a cluster.
#[derive(Clone)]
pub(super) struct Elsewhere {
    pub(super) authority: CertificateAuthority,
    pub(super) pair: CertifiedKey,
    pub(super) application: CertifiedKey,
}

fn life() -> Validity {
    Validity { from: at(-60), until: at(10 * YEAR) }
}

fn signed(
    by: &CertificateAuthority,
    hosts: &[&str],
    purpose: Purpose,
    life: Validity,
) -> CertifiedKey {
    let hosts = hosts.iter().map(|it| (*it).to_owned()).collect();
    sign(by, &CertificateRequest { name: "theirs", hosts, purpose, validity: life }).unwrap()
}

pub(super) fn elsewhere() -> Elsewhere {
    let authority = self_signed_ca("theirs", life()).unwrap();
    Elsewhere {
        pair: signed(&authority, &["*.space.svc"], Purpose::Both, life()),
        application: signed(&authority, &[], Purpose::Client, life()),
        authority,
    }
}

fn secret(of: &Elsewhere) -> Secret {
    let Elsewhere { authority, pair, application } = of;
    let entries = [
        ("ca.crt", authority.certificate.pem()),
        ("tls.crt", pair.pem()),
        ("tls.key", pair.key.pem()),
        ("client.crt", application.pem()),
        ("client.key", application.key.pem()),
    ];
    let data = entries.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    let mut secret = Secret { data: Some(data.into()), ..Secret::default() };
    secret.metadata.name = Some("mine".to_owned());
    secret
}

fn read(
    secret: &Secret,
    side: Side,
    now: Timestamp,
) -> Result<(ExternalCertificate, Option<CertificateProblem>), CertificateProblem> {
    let spec = spec();
    ExternalCertificate::read(secret, &Requirements::of_all(&blueprint(&spec), side), now)
}

#[test]
fn one_secret_with_a_wildcard_is_good_for_both_sides() {
    let theirs = elsewhere();
    for side in Side::BOTH {
        let (given, flaw) = read(&secret(&theirs), side, at(0)).unwrap();
        assert_eq!(flaw, None);
        assert_eq!(given.pair, theirs.pair);
        assert_eq!(given.ca, std::slice::from_ref(&theirs.authority.certificate));
        assert_eq!(given.application, Some(theirs.application.clone()));
    }
    let alone = spoiled(&spoiled(&secret(&theirs), "client.crt", None), "client.key", None);
    let (given, flaw) = read(&alone, Side::Client, at(0)).unwrap();
    assert_eq!((given.application, flaw), (None, None));
}

#[test]
fn each_flaw_is_told_by_its_name_and_nothing_is_quoted() {
    let (theirs, other) = (elsewhere(), elsewhere());
    let good = secret(&theirs);
    let with = |key: &str, value: &str| spoiled(&good, key, Some(value.as_bytes()));
    let with_pair = |pair: &CertifiedKey| {
        let secret = with("tls.crt", &pair.pem());
        spoiled(&secret, "tls.key", Some(pair.key.pem().as_bytes()))
    };
    let by = |hosts: &[&str], purpose| signed(&theirs.authority, hosts, purpose, life());
    let short = Validity { from: at(-60), until: at(60) };
    let ended = signed(&theirs.authority, &["*.space.svc"], Purpose::Both, short);
    let many: String = (0..4).map(|_| elsewhere().authority.certificate.pem()).collect();
    for (secret, now, words) in [
        (spoiled(&good, "tls.crt", None), 0, "tls.crt cannot be used: missing"),
        (spoiled(&good, "tls.key", None), 0, "tls.key cannot be used: missing"),
        (spoiled(&good, "ca.crt", None), 0, "ca.crt cannot be used: missing"),
        (with("tls.key", "hunter2"), 0, "tls.key cannot be used: not a supported private key"),
        (with("tls.key", &other.pair.key.pem()), 0, "does not match the certificate"),
        (with("ca.crt", &theirs.pair.pem()), 0, "ca.crt cannot be used"),
        (
            with("ca.crt", &other.authority.certificate.pem()),
            0,
            "no CA of the trust bundle signed the certificate",
        ),
        (with("ca.crt", &many), 0, "more than 3 authorities"),
        (with_pair(&ended), 100, "the certificate has expired"),
        (with_pair(&ended), -100, "the certificate is not valid yet"),
        (
            with_pair(&by(&["*.space.svc"], Purpose::Server)),
            0,
            "cannot be shown by a client: the certificate lacks the required extended key usage",
        ),
        (
            with_pair(&by(&["*.space.svc"], Purpose::Client)),
            0,
            "it needs `server auth` and `client auth`",
        ),
        (with_pair(&by(&["main-a.space.svc"], Purpose::Both)), 0, "it must name *.space.svc"),
        (spoiled(&good, "client.key", None), 0, "client.key cannot be used: missing"),
        (with("client.crt", &theirs.pair.pem()), 0, "does not match the certificate"),
    ] {
        let flaw = read(&secret, Side::Client, at(now)).unwrap_err();
        let said = flaw.to_string();
        assert!(said.starts_with("Secret mine: ") && said.contains(words), "{said} is not {words}");
        assert!(!format!("{said} {flaw:?}").contains("hunter2"), "{flaw:?}");
        assert!(flaw.is_fatal() && flaw.needs_user());
    }
}

#[test]
fn what_ends_soon_is_used_and_told() {
    let theirs = elsewhere();
    let (last, soon) = (10 * YEAR, 10 * YEAR - 29 * 24 * 60 * 60);
    assert_eq!(read(&secret(&theirs), Side::Client, at(soon - YEAR)).unwrap().1, None);
    let (_, flaw) = read(&secret(&theirs), Side::Client, at(soon)).unwrap();
    let flaw = flaw.unwrap();
    assert_eq!(
        flaw,
        CertificateProblem::Expiring { secret: "mine".to_owned(), key: "tls.crt", until: at(last) }
    );
    assert!(!flaw.is_fatal() && !flaw.needs_user());
}

/// An authority that another one signed, with what it signs, all in one PEM.
fn chained() -> (String, String, String) {
    let params = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params
    };
    let (root_key, middle_key, key) =
        (KeyPair::generate().unwrap(), KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = params(&[]);
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "root");
    let mut middle = params(&[]);
    middle.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    middle.distinguished_name.push(DnType::CommonName, "middle");
    let mut leaf = params(&["*.space.svc"]);
    leaf.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let top = root.self_signed(&root_key).unwrap().pem();
    let by_root = Issuer::new(root, root_key);
    let between = middle.signed_by(&middle_key, &by_root).unwrap().pem();
    let by_middle = Issuer::new(middle, middle_key);
    let shown = leaf.signed_by(&key, &by_middle).unwrap().pem();
    (top, format!("{shown}{between}"), key.serialize_pem())
}

#[test]
fn who_signed_comes_along_in_a_chain() {
    let (top, shown, key) = chained();
    let good = secret(&elsewhere());
    let mut secret = spoiled(&spoiled(&good, "client.crt", None), "client.key", None);
    for (name, value) in [("ca.crt", &top), ("tls.crt", &shown), ("tls.key", &key)] {
        secret = spoiled(&secret, name, Some(value.as_bytes()));
    }
    let (given, _) = read(&secret, Side::Peer, at(0)).unwrap();
    assert_eq!((given.pair.chain.len(), given.ca.len()), (1, 1));
    // Without the one between nobody knows who signed it.
    let alone = given.pair.certificate.pem();
    let flaw = read(&spoiled(&secret, "tls.crt", Some(alone.as_bytes())), Side::Peer, at(0));
    let Err(CertificateProblem::ClientVerify { why, .. }) = flaw else { panic!("{flaw:?}") };
    assert_eq!(why, VerifyError::UnknownIssuer);
}
