//! The flags of etcd for one member.
//! Comes in: a blueprint, a member, and who the members are. Goes out: flags, but for how it starts,
//! which the agent adds. May touch: `api`; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::metadata::scheme;
use super::tune::{self, Setting};
use super::volumes::{DATA, TLS};
use super::{Blueprint, NotInThisRelease};
use crate::api::names;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::identity::keys;
use crate::etcd_cluster::seen::Name;

/// A member, and its peer URL.
pub(crate) type Peer = (Name, String);

impl Blueprint<'_> {
    /// The flags of a member. `peers` are all members that etcd lists, or those who found the cluster;
    /// whether it is one of them itself makes no difference.
    pub(crate) fn flags(
        &self,
        member: &Name,
        peers: &[Peer],
    ) -> Result<Vec<String>, NotInThisRelease> {
        let Self {
            name,
            namespace,
            uid,
            spec,
            found,
            doors: _,
            named: _,
            agent_image: _,
            agent_pull_policy: _,
        } = *self;
        // etcd listens on every address of both families if it is told to on all of one.
        let listen = |scheme: Scheme, port: u16| format!("{}://0.0.0.0:{port}", scheme.word());
        // etcd tells those who come to one port in both ways apart.
        let clients = |url: &dyn Fn(Scheme) -> String| {
            self.clients().schemes().map(url).collect::<Vec<_>>().join(",")
        };
        let mut flags = vec![
            flag("name", member),
            flag("data-dir", DATA),
            flag("listen-client-urls", &clients(&|it| listen(it, names::ETCD_CLIENT_PORT))),
            flag("advertise-client-urls", &clients(&|it| self.client_url_by(it, member))),
            flag("listen-peer-urls", &listen(self.peer_scheme(member), names::ETCD_PEER_PORT)),
            flag("initial-advertise-peer-urls", &self.peer_url(member)),
            flag("initial-cluster", &self.initial_cluster(member, peers)),
            // Another cluster of the same name must not be taken for this one.
            flag("initial-cluster-token", &format!("{namespace}-{name}-{uid}")),
            // In the clear, for probes: the kubelet has no certificate. Nothing of the data is there.
            flag("listen-metrics-urls", &listen(Scheme::Http, names::ETCD_METRICS_PORT)),
            flag("strict-reconfig-check", &true),
            flag("logger", "zap"),
        ];
        flags.extend(self.protected());
        let settings = tune::settings(spec, found)?.into_iter();
        flags.extend(settings.map(|Setting { option, value, why: _ }| flag(option, &value)));
        Ok(flags)
    }

    fn initial_cluster(&self, member: &Name, peers: &[Peer]) -> String {
        let own = (member.clone(), self.peer_url(member));
        let others = peers.iter().filter(|(name, _)| name != member);
        let mut all: Vec<&Peer> = others.chain([&own]).collect();
        // The same members make the same pod, in whatever order they were listed.
        all.sort();
        let words: Vec<String> = all.iter().map(|(name, url)| format!("{name}={url}")).collect();
        words.join(",")
    }

    fn protected(&self) -> Vec<String> {
        let file = |key: &str| format!("{TLS}/{key}");
        let mut flags = Vec::new();
        let (client, peer) = (self.needs_server_keys(), self.needs_peer_keys());
        if client {
            flags.extend([
                flag("cert-file", &file(keys::SERVER.certificate)),
                flag("key-file", &file(keys::SERVER.key)),
                flag("client-cert-auth", &true),
                flag("trusted-ca-file", &file(keys::CLIENT_CA)),
            ]);
        }
        if peer {
            flags.extend([
                flag("peer-cert-file", &file(keys::PEER.certificate)),
                flag("peer-key-file", &file(keys::PEER.key)),
                flag("peer-client-cert-auth", &true),
                flag("peer-trusted-ca-file", &file(keys::PEER_CA)),
                // Who has a certificate of this authority is a member: nobody else is given one. etcd would
                // also look its name up, and names lag seconds behind a pod that has just come.
                flag(tune::trusts_its_authority(self.spec.version.minor()), &true),
            ]);
        }
        if peer && self.named {
            // Others are given certificates of somebody else's authority, too: only who shows the cluster's name is a member.
            let host = names::member_host(self.name, self.namespace);
            flags.push(flag("peer-cert-allowed-hostname", &host));
        }
        if client || peer {
            // As etcd does by itself, but said: 1.3 alone would lock out clients that are still in use.
            flags.push(flag("tls-min-version", "TLS1.2"));
        }
        flags
    }

    /// Whether any client calls in a way that needs a certificate.
    pub(super) fn needs_server_keys(&self) -> bool {
        self.clients().takes(Scheme::Https)
    }

    /// Whether any member calls another, or is called, in a way that needs a certificate.
    pub(super) fn needs_peer_keys(&self) -> bool {
        let wanted = scheme(&self.spec.peer_tls) == Scheme::Https;
        self.doors.map_or(wanted, |it| it.keys)
    }
}

fn flag(name: &str, value: &(impl ToString + ?Sized)) -> String {
    format!("--{name}={}", value.to_string())
}
