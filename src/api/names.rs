//! All names on the wire and in manifests, each defined once.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Name of the operator: of its objects, its container and its field manager.
pub const OPERATOR: &str = "quorate";
/// Default namespace of the operator.
pub const NAMESPACE: &str = "quorate-system";
/// Lease for leader election.
pub const LEASE: &str = "quorate";
/// Version of this release, without a leading `v`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Port for probes and metrics.
pub const METRICS_PORT: u16 = 8080;
/// Name of that port on the container and on the Service.
pub const METRICS_PORT_NAME: &str = "metrics";
/// Liveness endpoint.
pub const LIVE_PATH: &str = "/livez";
/// Readiness endpoint; 200 only when every readiness gate is open.
pub const READY_PATH: &str = "/readyz";
/// Metrics in `OpenMetrics` text format.
pub const METRICS_PATH: &str = "/metrics";

/// Service of the webhooks.
pub const WEBHOOK_SERVICE: &str = "quorate-webhook";
/// Port of that Service.
pub const WEBHOOK_SERVICE_PORT: i32 = 443;
/// Port of the webhook server.
pub const WEBHOOK_PORT: u16 = 9443;
/// Name of that port on the container and on the Service.
pub const WEBHOOK_PORT_NAME: &str = "webhook";
/// Path of the conversion webhook.
pub const CONVERT_PATH: &str = "/convert";
/// Path of the mutating webhook.
pub const MUTATE_PATH: &str = "/mutate";
/// Path of the validating webhook.
pub const VALIDATE_PATH: &str = "/validate";
/// Name of the mutating and of the validating webhook configuration. Both are cluster-scoped.
pub const WEBHOOK_CONFIGURATION: &str = "quorate";
/// Secret with the CAs of the webhook certificates.
pub const WEBHOOK_CA_SECRET: &str = "quorate-webhook-ca";
/// Secret with the webhook certificate, if it is issued by cert-manager or by the user.
pub const WEBHOOK_TLS_SECRET: &str = "quorate-webhook-tls";
/// Field manager of `caBundle` in CRDs and webhook configurations, and of nothing else.
pub const CA_FIELD_MANAGER: &str = "quorate-ca";
/// Annotation of an object: while it is `true`, deletion is denied.
pub const DELETION_PROTECTION_ANNOTATION: &str = "quorate.appdelivery.cncf.io/deletion-protection";
/// Users of the namespace controller and the garbage collector. The last one is both, where the
/// controllers share one account.
pub const GARBAGE_COLLECTION_USERS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

/// `ClusterRole` for the injection of `caBundle`.
pub const WEBHOOKS_ROLE: &str = "quorate-webhooks";
/// `ClusterRole` with the permissions of the operator in a namespace with managed objects.
pub const NAMESPACE_ROLE: &str = "quorate-namespace";
/// `ClusterRole` for the `StorageVersionMigration` API.
pub const MIGRATION_ROLE: &str = "quorate-storage-migration";
/// `ClusterRole` with read access to the kinds of the operator.
pub const VIEW_ROLE: &str = "quorate-view";
/// `ClusterRole` with write access to the kinds of the operator.
pub const EDIT_ROLE: &str = "quorate-edit";
/// `RoleBinding` of `NAMESPACE_ROLE` in such a namespace. Its name differs from that of the
/// operator's own RoleBinding: the operator may delete bindings of this name, and must never delete
/// its own permissions.
pub const NAMESPACE_ROLE_BINDING: &str = "quorate-namespace";

/// ConfigMap that records the progress of storage version migration.
pub const MIGRATION_RECORD: &str = "quorate-storage-migration";
/// Annotation of a CRD: while it is `paused`, stored objects are not migrated.
pub const MIGRATION_ANNOTATION: &str = "quorate.appdelivery.cncf.io/storage-migration";
/// Value of that annotation.
pub const MIGRATION_PAUSED: &str = "paused";
/// Annotation of that ConfigMap: time at which an administrator requested an immediate retry.
pub const MIGRATION_RETRY_ANNOTATION: &str = "quorate.appdelivery.cncf.io/storage-migration-retry";
/// Field manager of the writes that only change the stored version of an object.
pub const MIGRATION_FIELD_MANAGER: &str = "quorate-storage-migration";

/// Field manager of the two conditions that objects without namespace access have.
pub const NAMESPACE_ACCESS_FIELD_MANAGER: &str = "quorate-namespace-access";

/// Environment variable with the name of the pod.
pub const POD_NAME_VARIABLE: &str = "POD_NAME";
/// Environment variable with the namespace of the pod.
pub const POD_NAMESPACE_VARIABLE: &str = "POD_NAMESPACE";

/// Environment variable with the image of the operator.
pub const AGENT_IMAGE_VARIABLE: &str = "QUORATE_AGENT_IMAGE";

/// Annotation of a Lease that its holder released after it stopped leading; the value is the uid of
/// that Lease.
pub const RELEASED_ANNOTATION: &str = "quorate.appdelivery.cncf.io/released";

