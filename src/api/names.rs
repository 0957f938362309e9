//! Every name that goes on the wire or into a manifest, once.
//! Comes in: nothing. Goes out: constants, and the few names that are derived from others.
//! May touch: std only. A name that is spelled in two places will one day differ in one of them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// The operator's name: of its objects, its container and its field manager.
pub const OPERATOR: &str = "quorate";
/// The namespace an administrator gets without asking for another.
pub const NAMESPACE: &str = "quorate-system";
/// The Lease that the replicas compete for.
pub const LEASE: &str = "quorate";
/// This release's version, without a leading `v`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The port on which probes and metrics are served.
pub const METRICS_PORT: u16 = 8080;
/// The name of that port on the container and on the Service.
pub const METRICS_PORT_NAME: &str = "metrics";
/// Answers while the process can answer at all.
pub const LIVE_PATH: &str = "/livez";
/// Answers well only when every gate is open.
pub const READY_PATH: &str = "/readyz";
/// The measurements, as `OpenMetrics` text.
pub const METRICS_PATH: &str = "/metrics";

/// The Service in front of the webhooks.
pub const WEBHOOK_SERVICE: &str = "quorate-webhook";
/// The port of that Service.
pub const WEBHOOK_SERVICE_PORT: i32 = 443;
/// The port on which the webhooks are served.
pub const WEBHOOK_PORT: u16 = 9443;
/// The name of that port on the container and on the Service.
pub const WEBHOOK_PORT_NAME: &str = "webhook";
/// Where conversion reviews go.
pub const CONVERT_PATH: &str = "/convert";
/// Where admission reviews go that may change an object.
pub const MUTATE_PATH: &str = "/mutate";
/// Where admission reviews go that may only refuse one.
pub const VALIDATE_PATH: &str = "/validate";
/// The two webhook configurations; they have no namespace, and neither has another of its kind.
pub const WEBHOOK_CONFIGURATION: &str = "quorate";
/// The Secret with the authorities that sign the webhooks' certificates.
pub const WEBHOOK_CA_SECRET: &str = "quorate-webhook-ca";
/// The Secret with the webhooks' certificate, where somebody else makes it.
pub const WEBHOOK_TLS_SECRET: &str = "quorate-webhook-tls";
/// The field manager that owns `caBundle`, and nothing else, in definitions and configurations.
pub const CA_FIELD_MANAGER: &str = "quorate-ca";
/// On an object that its user wants to be refused to be deleted, as long as it is `true`.
pub const DELETION_PROTECTION_ANNOTATION: &str = "quorate.appdelivery.cncf.io/deletion-protection";
/// The users as which Kubernetes itself cleans up: a namespace that goes, and what has lost its
/// owner. The last is both of them, where the controllers share one account.
pub const GARBAGE_COLLECTION_USERS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

/// The `ClusterRole` with which the operator puts its authorities where the API server reads them.
pub const WEBHOOKS_ROLE: &str = "quorate-webhooks";
/// The `ClusterRole` with what the operator may do in a namespace that has objects of ours.
pub const NAMESPACE_ROLE: &str = "quorate-namespace";
/// The `ClusterRole` with which the operator asks Kubernetes' own migrator, where that was chosen.
pub const MIGRATION_ROLE: &str = "quorate-storage-migration";
/// The `ClusterRole` that lets people look at our kinds.
pub const VIEW_ROLE: &str = "quorate-view";
/// The `ClusterRole` that lets people change our kinds.
pub const EDIT_ROLE: &str = "quorate-edit";
/// The `RoleBinding` that grants it in such a namespace. It is not called like the operator's own
/// one: the operator may delete bindings of this name, and must never take its own rights away.
pub const NAMESPACE_ROLE_BINDING: &str = "quorate-namespace";

/// The ConfigMap in which the carrying of stored objects to another version is written down.
pub const MIGRATION_RECORD: &str = "quorate-storage-migration";
/// On a definition whose stored objects shall be left alone, as long as it is `paused`.
pub const MIGRATION_ANNOTATION: &str = "quorate.appdelivery.cncf.io/storage-migration";
/// The value of that annotation.
pub const MIGRATION_PAUSED: &str = "paused";
/// On that ConfigMap: when an administrator asked to try at once what waits to be tried again.
pub const MIGRATION_RETRY_ANNOTATION: &str = "quorate.appdelivery.cncf.io/storage-migration-retry";
/// The field manager of the writes that change nothing but the version in which an object is stored.
pub const MIGRATION_FIELD_MANAGER: &str = "quorate-storage-migration";

/// Field manager of the two conditions that objects without namespace access have.
pub const NAMESPACE_ACCESS_FIELD_MANAGER: &str = "quorate-namespace-access";

/// The variable through which a pod learns its own name.
pub const POD_NAME_VARIABLE: &str = "POD_NAME";
/// The variable through which a pod learns its own namespace.
pub const POD_NAMESPACE_VARIABLE: &str = "POD_NAMESPACE";

/// The variable through which the operator learns the name of its own image.
pub const AGENT_IMAGE_VARIABLE: &str = "QUORATE_AGENT_IMAGE";

