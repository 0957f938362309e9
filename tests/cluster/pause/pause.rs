//! The first process of every pod sandbox: it holds the pod's namespaces open and waits.
//!
//! A package of its own, so that it is built in a second and stays tiny. The runtime ends it with SIGKILL,
//! so it handles no signal.

fn main() {
    loop {
        std::thread::park();
    }
}