/// API group of the etcd kinds.
pub const ETCD_GROUP: &str = "etcd.appdelivery.cncf.io";
/// API group of the example application.
pub const APP_GROUP: &str = "example-app.appdelivery.cncf.io";

/// Maximum length of the name of an EtcdCluster: derived names have a dash and up to ten more
/// characters, and 63 is the limit of Services and labels.
pub const MAX_CLUSTER_NAME_LENGTH: usize = 52;
/// Maximum length of the name of an ExampleApp: its EtcdCluster is named after it, and the names
/// derived from that one must fit as well.
pub const MAX_APP_NAME_LENGTH: usize = 40;
/// Maximum length of the name of an EtcdMember: it is the host name of the pod.
pub const MAX_MEMBER_NAME_LENGTH: usize = 63;

/// Recommended label for the name of an application; the only one in selectors, because a selector
/// is immutable.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Recommended label for a component of an application.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Recommended label for the application that a component belongs to.
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// Recommended label for a version.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";
/// Recommended label for the tool that manages an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Recommended label for an instance of an application.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// Label of all objects of an EtcdCluster: its name.
pub const CLUSTER_LABEL: &str = "etcd.appdelivery.cncf.io/cluster";
/// Label of all objects of a member: its name.
pub const MEMBER_LABEL: &str = "etcd.appdelivery.cncf.io/member";
/// Label of the pods of voters, which the `PodDisruptionBudget` selects.
pub const ROLE_LABEL: &str = "etcd.appdelivery.cncf.io/role";
/// Value of that label.
pub const VOTER: &str = "voter";
/// Label of all objects of an EtcdCluster: its uid. A later cluster of the same name has another.
pub const CLUSTER_UID_LABEL: &str = "etcd.appdelivery.cncf.io/cluster-uid";
/// Scheduling gate of the first pod of a member, removed once its start is recorded.
pub const SCHEDULING_GATE: &str = "etcd.appdelivery.cncf.io/start-recorded";
/// Annotation of a member's pod: hash of its pod template.
pub const POD_TEMPLATE_HASH_ANNOTATION: &str = "etcd.appdelivery.cncf.io/pod-template-hash";
/// Annotation of a member's pod: the part of the spec it was created from, for a rollback.
pub const POD_TEMPLATE_ANNOTATION: &str = "etcd.appdelivery.cncf.io/pod-template";
/// Annotation of a member's pod: hash of the trust bundle it was started with.
pub const TRUST_BUNDLE_HASH_ANNOTATION: &str = "etcd.appdelivery.cncf.io/trust-bundle-hash";
/// Annotation of an EtcdCluster: a new value requests a CA rotation.
pub const ROTATE_CA_ANNOTATION: &str = "etcd.appdelivery.cncf.io/rotate-ca";
/// Client port of etcd.
pub const ETCD_CLIENT_PORT: u16 = 2379;
/// Peer port of etcd.
pub const ETCD_PEER_PORT: u16 = 2380;
/// Port of etcd for probes and metrics, plaintext.
pub const ETCD_METRICS_PORT: u16 = 2381;

/// Host of a member for other members and clients: its own Service. It is a SAN of its certificate.
#[must_use]
pub fn member_host(member: &str, namespace: &str) -> String {
    format!("{member}.{namespace}.svc")
}

/// Service for the clients of a cluster. The Service of the members has the name of the cluster.
#[must_use]
pub fn client_service(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// Secret with everything an application needs to connect to a cluster.
#[must_use]
pub fn client_secret(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// Secret with the CAs of a cluster.
#[must_use]
pub fn ca_secret(cluster: &str) -> String {
    format!("{cluster}-ca")
}

/// Secret with the certificates of a member.
#[must_use]
pub fn member_secret(member: &str) -> String {
    format!("{member}-tls")
}

/// Name of the cert-manager Certificate for `subject`, and of its Secret.
#[must_use]
pub fn cert_manager_certificate(subject: &str, side: &str) -> String {
    format!("{subject}-issued-{side}")
}

/// Operator image of this release.
#[must_use]
pub fn image() -> String {
    format!("{OPERATOR}/{OPERATOR}:v{VERSION}")
}

/// Whether `text` is a valid name of a namespace (DNS label).
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// Whether `text` is a valid name of most objects (DNS subdomain).
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// Whether `text` is a valid name of a Service: a DNS label that begins with a letter.
#[must_use]
pub fn is_dns_1035(text: &str) -> bool {
    is_dns_label(text) && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

fn is_dns_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(plain)
        && text.bytes().next_back().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names_are_valid() {
        assert!(is_dns_label(NAMESPACE));
        assert!(is_dns_subdomain(LEASE));
        assert!(is_dns_label(OPERATOR));
    }

    #[test]
    fn invalid_names_are_rejected() {
        for bad in ["", "-a", "a-", "A", "a_b", "a b", "a.b", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad:?} was accepted as a label");
        }
        for bad in ["", ".", "a.", ".a", "a..b", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad:?} was accepted as a subdomain");
        }
        assert!(is_dns_subdomain("a.b-c.1"));
    }
}
