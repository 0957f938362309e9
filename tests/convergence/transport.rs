//! TLS and authentication in the model. The schemes of a pod come from the same functions that the
//! operator uses.

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::{AuthState, MemberName};
use quorate::etcd_cluster::transport::{
    ClientListeners, Scheme, initial_scheme, listeners, needs_peer_certs, new_member_scheme,
    next_scheme,
};

use super::{Entry, Model, Process};

/// What a pod listens on, and whether it can dial peers with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodTransport {
    clients: ClientListeners,
    peer_scheme: Scheme,
    has_certs: bool,
}

/// The spec, and what is recorded.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    /// Whether any of this is changed.
    enabled: bool,
    client_scheme: Scheme,
    peer_scheme: Scheme,
    /// The recorded scheme that is advertised to clients.
    advertised: Option<Scheme>,
    /// Whether it changed a short time ago.
    in_overlap: bool,
    /// Whether authentication is desired, and enabled.
    auth_desired: bool,
    auth_enabled: bool,
    /// Whether the required users exist.
    users_exist: bool,
    /// Whether root's password is that of the Secret, and whether the Secret is missing.
    password_matches: bool,
    secret_missing: bool,
}

/// A change of TLS or authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessChange {
    /// The user switches TLS for clients.
    ClientTls,
    /// The user switches TLS for peers.
    PeerTls,
    /// The user enables or disables authentication.
    Auth,
    /// The Secret gets another password.
    Password,
    /// The Secret is deleted, or created.
    Secret,
    /// A client switches authentication in etcd.
    AuthInEtcd,
}

impl Model {
    /// The model with changes of TLS and authentication.
    pub(crate) fn with_access_changes(mut self) -> Self {
        self.access.enabled = true;
        self
    }

    pub(crate) const fn has_access_changes(&self) -> bool {
        self.access.enabled
    }

    pub(super) fn access_changes(&self) -> Vec<AccessChange> {
        if !self.access.enabled || self.bootstrap.cluster_id.is_none() {
            return Vec::new();
        }
        let mut changes = vec![AccessChange::ClientTls, AccessChange::PeerTls];
        if self.access.client_scheme == Scheme::Https {
            changes.extend([AccessChange::Auth, AccessChange::Password, AccessChange::Secret]);
        }
        let is_tls_only =
            || self.client_listeners().all(|pod| pod == ClientListeners::Only(Scheme::Https));
        if self.access.auth_enabled || self.access.users_exist && is_tls_only() {
            changes.push(AccessChange::AuthInEtcd);
        }
        changes
    }

    pub(super) fn change_access(&mut self, change: AccessChange) {
        let access = &mut self.access;
        match change {
            AccessChange::ClientTls => {
                access.client_scheme = access.client_scheme.other();
                // Validation rejects authentication without TLS.
                access.auth_desired &= access.client_scheme == Scheme::Https;
            }
            AccessChange::PeerTls => access.peer_scheme = access.peer_scheme.other(),
            AccessChange::Auth => access.auth_desired = !access.auth_desired,
            AccessChange::Password => access.password_matches = false,
            AccessChange::Secret => access.secret_missing = !access.secret_missing,
            AccessChange::AuthInEtcd => access.auth_enabled = !access.auth_enabled,
        }
    }

    /// The user creates the missing Secret.
    pub(super) fn restore_secret(&mut self) {
        self.access.secret_missing = false;
    }

    pub(super) fn lose_client_status(&mut self) {
        self.access.advertised = None;
    }

    /// The transports of all pods except those on lost nodes.
    fn live_transports(&self) -> impl Iterator<Item = &PodTransport> {
        let is_live = |name: &MemberName| self.pods.get(name) != Some(&Process::NodeLost);
        self.pod_transports.iter().filter(move |(name, _)| is_live(name)).map(|(_, pod)| pod)
    }

    fn client_listeners(&self) -> impl Iterator<Item = ClientListeners> {
        self.live_transports().map(|pod| pod.clients)
    }

    fn advertised(&self) -> Scheme {
        let Access { client_scheme, advertised, .. } = self.access;
        advertised.unwrap_or_else(|| {
            initial_scheme(client_scheme, &self.client_listeners().collect::<Vec<_>>())
        })
    }

    fn desired_listeners(&self) -> ClientListeners {
        let Access { client_scheme, in_overlap, .. } = self.access;
        listeners(
            client_scheme,
            self.advertised(),
            in_overlap,
            &self.client_listeners().collect::<Vec<_>>(),
        )
    }

    /// Whether clients have yet to follow, or have time to.
    pub(super) fn client_tls_transition(&self) -> bool {
        self.advertised() != self.access.client_scheme
            || self.access.in_overlap && self.desired_listeners() == ClientListeners::Both
    }

    pub(super) const fn desired_peer_scheme(&self) -> Scheme {
        self.access.peer_scheme
    }

    pub(super) fn peer_scheme_of(&self, name: &MemberName) -> Scheme {
        self.peer_schemes.get(name).copied().unwrap_or_else(|| self.new_member_scheme())
    }

    pub(super) fn new_member_scheme(&self) -> Scheme {
        new_member_scheme(self.access.peer_scheme, self.live_transports().all(|pod| pod.has_certs))
    }

    /// The transport of a new pod.
    pub(super) fn transport_of(&self, name: &MemberName) -> PodTransport {
        let listening = self.live_transports().map(|pod| pod.peer_scheme);
        let has_certs = needs_peer_certs(
            self.access.peer_scheme,
            self.peer_schemes.values().copied().chain(listening),
        );
        PodTransport {
            clients: self.desired_listeners(),
            peer_scheme: self.peer_scheme_of(name),
            has_certs,
        }
    }

