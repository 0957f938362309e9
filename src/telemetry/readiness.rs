//! Readiness as named gates: the replica is ready when every required gate is open.
//!
//! Holding the Lease is no gate: a follower is ready too.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// A condition of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Open until shutdown starts.
    Running,
    /// Open once the API server has accepted a request. It stays open when the API server becomes
    /// unreachable later: removing every replica from the Service would not help.
    KubernetesApi,
    /// Open once the serving certificate is valid and its CA is in the CA bundles of the API
    /// server. It stays open when a bundle is changed later: without endpoints no webhook request
    /// could be answered at all, and the leader repairs the bundle.
    Certificate,
}

/// The state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    Open,
    Closed,
    /// Closed, because the API server forbids the request: user action required.
    Forbidden,
    /// Not a condition of this process.
    NotRequired,
}

impl Gate {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::KubernetesApi => "kubernetes-api",
            Self::Certificate => "certificate",
        }
    }

    const fn message(self, state: GateState) -> Option<&'static str> {
        match (self, state) {
            (_, GateState::Open | GateState::NotRequired) => None,
            (Self::Running, GateState::Closed | GateState::Forbidden) => {
                Some("the process is shutting down")
            }
            (Self::KubernetesApi, GateState::Closed) => {
                Some("waiting for the first response of the API server")
            }
            (Self::KubernetesApi, GateState::Forbidden) => {
                Some("the API server rejects requests; see the log")
            }
            (Self::Certificate, GateState::Closed) => {
                Some("waiting for a serving certificate that the API server trusts")
            }
            (Self::Certificate, GateState::Forbidden) => {
                Some("no serving certificate can be obtained; see the log")
            }
        }
    }
}

/// The gates of this process. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Gates(Arc<watch::Sender<Readiness>>);

/// The state of all gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    running: GateState,
    kubernetes_api: GateState,
    certificate: GateState,
}

impl Gates {
    /// The gates of a process that has just started and waits for `required`.
    pub(crate) fn new(required: &[Gate]) -> Self {
        let gates = Self(Arc::new(watch::Sender::new(Readiness {
            running: GateState::Open,
            kubernetes_api: GateState::NotRequired,
            certificate: GateState::NotRequired,
        })));
        for gate in required {
            gates.0.send_modify(|state| *state.gate_state(*gate) = GateState::Closed);
        }
        gates
    }

    /// Opens a gate.
    pub(crate) fn open(&self, gate: Gate) {
        self.set(gate, |_| GateState::Open);
    }

    /// Closes a gate.
    pub(crate) fn close(&self, gate: Gate) {
        self.set(gate, |_| GateState::Closed);
    }

    /// Records why a closed gate stays closed. An open gate stays open.
    pub(crate) fn forbidden(&self, gate: Gate) {
        self.set(gate, |gate_state| match gate_state {
            GateState::Open => GateState::Open,
            GateState::Closed | GateState::Forbidden | GateState::NotRequired => {
                GateState::Forbidden
            }
        });
    }

    /// The current state.
    pub(crate) fn state(&self) -> Readiness {
        *self.0.borrow()
    }

    fn set(&self, gate: Gate, to: impl Fn(GateState) -> GateState) {
        self.0.send_modify(|state| {
            let gate_state = state.gate_state(gate);
            if *gate_state != GateState::NotRequired {
                *gate_state = to(*gate_state);
            }
        });
    }
}

impl Readiness {
    const fn gate_state(&mut self, gate: Gate) -> &mut GateState {
        match gate {
            Gate::Running => &mut self.running,
            Gate::KubernetesApi => &mut self.kubernetes_api,
            Gate::Certificate => &mut self.certificate,
        }
    }

    /// Every gate, in the order of the report. Destructured, so that a new gate cannot be forgotten
    /// here.
    const fn all(self) -> [(Gate, GateState); 3] {
        let Self { running, kubernetes_api, certificate } = self;
        [
            (Gate::Running, running),
            (Gate::KubernetesApi, kubernetes_api),
            (Gate::Certificate, certificate),
        ]
    }

    /// Whether every gate is open.
    pub(crate) fn ready(self) -> bool {
        self.all()
            .into_iter()
            .all(|(_, gate_state)| matches!(gate_state, GateState::Open | GateState::NotRequired))
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let required =
            self.all().into_iter().filter(|(_, gate_state)| *gate_state != GateState::NotRequired);
        for (gate, gate_state) in required {
            match gate.message(gate_state) {
                None => writeln!(f, "[+]{} ok", gate.name())?,
                Some(message) => writeln!(f, "[-]{} failed: {message}", gate.name())?,
            }
        }
        writeln!(f, "{}", if self.ready() { "readyz check passed" } else { "readyz check failed" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_closed_gate_makes_the_replica_unready_and_is_named() {
        let gates = Gates::new(&[Gate::KubernetesApi]);
        assert!(!gates.state().ready());
        gates.open(Gate::KubernetesApi);
        assert!(gates.state().ready());
        gates.close(Gate::Running);
        assert!(!gates.state().ready());
        let text = gates.state().to_string();
        assert!(text.contains("[-]running failed: the process is shutting down"), "{text}");
        assert!(text.contains("[+]kubernetes-api ok\n"), "{text}");
    }

    #[test]
    fn forbidden_has_its_own_message_and_does_not_close_an_open_gate() {
        let gates = Gates::new(&[Gate::KubernetesApi]);
        assert!(gates.state().to_string().contains("waiting for the first response"));
        gates.forbidden(Gate::KubernetesApi);
        let text = gates.state().to_string();
        assert!(text.contains("[-]kubernetes-api failed: the API server rejects"), "{text}");
        gates.open(Gate::KubernetesApi);
        gates.forbidden(Gate::KubernetesApi);
        assert!(gates.state().ready());
    }
}
