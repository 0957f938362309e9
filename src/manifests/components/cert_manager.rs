//! Component: serving certificate and CA bundles from cert-manager.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Value, json};

use super::super::kustomize::Target;
use super::super::yaml::{YamlError, document};
use super::super::{labels, rbac};
use super::{Component, PatchFile, ResourceFile, certificate_files};
use crate::api::names;

const API: &str = "cert-manager.io/v1";
const INJECT: &str = "cert-manager.io/inject-ca-from";
const SELF_SIGNED: &str = "quorate-self-signed";
/// The CA: an Issuer, its Certificate and its Secret, which is not the Secret of the operator's own
/// webhook CAs.
const CA: &str = "quorate-cert-manager-ca";

pub(super) fn component(namespace: &str) -> Result<Component, YamlError> {
    Ok(Component {
        name: "cert-manager",
        note: "The webhook certificate is issued and renewed by cert-manager, which must be installed \
               with its cainjector.\nkubectl apply -k deploy/overlays/cert-manager",
        has_overlay: true,
        needs: &[certificate_files::NAME],
        resources: vec![ResourceFile {
            file: "certificates.yaml",
            note: "The CA is valid for ten years and keeps its key on renewal, so that certificates it \
                   issued before\nare still trusted. The certificate is valid for 90 days, and is \
                   renewed with a new key after 60.",
            documents: vec![
                document(&issuer(namespace, SELF_SIGNED, &json!({"selfSigned": {}})))?,
                document(&ca(namespace))?,
                document(&issuer(namespace, CA, &json!({"ca": {"secretName": CA}})))?,
                document(&certificate(namespace))?,
            ],
        }],
        patches: vec![PatchFile {
            file: "inject.yaml",
            body: json!({
                "apiVersion": "v1",
                "kind": "Anything",
                "metadata": {
                    "name": "anything",
                    "annotations": {INJECT: format!("{namespace}/{}", names::WEBHOOK_SERVICE)},
                },
            }),
            targets: injected_targets(),
        }],
    })
}

/// The objects with a CA bundle.
fn injected_targets() -> Vec<Target> {
    let crd = |name: String| Target::object("CustomResourceDefinition", &name);
    let mut targets: Vec<Target> = rbac::converted().into_iter().map(crd).collect();
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        targets.push(Target::object(kind, names::WEBHOOK_CONFIGURATION));
    }
    targets
}

fn issuer(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API,
        "kind": "Issuer",
        "metadata": labels::named(name, namespace),
        "spec": spec,
    })
}

/// The CA. cainjector injects the CA of the newest certificate, and a pod sees a new certificate a
/// minute later than the API server. With a new CA key the API server would not trust the old
/// certificate for that minute, so the key is kept.
fn ca(namespace: &str) -> Value {
    json!({
        "apiVersion": API,
        "kind": "Certificate",
        "metadata": labels::named(CA, namespace),
        "spec": {
            "isCA": true,
            "commonName": CA,
            "secretName": CA,
            "duration": "87600h0m0s",
            "renewBefore": "8760h0m0s",
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never"},
            "usages": ["cert sign", "crl sign"],
            "issuerRef": reference(SELF_SIGNED),
        },
    })
}

fn certificate(namespace: &str) -> Value {
    let service = format!("{}.{namespace}", names::WEBHOOK_SERVICE);
    json!({
        "apiVersion": API,
        "kind": "Certificate",
        "metadata": labels::named(names::WEBHOOK_SERVICE, namespace),
        "spec": {
            "secretName": names::WEBHOOK_TLS_SECRET,
            "dnsNames": [
                format!("{service}.svc"),
                format!("{service}.svc.cluster.local"),
                service,
            ],
            "duration": "2160h0m0s",
            "renewBefore": "720h0m0s",
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
            "usages": ["digital signature", "server auth"],
            "issuerRef": reference(CA),
        },
    })
}

fn reference(issuer: &str) -> Value {
    json!({"group": "cert-manager.io", "kind": "Issuer", "name": issuer})
}