    /// Whether a peer scheme is recorded that etcd does not list yet.
    fn is_url_pending(&self, name: &MemberName) -> bool {
        let mut entries = self.listed.iter();
        let listed = entries.find(|entry| entry.name == *name).map(|entry| entry.peer_scheme);
        self.peer_schemes.get(name).is_some_and(|scheme| Some(*scheme) != listed)
    }

    pub(super) fn update_peer_url(&mut self, name: &MemberName, scheme: Scheme) {
        let is_pending = self.is_url_pending(name);
        let all_are_up = self.voters().all(|entry| self.is_up(&entry.name));
        let has_certs =
            |name: &MemberName| self.pod_transports.get(name).is_none_or(|pod| pod.has_certs);
        let all_have_certs = self.listed.iter().all(|entry| has_certs(&entry.name));
        let changes = self.peer_scheme_of(name) != scheme;
        let Some(entry) = self.listed.iter_mut().find(|entry| entry.name == *name) else { return };
        if entry.is_learner {
            self.violation = Some(format!("the peer URL of learner {name} is updated"));
        }
        if changes && !is_pending && !all_are_up {
            self.violation =
                Some(format!("the peer URL of {name} is updated while a voter is down"));
        }
        if scheme == Scheme::Https && !all_have_certs {
            self.violation = Some(format!("a member without a certificate must dial {name}"));
        }
        entry.peer_scheme = scheme;
        self.peer_schemes.insert(name.clone(), scheme);
    }

    /// The model after the first of two calls of a step.
    pub(crate) fn partially_applied(&self, plan: &Plan) -> Option<Self> {
        let Step::UpdatePeerUrl(name, scheme) = &plan.step else {
            return self.partially_defragmented(plan);
        };
        let mut half = self.apply(plan, plan.tasks.len());
        half.peer_schemes.insert(name.clone(), *scheme);
        half.settle();
        Some(half)
    }

    pub(super) fn auth(&self) -> AuthState {
        let Access {
            auth_desired,
            auth_enabled,
            users_exist,
            password_matches,
            secret_missing,
            ..
        } = self.access;
        let desired =
            auth_desired && self.desired_listeners() == ClientListeners::Only(Scheme::Https);
        match (desired, auth_enabled) {
            (false, false) => AuthState::InSync,
            (false, true) => AuthState::EnabledUnexpectedly,
            (true, _) if secret_missing => AuthState::RootPasswordMissing,
            (true, true) if password_matches => AuthState::InSync,
            (true, true) => AuthState::RootPasswordMismatch,
            (true, false) if users_exist => AuthState::UsersReady,
            (true, false) => AuthState::UsersMissing,
        }
    }

    pub(super) const fn ensure_users(&mut self) {
        self.access.users_exist = true;
        self.access.password_matches = true;
    }

    pub(super) fn enable_auth(&mut self) {
        if self.client_listeners().any(|pod| pod.accepts(Scheme::Http)) {
            self.violation =
                Some("authentication is enabled, and plaintext is accepted".to_owned());
        }
        if !self.access.users_exist {
            self.violation = Some("authentication is enabled, and users are missing".to_owned());
        }
        self.access.auth_enabled = true;
        self.access.password_matches = true;
    }

    pub(super) const fn disable_auth(&mut self) {
        self.access.auth_enabled = false;
    }

    /// Records the advertised scheme at the end of a reconciliation.
    pub(super) fn record_client_scheme(&mut self) {
        if self.bootstrap.cluster_id.is_none() {
            return;
        }
        let before = self.advertised();
        let pods: Vec<ClientListeners> = self.client_listeners().collect();
        let healthy = self.has_quorum() && self.voters().all(|entry| self.is_up(&entry.name));
        let next = next_scheme(self.access.client_scheme, before, healthy, &pods);
        self.access.in_overlap |= next != before;
        self.access.advertised = Some(next);
    }

    pub(super) const fn end_overlap(&mut self) {
        self.access.in_overlap = false;
    }

    /// Checks that no client and no peer is cut off, nor the operator.
    pub(super) fn check_transport(&mut self) {
        let runs = |name: &MemberName| matches!(self.pods.get(name), Some(Process::Running { .. }));
        let running: Vec<(&MemberName, &PodTransport)> =
            self.pod_transports.iter().filter(|(name, _)| runs(name)).collect();
        if let Some(advertised) = self.access.advertised
            && let Some((name, _)) =
                running.iter().find(|(_, pod)| !pod.clients.accepts(advertised))
        {
            self.violation =
                Some(format!("{advertised:?} is advertised, and {name} does not accept it"));
            return;
        }
        let with_tls = running.iter().find(|(_, pod)| pod.peer_scheme == Scheme::Https);
        let without_certs = running.iter().find(|(_, pod)| !pod.has_certs);
        if let (Some((peer, _)), Some((name, _))) = (with_tls, without_certs) {
            self.violation = Some(format!("{name} cannot dial {peer}"));
            return;
        }
        let is_plaintext = |pod: &PodTransport| pod.clients == ClientListeners::Only(Scheme::Http);
        if self.access.auth_enabled && running.iter().any(|(_, pod)| is_plaintext(pod)) {
            self.violation =
                Some("authentication is enabled, and a member cannot identify clients".to_owned());
        }
    }

    /// Whether TLS and authentication are as desired.
    pub(super) fn has_desired_access(&self) -> bool {
        let Access { client_scheme, peer_scheme, auth_desired, auth_enabled, .. } = self.access;
        let is_desired = |entry: &Entry| {
            entry.peer_scheme == peer_scheme && self.peer_scheme_of(&entry.name) == peer_scheme
        };
        let all = self.listed.iter().all(is_desired);
        all && self.advertised() == client_scheme && auth_desired == auth_enabled
    }
}