/// On a Lease that its holder let go of after it had stopped leading; the value is the uid of that
/// very Lease.
pub const RELEASED_ANNOTATION: &str = "quorate.appdelivery.cncf.io/released";

/// The API group of etcd's kinds.
pub const ETCD_GROUP: &str = "etcd.appdelivery.cncf.io";
/// The API group of the example application.
pub const APP_GROUP: &str = "example-app.appdelivery.cncf.io";

/// The most characters that the name of an EtcdCluster may have: what is named after it gets a
/// dash and up to ten more, and 63 is the most that a Service or a label can take.
pub const MAX_CLUSTER_NAME_LENGTH: usize = 52;
/// The most characters that the name of an ExampleApp may have: its EtcdCluster is named after it,
/// and what is named after that one needs room, too.
pub const MAX_APP_NAME_LENGTH: usize = 40;
/// The most characters that the name of an EtcdMember may have: its pod's host name is the same.
pub const MAX_MEMBER_NAME_LENGTH: usize = 63;

/// The recommended label for an application's name; the only one that selectors use, because a
/// selector can never change.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// The recommended label for a part of an application.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// The recommended label for the whole that a part belongs to.
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// The recommended label for a version.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";
/// The recommended label for the tool that an object is managed with.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The recommended label for one of several installations of the same application.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// On everything of an EtcdCluster: its name.
pub const CLUSTER_LABEL: &str = "etcd.appdelivery.cncf.io/cluster";
/// On everything of a member: its name.
pub const MEMBER_LABEL: &str = "etcd.appdelivery.cncf.io/member";
/// On the pod of a member that votes, and on no other: what a disruption budget counts.
pub const ROLE_LABEL: &str = "etcd.appdelivery.cncf.io/role";
/// The value of that label.
pub const VOTER: &str = "voter";
/// On everything of an EtcdCluster: its uid. Another of the same name is another cluster.
pub const CLUSTER_UID_LABEL: &str = "etcd.appdelivery.cncf.io/cluster-uid";
/// What holds a member's first pod back until it was written down.
pub const SCHEDULING_GATE: &str = "etcd.appdelivery.cncf.io/start-recorded";
/// On a member's pod: a word for the spec that it was made from.
pub const POD_TEMPLATE_HASH_ANNOTATION: &str = "etcd.appdelivery.cncf.io/pod-template-hash";
/// On a member's pod: the part of the spec that it was made from, so that there is something to go back to.
pub const POD_TEMPLATE_ANNOTATION: &str = "etcd.appdelivery.cncf.io/pod-template";
/// On a member's pod: a word for whom it was started to trust.
pub const TRUST_BUNDLE_HASH_ANNOTATION: &str = "etcd.appdelivery.cncf.io/trust-bundle-hash";
/// On an EtcdCluster: whoever gives it another value asks for new certificate authorities.
pub const ROTATE_CA_ANNOTATION: &str = "etcd.appdelivery.cncf.io/rotate-ca";
/// The port of etcd for clients.
pub const ETCD_CLIENT_PORT: u16 = 2379;
/// The port of etcd for other members.
pub const ETCD_PEER_PORT: u16 = 2380;
/// The port of etcd for probes and metrics, in the clear.
pub const ETCD_METRICS_PORT: u16 = 2381;

/// The host of a member, as the other members and clients know it: that of its own Service. It stands in its
/// certificate.
#[must_use]
pub fn member_host(member: &str, namespace: &str) -> String {
    format!("{member}.{namespace}.svc")
}

/// The Service for the clients of a cluster. The one for its members is called like the cluster.
#[must_use]
pub fn client_service(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// The Secret with all that an application needs to connect to a cluster.
#[must_use]
pub fn client_secret(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// The Secret with the authorities of a cluster.
#[must_use]
pub fn ca_secret(cluster: &str) -> String {
    format!("{cluster}-ca")
}

/// The Secret with the certificates of a member.
#[must_use]
pub fn member_secret(member: &str) -> String {
    format!("{member}-tls")
}

/// The Certificate of cert-manager for somebody on one side of TLS, and the Secret that it is put into.
#[must_use]
pub fn cert_manager_certificate(whose: &str, side: &str) -> String {
    format!("{whose}-issued-{side}")
}

/// The image that goes with this release.
#[must_use]
pub fn image() -> String {
    format!("{OPERATOR}/{OPERATOR}:v{VERSION}")
}

/// Whether Kubernetes takes `text` as the name of a namespace or of a Service.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// Whether Kubernetes takes `text` as the name of a Lease: labels with dots between them.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// Whether Kubernetes takes `text` as the name of a Service: a label that begins with a letter.
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
    fn the_names_we_ship_are_names_that_kubernetes_takes() {
        assert!(is_dns_label(NAMESPACE));
        assert!(is_dns_subdomain(LEASE));
        assert!(is_dns_label(OPERATOR));
    }

    #[test]
    fn a_name_that_kubernetes_would_refuse_is_refused_here() {
        for bad in ["", "-a", "a-", "A", "a_b", "a b", "a.b", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad:?} was taken as a label");
        }
        for bad in ["", ".", "a.", ".a", "a..b", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad:?} was taken as a subdomain");
        }
        assert!(is_dns_subdomain("a.b-c.1"));
    }
}
