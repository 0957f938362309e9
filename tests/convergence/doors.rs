//! How members are called in this world, by clients and by each other, and whether etcd asks for users. What pods are made to
//! take is asked of the very function that the operator asks.

use quorate::etcd_cluster::plan::{Plan, Step};
use quorate::etcd_cluster::state::{AuthState, MemberName};
use quorate::etcd_cluster::transport::{
    ClientListeners, Scheme, initial_scheme, listeners, needs_peer_certs, new_member_scheme,
    next_scheme,
};

use super::{Process, World};

/// What a pod is made to take, and what it can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Door {
    clients: ClientListeners,
    peer: Scheme,
    keys: bool,
}

/// What is wanted, and what was told.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is or is not the case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Doors {
    /// Whether anybody changes any of this.
    may: bool,
    clients: Scheme,
    peers: Scheme,
    /// What applications are told, as it was written down.
    told: Option<Scheme>,
    /// Whether they were told so a short while ago.
    recent: bool,
    /// Whether etcd shall ask for users, and does.
    wants_users: bool,
    asks: bool,
    /// Whether it knows those whom it must know.
    knows: bool,
    /// Whether root's password is that of the Secret, and whether there is a Secret.
    right: bool,
    has_no_secret: bool,
}

/// What can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The user wants clients to call in the other way.
    Clients,
    /// The user wants members to call each other in the other way.
    Peers,
    /// The user wants users to be asked for, or not any more.
    Users,
    /// Another password is in the Secret.
    Password,
    /// The Secret is deleted, or made.
    Secret,
    /// Somebody switches etcd by hand.
    ByHand,
}

impl World {
    /// The same world, in which users change their minds about this.
    pub(crate) fn with_doors(mut self) -> Self {
        self.doors.may = true;
        self
    }

    pub(crate) const fn has_doors(&self) -> bool {
        self.doors.may
    }

    pub(super) fn turns(&self) -> Vec<Turn> {
        if !self.doors.may || self.record.cluster_id.is_none() {
            return Vec::new();
        }
        let mut turns = vec![Turn::Clients, Turn::Peers];
        if self.doors.clients == Scheme::Https {
            turns.extend([Turn::Users, Turn::Password, Turn::Secret]);
        }
        let is_closed = || self.pods_take().all(|it| it == ClientListeners::Only(Scheme::Https));
        if self.doors.asks || self.doors.knows && is_closed() {
            turns.push(Turn::ByHand);
        }
        turns
    }

    pub(super) fn turn(&mut self, turn: Turn) {
        let doors = &mut self.doors;
        match turn {
            Turn::Clients => {
                doors.clients = doors.clients.other();
                // Nobody may want both.
                doors.wants_users &= doors.clients == Scheme::Https;
            }
            Turn::Peers => doors.peers = doors.peers.other(),
            Turn::Users => doors.wants_users = !doors.wants_users,
            Turn::Password => doors.right = false,
            Turn::Secret => doors.has_no_secret = !doors.has_no_secret,
            Turn::ByHand => doors.asks = !doors.asks,
        }
    }

    /// The user sees that a Secret is missing.
    pub(super) fn give_secret(&mut self) {
        self.doors.has_no_secret = false;
    }

    pub(super) fn forget_told(&mut self) {
        self.doors.told = None;
    }

    /// The doors of all pods but those on lost nodes.
    fn standing(&self) -> impl Iterator<Item = &Door> {
        let stands = |name: &MemberName| self.pods.get(name) != Some(&Process::Lost);
        self.doors_of.iter().filter(move |(name, _)| stands(name)).map(|(_, it)| it)
    }

    fn pods_take(&self) -> impl Iterator<Item = ClientListeners> {
        self.standing().map(|it| it.clients)
    }

    fn told(&self) -> Scheme {
        let Doors { clients, told, .. } = self.doors;
        told.unwrap_or_else(|| initial_scheme(clients, &self.pods_take().collect::<Vec<_>>()))
    }

    fn open(&self) -> ClientListeners {
        let Doors { clients, recent, .. } = self.doors;
        listeners(clients, self.told(), recent, &self.pods_take().collect::<Vec<_>>())
    }

    /// Whether clients shall follow, or have time to.
    pub(super) fn clients_move(&self) -> bool {
        self.told() != self.doors.clients
            || self.doors.recent && self.open() == ClientListeners::Both
    }

    pub(super) const fn wanted_peers(&self) -> Scheme {
        self.doors.peers
    }

    pub(super) fn address(&self, name: &MemberName) -> Scheme {
        self.addresses.get(name).copied().unwrap_or_else(|| self.new_member_scheme())
    }

    pub(super) fn new_member_scheme(&self) -> Scheme {
        new_member_scheme(self.doors.peers, self.standing().all(|it| it.keys))
    }

    /// What a pod is made to take now.
    pub(super) fn door(&self, name: &MemberName) -> Door {
        let listening = self.standing().map(|it| it.peer);
        let keys =
            needs_peer_certs(self.doors.peers, self.addresses.values().copied().chain(listening));
        Door { clients: self.open(), peer: self.address(name), keys }
    }

