//! Readiness, as named gates: the replica is ready when every one of them is open.
//! Comes in: a gate that opens or closes, told by the room that knows. Goes out: the state of all.
//! May touch: nothing outside. Holding the lease is no gate: a replica that waits is ready too.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// A condition for being ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Open until the process is told to stop.
    Running,
    /// Open once the API server has let us do our part. It stays open when the API server goes
    /// away later: taking every replica out of service would help nobody.
    KubernetesApi,
    /// Open once the webhooks' certificate is valid and the API server trusts its authority. It
    /// stays open when that trust is meddled with later: without endpoints nobody could answer at
    /// all, and the leader mends it.
    Certificate,
}

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Open,
    Closed,
    /// Closed, because we were refused: a person must help.
    Refused,
    /// Not a condition in this process.
    Unneeded,
}

impl Gate {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::KubernetesApi => "kubernetes-api",
            Self::Certificate => "certificate",
        }
    }

    const fn words(self, stand: Stand) -> Option<&'static str> {
        match (self, stand) {
            (_, Stand::Open | Stand::Unneeded) => None,
            (Self::Running, Stand::Closed | Stand::Refused) => Some("the process was told to stop"),
            (Self::KubernetesApi, Stand::Closed) => Some("the API server has not answered yet"),
            (Self::KubernetesApi, Stand::Refused) => {
                Some("the API server refuses us; the log says what")
            }
            (Self::Certificate, Stand::Closed) => {
                Some("the webhooks have no certificate yet that the API server trusts")
            }
            (Self::Certificate, Stand::Refused) => {
                Some("the webhooks' certificate cannot be had; the log says why")
            }
        }
    }
}

/// The gates of this process. Copies see the same gates.
#[derive(Clone, Debug)]
pub(crate) struct Gates(Arc<watch::Sender<State>>);

/// How all gates stand at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    running: Stand,
    kubernetes_api: Stand,
    certificate: Stand,
}

impl Gates {
    /// The gates of a process that has just begun and waits for `needed`.
    pub(crate) fn new(needed: &[Gate]) -> Self {
        let gates = Self(Arc::new(watch::Sender::new(State {
            running: Stand::Open,
            kubernetes_api: Stand::Unneeded,
            certificate: Stand::Unneeded,
        })));
        for gate in needed {
            gates.0.send_modify(|state| *state.stand(*gate) = Stand::Closed);
        }
        gates
    }

    /// Opens a gate.
    pub(crate) fn open(&self, gate: Gate) {
        self.turn(gate, |_| Stand::Open);
    }

    /// Closes a gate.
    pub(crate) fn close(&self, gate: Gate) {
        self.turn(gate, |_| Stand::Closed);
    }

    /// Says why a closed gate stays closed. One that is open stays open.
    pub(crate) fn refused(&self, gate: Gate) {
        self.turn(gate, |stand| match stand {
            Stand::Open => Stand::Open,
            Stand::Closed | Stand::Refused | Stand::Unneeded => Stand::Refused,
        });
    }

    /// How the gates stand now.
    pub(crate) fn state(&self) -> State {
        *self.0.borrow()
    }

    fn turn(&self, gate: Gate, to: impl Fn(Stand) -> Stand) {
        self.0.send_modify(|state| {
            let stand = state.stand(gate);
            if *stand != Stand::Unneeded {
                *stand = to(*stand);
            }
        });
    }
}

impl State {
    const fn stand(&mut self, gate: Gate) -> &mut Stand {
        match gate {
            Gate::Running => &mut self.running,
            Gate::KubernetesApi => &mut self.kubernetes_api,
            Gate::Certificate => &mut self.certificate,
        }
    }

    /// Every gate, in the order in which they are told. Taken apart whole, so that a new gate
    /// cannot be forgotten here.
    const fn all(self) -> [(Gate, Stand); 3] {
        let Self { running, kubernetes_api, certificate } = self;
        [
            (Gate::Running, running),
            (Gate::KubernetesApi, kubernetes_api),
            (Gate::Certificate, certificate),
        ]
    }

    /// Whether every gate is open.
    pub(crate) fn ready(self) -> bool {
        self.all().into_iter().all(|(_, stand)| matches!(stand, Stand::Open | Stand::Unneeded))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = self.all().into_iter().filter(|(_, stand)| *stand != Stand::Unneeded);
        for (gate, stand) in needed {
            match gate.words(stand) {
                None => writeln!(f, "[open]   {}", gate.name())?,
                Some(words) => writeln!(f, "[closed] {}: {words}", gate.name())?,
            }
        }
        writeln!(f, "{}", if self.ready() { "ready" } else { "not ready" })
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
        let told = gates.state().to_string();
        assert!(told.contains("[closed] running: the process was told to stop"), "{told}");
        assert!(told.contains("[open]   kubernetes-api\n"), "{told}");
    }

    #[test]
    fn a_refusal_is_told_in_other_words_than_silence_and_closes_nothing_that_was_open() {
        let gates = Gates::new(&[Gate::KubernetesApi]);
        assert!(gates.state().to_string().contains("has not answered yet"));
        gates.refused(Gate::KubernetesApi);
        let told = gates.state().to_string();
        assert!(told.contains("[closed] kubernetes-api: the API server refuses"), "{told}");
        gates.open(Gate::KubernetesApi);
        gates.refused(Gate::KubernetesApi);
        assert!(gates.state().ready());
    }
}
