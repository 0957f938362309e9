//! Renders the etcd flags of one member, except `--initial-cluster-state`, which the agent adds.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::metadata::scheme;
use super::options::{self, Flag};
use super::volumes::{DATA_DIR, TLS_DIR};
use super::{Blueprint, RenderError};
use crate::api::names;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::tls::secret_keys;
use crate::etcd_cluster::transport::Scheme;

/// A member, and its peer URL.
pub(crate) type Peer = (MemberName, String);

impl Blueprint<'_> {
    /// The flags of a member. `peers` are all members that etcd lists, or the initial members;
    /// whether the member itself is among them makes no difference.
    pub(crate) fn flags(
        &self,
        member: &MemberName,
        peers: &[Peer],
    ) -> Result<Vec<String>, RenderError> {
        let Self {
            name,
            namespace,
            uid,
            spec,
            measured,
            transport: _,
            requires_cluster_name: _,
            agent_image: _,
            agent_pull_policy: _,
        } = *self;
        // On 0.0.0.0 etcd listens on all addresses of both IP families.
        let listen = |scheme: Scheme, port: u16| format!("{}://0.0.0.0:{port}", scheme.as_str());
        // etcd serves both schemes on one port.
        let clients = |url: &dyn Fn(Scheme) -> String| {
            self.client_listeners().schemes().map(url).collect::<Vec<_>>().join(",")
        };
        let mut flags = vec![
            flag("name", member),
            flag("data-dir", DATA_DIR),
            flag("listen-client-urls", &clients(&|scheme| listen(scheme, names::ETCD_CLIENT_PORT))),
            flag("advertise-client-urls", &clients(&|scheme| self.client_url_with(scheme, member))),
            flag("listen-peer-urls", &listen(self.peer_scheme(member), names::ETCD_PEER_PORT)),
            flag("initial-advertise-peer-urls", &self.peer_url(member)),
            flag("initial-cluster", &self.initial_cluster(member, peers)),
            // A previous cluster with the same name must not be mistaken for this one.
            flag("initial-cluster-token", &format!("{namespace}-{name}-{uid}")),
            // Plaintext, for probes: the kubelet has no certificate. This port serves no data.
            flag("listen-metrics-urls", &listen(Scheme::Http, names::ETCD_METRICS_PORT)),
            flag("strict-reconfig-check", &true),
            flag("logger", "zap"),
        ];
        flags.extend(self.tls_flags());
        let options = options::option_flags(spec, measured)?.into_iter();
        flags.extend(options.map(|Flag { name, value, reason: _ }| flag(name, &value)));
        Ok(flags)
    }

    fn initial_cluster(&self, member: &MemberName, peers: &[Peer]) -> String {
        let own = (member.clone(), self.peer_url(member));
        let others = peers.iter().filter(|(name, _)| name != member);
        let mut all: Vec<&Peer> = others.chain([&own]).collect();
        // The same members give the same pod, in whatever order etcd lists them.
        all.sort();
        let entries: Vec<String> = all.iter().map(|(name, url)| format!("{name}={url}")).collect();
        entries.join(",")
    }

    fn tls_flags(&self) -> Vec<String> {
        let file = |key: &str| format!("{TLS_DIR}/{key}");
        let mut flags = Vec::new();
        let (client, peer) = (self.needs_server_certs(), self.needs_peer_certs());
        if client {
            flags.extend([
                flag("cert-file", &file(secret_keys::SERVER.certificate)),
                flag("key-file", &file(secret_keys::SERVER.key)),
                flag("client-cert-auth", &true),
                flag("trusted-ca-file", &file(secret_keys::CLIENT_CA)),
            ]);
        }
        if peer {
            flags.extend([
                flag("peer-cert-file", &file(secret_keys::PEER.certificate)),
                flag("peer-key-file", &file(secret_keys::PEER.key)),
                flag("peer-client-cert-auth", &true),
                flag("peer-trusted-ca-file", &file(secret_keys::PEER_CA)),
                // Only members have a certificate of this CA. etcd would also resolve the names in
                // it, and DNS lags seconds behind a pod that has just started.
                flag(options::skip_san_flag(self.spec.version.minor()), &true),
            ]);
        }
        if peer && self.requires_cluster_name {
            // An external CA issues certificates to other parties, too: only members have the
            // cluster's name.
            let host = names::member_host(self.name, self.namespace);
            flags.push(flag("peer-cert-allowed-hostname", &host));
        }
        if client || peer {
            // etcd's default, made explicit: TLS 1.3 alone would lock out clients that are still in
            // use.
            flags.push(flag("tls-min-version", "TLS1.2"));
        }
        flags
    }

    /// Whether members accept TLS from clients.
    pub(super) fn needs_server_certs(&self) -> bool {
        self.client_listeners().accepts(Scheme::Https)
    }

    /// Whether any peer connection of the member may use TLS.
    pub(super) fn needs_peer_certs(&self) -> bool {
        let desired = scheme(&self.spec.peer_tls) == Scheme::Https;
        self.transport.map_or(desired, |transport| transport.peer_certs)
    }
}

fn flag(name: &str, value: &(impl ToString + ?Sized)) -> String {
    format!("--{name}={}", value.to_string())
}
