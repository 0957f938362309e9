//! Tests of the Certificates requested from cert-manager.

use super::super::cert_manager::{
    CertManagerIssuer, Certificate as CertManagerCertificate, CertificateStatus, Subject,
};
use super::super::trust_bundle::Side;
use super::*;
use crate::api::etcd_cluster::v1::IssuerKind;

const fn issuer(side: Side, lifetimes: Lifetimes) -> CertManagerIssuer<'static> {
    CertManagerIssuer { name: "signer", kind: IssuerKind::ClusterIssuer, side, lifetimes }
}

fn certificate(side: Side, subject: &Subject) -> serde_json::Value {
    let spec = spec();
    json!(issuer(side, Lifetimes::default()).certificate(&blueprint(&spec), subject))
}

fn member_a() -> Subject {
    Subject::Member(name("main-a"), "uid-of-main-a".to_owned())
}

#[test]
fn member_certificate_has_exactly_the_sans_of_the_member() {
    let server = certificate(Side::Client, &member_a());
    assert_eq!(server["metadata"]["name"], "main-a-issued-client");
    assert_eq!(server["metadata"]["ownerReferences"][0]["uid"], "uid-of-main-a");
    let spec = &server["spec"];
    assert_eq!(spec["secretName"], "main-a-issued-client");
    assert_eq!(spec["secretTemplate"]["labels"], server["metadata"]["labels"]);
    assert_eq!(spec["commonName"], "main-a");
    let hosts = [
        "main-a.space.svc",
        "main-a.space",
        "main-a",
        "main-client.space.svc",
        "main-client.space",
        "main-client",
        "localhost",
    ];
    assert_eq!(spec["dnsNames"], json!(hosts));
    assert_eq!(spec["ipAddresses"], json!(["127.0.0.1", "::1"]));
    assert_eq!(spec["usages"], json!(["digital signature", "server auth", "client auth"]));
    assert_eq!(spec["duration"], "7776000s");
    assert_eq!(spec["renewBefore"], "2592000s");
    let issuer = json!({"name": "signer", "kind": "ClusterIssuer", "group": "cert-manager.io"});
    assert_eq!(spec["issuerRef"], issuer);
    let key = json!({
        "algorithm": "ECDSA", "size": 256, "encoding": "PKCS8", "rotationPolicy": "Always",
    });
    assert_eq!(spec["privateKey"], key);
}

#[test]
fn peer_certificate_has_the_host_of_the_member_and_of_the_cluster() {
    let peer = certificate(Side::Peer, &member_a());
    assert_eq!(peer["metadata"]["name"], "main-a-issued-peer");
    assert_eq!(peer["spec"]["dnsNames"], json!(["main-a.space.svc", "main.space.svc"]));
    assert_eq!(peer["spec"].get("ipAddresses"), None);
    // The operator dials the peer port, too, and only as a client.
    let operator = certificate(Side::Peer, &Subject::Operator);
    assert_eq!(operator["metadata"]["name"], "main-operator-issued-peer");
    assert_eq!(operator["spec"]["dnsNames"], json!(["main.space.svc"]));
    assert_eq!(operator["spec"]["usages"], json!(["digital signature", "client auth"]));
}

#[test]
fn operator_and_applications_have_the_common_names_of_their_etcd_users() {
    for (subject, object, name) in [
        (Subject::Operator, "main-operator-issued-client", "quorate"),
        (Subject::Applications, "main-application-issued-client", "main-client"),
    ] {
        let certificate = certificate(Side::Client, &subject);
        assert_eq!(certificate["metadata"]["name"], object);
        assert_eq!(certificate["metadata"]["ownerReferences"][0]["kind"], "EtcdCluster");
        assert_eq!(certificate["spec"]["commonName"], name);
        assert_eq!(certificate["spec"].get("dnsNames"), None);
    }
}

#[test]
fn shorter_lifetime_than_cert_manager_accepts_is_raised_to_one_hour() {
    let spec = spec();
    let short = Lifetimes { leaf: Duration::from_mins(10), ..Lifetimes::default() };
    let certificate = issuer(Side::Peer, short).certificate(&blueprint(&spec), &member_a());
    assert_eq!(
        (certificate.spec.duration.as_str(), certificate.spec.renew_before.as_str()),
        ("3600s", "1200s")
    );
}

#[test]
fn only_members_require_sans() {
    let (spec, lifetimes) = (spec(), Lifetimes::default());
    let requirements = |subject: &Subject| {
        issuer(Side::Client, lifetimes).requirements(&blueprint(&spec), subject).hosts
    };
    assert_eq!(requirements(&Subject::Operator), Vec::<String>::new());
    assert!(requirements(&member_a()).contains(&"main-client.space.svc".to_owned()));
}

#[test]
fn pending_message_is_taken_from_the_conditions_of_cert_manager() {
    let message = |status: serde_json::Value| {
        let mut certificate: CertManagerCertificate =
            serde_json::from_value(certificate(Side::Peer, &Subject::Operator)).unwrap();
        certificate.status = Some(serde_json::from_value::<CertificateStatus>(status).unwrap());
        certificate.pending_message().map(str::to_owned)
    };
    let condition = |kind: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": "x", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    assert_eq!(message(json!({})), None);
    let both =
        json!({"conditions": [condition("Ready", "not yet"), condition("Issuing", "requested")]});
    assert_eq!(message(both).as_deref(), Some("requested"));
    let one = json!({"conditions": [condition("Ready", "not yet")]});
    assert_eq!(message(one).as_deref(), Some("not yet"));
}
