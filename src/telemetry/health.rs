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
    /// Open once the API server has answered. It stays open when the API server goes away later:
    /// taking every replica out of service would help nobody.
    KubernetesApi,
}

impl Gate {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::KubernetesApi => "kubernetes-api",
        }
    }

    const fn when_closed(self) -> &'static str {
        match self {
            Self::Running => "the process was told to stop",
            Self::KubernetesApi => "the API server has not answered yet",
        }
    }
}

/// The gates of this process. Copies see the same gates.
#[derive(Clone, Debug)]
pub(crate) struct Gates(Arc<watch::Sender<State>>);

/// Which gates are open at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    running: bool,
    kubernetes_api: bool,
}

impl Gates {
    /// The gates of a process that has just begun.
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State {
            running: true,
            kubernetes_api: false,
        })))
    }

    /// Opens a gate.
    pub(crate) fn open(&self, gate: Gate) {
        self.turn(gate, true);
    }

    /// Closes a gate.
    pub(crate) fn close(&self, gate: Gate) {
        self.turn(gate, false);
    }

    /// How the gates stand now.
    pub(crate) fn state(&self) -> State {
        *self.0.borrow()
    }

    fn turn(&self, gate: Gate, open: bool) {
        self.0.send_modify(|state| match gate {
            Gate::Running => state.running = open,
            Gate::KubernetesApi => state.kubernetes_api = open,
        });
    }
}

impl State {
    /// Every gate, in the order in which they are told. Taken apart whole, so that a new gate
    /// cannot be forgotten here.
    const fn all(self) -> [(Gate, bool); 2] {
        let Self {
            running,
            kubernetes_api,
        } = self;
        [
            (Gate::Running, running),
            (Gate::KubernetesApi, kubernetes_api),
        ]
    }

    /// Whether every gate is open.
    pub(crate) fn ready(self) -> bool {
        self.all().into_iter().all(|(_, open)| open)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (gate, open) in self.all() {
            if open {
                writeln!(f, "[open]   {}", gate.name())?;
            } else {
                writeln!(f, "[closed] {}: {}", gate.name(), gate.when_closed())?;
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
        let gates = Gates::new();
        assert!(!gates.state().ready());
        gates.open(Gate::KubernetesApi);
        assert!(gates.state().ready());
        gates.close(Gate::Running);
        assert!(!gates.state().ready());
        let told = gates.state().to_string();
        assert!(
            told.contains("[closed] running: the process was told to stop"),
            "{told}"
        );
        assert!(told.contains("[open]   kubernetes-api\n"), "{told}");
    }
}
