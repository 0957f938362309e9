//! What cert-manager is asked for, one sentence each.

use super::super::cert_manager::{
    CertManagerIssuer, Certificate as Asked, CertificateStatus, Subject,
};
use super::super::trust_bundle::Side;
use super::*;
use crate::api::etcd_cluster::v1::IssuerKind;

const fn issuer(side: Side, lifetimes: Lifetimes) -> CertManagerIssuer<'static> {
    CertManagerIssuer { name: "signer", kind: IssuerKind::ClusterIssuer, side, lifetimes }
}

fn asked(side: Side, whose: &Subject) -> serde_json::Value {
    let spec = spec();
    json!(issuer(side, Lifetimes::default()).certificate(&blueprint(&spec), whose))
}

fn member_a() -> Subject {
    Subject::Member(name("main-a"), "uid-of-main-a".to_owned())
}

#[test]
fn a_member_is_asked_for_with_exactly_its_names() {
    let server = asked(Side::Client, &member_a());
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
fn among_members_each_shows_its_own_name_and_that_of_the_cluster() {
    let peer = asked(Side::Peer, &member_a());
    assert_eq!(peer["metadata"]["name"], "main-a-issued-peer");
    assert_eq!(peer["spec"]["dnsNames"], json!(["main-a.space.svc", "main.space.svc"]));
    assert_eq!(peer["spec"].get("ipAddresses"), None);
    // The operator calls them, too, and serves nobody.
    let operator = asked(Side::Peer, &Subject::Operator);
    assert_eq!(operator["metadata"]["name"], "main-operator-issued-peer");
    assert_eq!(operator["spec"]["dnsNames"], json!(["main.space.svc"]));
    assert_eq!(operator["spec"]["usages"], json!(["digital signature", "client auth"]));
}

#[test]
fn the_operator_and_applications_are_known_by_the_names_that_etcd_knows() {
    for (whose, object, name) in [
        (Subject::Operator, "main-operator-issued-client", "quorate"),
        (Subject::Applications, "main-application-issued-client", "main-client"),
    ] {
        let asked = asked(Side::Client, &whose);
        assert_eq!(asked["metadata"]["name"], object);
        assert_eq!(asked["metadata"]["ownerReferences"][0]["kind"], "EtcdCluster");
        assert_eq!(asked["spec"]["commonName"], name);
        assert_eq!(asked["spec"].get("dnsNames"), None);
    }
}

#[test]
fn what_shall_live_shorter_than_cert_manager_takes_lives_an_hour() {
    let spec = spec();
    let short = Lifetimes { leaf: Duration::from_mins(10), ..Lifetimes::default() };
    let made = issuer(Side::Peer, short).certificate(&blueprint(&spec), &member_a());
    assert_eq!((made.spec.duration.as_str(), made.spec.renew_before.as_str()), ("3600s", "1200s"));
}

#[test]
fn only_who_is_called_must_have_names() {
    let (spec, lifetimes) = (spec(), Lifetimes::default());
    let needs =
        |whose: &Subject| issuer(Side::Client, lifetimes).needs(&blueprint(&spec), whose).hosts;
    assert_eq!(needs(&Subject::Operator), Vec::<String>::new());
    assert!(needs(&member_a()).contains(&"main-client.space.svc".to_owned()));
}

#[test]
fn why_it_is_not_there_is_told_in_cert_managers_own_words() {
    let said = |status: serde_json::Value| {
        let mut asked: Asked =
            serde_json::from_value(asked(Side::Peer, &Subject::Operator)).unwrap();
        asked.status = Some(serde_json::from_value::<CertificateStatus>(status).unwrap());
        asked.reason().map(str::to_owned)
    };
    let condition = |kind: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": "x", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    assert_eq!(said(json!({})), None);
    let both = json!({"conditions": [condition("Ready", "not yet"), condition("Issuing", "asks")]});
    assert_eq!(said(both).as_deref(), Some("asks"));
    let one = json!({"conditions": [condition("Ready", "not yet")]});
    assert_eq!(said(one).as_deref(), Some("not yet"));
}