    /// Whether an address was written down that etcd does not list yet.
    fn is_half_written(&self, name: &MemberName) -> bool {
        let listed = self.list.iter().find(|it| it.name == *name).map(|it| it.peer);
        self.addresses.get(name).is_some_and(|it| Some(*it) != listed)
    }

    pub(super) fn readdress(&mut self, name: &MemberName, scheme: Scheme) {
        let half = self.is_half_written(name);
        let all_are_up = self.voters().all(|it| self.is_up(&it.name));
        let has_keys = |it: &&MemberName| self.doors_of.get(*it).is_none_or(|it| it.keys);
        let all_have_keys = self.list.iter().map(|it| &it.name).all(|it| has_keys(&it));
        let begins = self.address(name) != scheme;
        let Some(entry) = self.list.iter_mut().find(|it| it.name == *name) else { return };
        if entry.learner {
            self.broken = Some(format!("{name} listens, and its address is changed"));
        }
        if begins && !half && !all_are_up {
            self.broken = Some(format!("the address of {name} is changed beside one that is down"));
        }
        if scheme == Scheme::Https && !all_have_keys {
            self.broken = Some(format!("{name} is called with TLS by one that has no certificate"));
        }
        entry.peer = scheme;
        self.addresses.insert(name.clone(), scheme);
    }

    /// A step of which one call was made, and no other.
    pub(crate) fn half_done(&self, plan: &Plan) -> Option<Self> {
        let Step::UpdatePeerUrl(name, scheme) = &plan.step else { return self.half_tended(plan) };
        let mut half = self.after(plan, plan.tasks.len());
        half.addresses.insert(name.clone(), *scheme);
        half.live();
        Some(half)
    }

    pub(super) fn auth(&self) -> AuthState {
        let Doors { wants_users, asks, knows, right, has_no_secret, .. } = self.doors;
        let wanted = wants_users && self.open() == ClientListeners::Only(Scheme::Https);
        match (wanted, asks) {
            (false, false) => AuthState::InSync,
            (false, true) => AuthState::EnabledUnexpectedly,
            (true, _) if has_no_secret => AuthState::RootPasswordMissing,
            (true, true) if right => AuthState::InSync,
            (true, true) => AuthState::RootPasswordMismatch,
            (true, false) if knows => AuthState::UsersReady,
            (true, false) => AuthState::UsersMissing,
        }
    }

    pub(super) const fn make_users(&mut self) {
        self.doors.knows = true;
        self.doors.right = true;
    }

    pub(super) fn enable_auth(&mut self) {
        if self.pods_take().any(|it| it.accepts(Scheme::Http)) {
            self.broken = Some("users are asked for where nobody can be known".to_owned());
        }
        if !self.doors.knows {
            self.broken = Some("users are asked for, and nobody is known".to_owned());
        }
        self.doors.asks = true;
        self.doors.right = true;
    }

    pub(super) const fn disable_auth(&mut self) {
        self.doors.asks = false;
    }

    /// At the end of a pass it is written down what applications are told.
    pub(super) fn tell_clients(&mut self) {
        if self.record.cluster_id.is_none() {
            return;
        }
        let before = self.told();
        let pods: Vec<ClientListeners> = self.pods_take().collect();
        let well = self.answers() && self.voters().all(|it| self.is_up(&it.name));
        let next = next_scheme(self.doors.clients, before, well, &pods);
        self.doors.recent |= next != before;
        self.doors.told = Some(next);
    }

    pub(super) const fn time_goes_by(&mut self) {
        self.doors.recent = false;
    }

    /// Nobody is cut off: neither applications, nor members, nor the operator.
    pub(super) fn live_with_doors(&mut self) {
        let runs = |name: &MemberName| matches!(self.pods.get(name), Some(Process::Running { .. }));
        let running: Vec<(&MemberName, &Door)> =
            self.doors_of.iter().filter(|(name, _)| runs(name)).collect();
        if let Some(told) = self.doors.told
            && let Some((name, _)) = running.iter().find(|(_, it)| !it.clients.accepts(told))
        {
            self.broken = Some(format!("applications call {told:?}, and {name} does not take it"));
            return;
        }
        let called = running.iter().find(|(_, it)| it.peer == Scheme::Https);
        let without = running.iter().find(|(_, it)| !it.keys);
        if let (Some((called, _)), Some((without, _))) = (called, without) {
            self.broken = Some(format!("{without} cannot call {called}"));
            return;
        }
        let is_open = |it: &Door| it.clients == ClientListeners::Only(Scheme::Http);
        if self.doors.asks && running.iter().any(|(_, it)| is_open(it)) {
            self.broken =
                Some("users are asked for, and a member cannot know the operator".to_owned());
        }
    }

    /// Whether everybody is called as it is wanted, and asked for if that is wanted.
    pub(super) fn is_called_as_wanted(&self) -> bool {
        let Doors { clients, peers, wants_users, asks, .. } = self.doors;
        let all = self.list.iter().all(|it| it.peer == peers && self.address(&it.name) == peers);
        all && self.told() == clients && wants_users == asks
    }
}
