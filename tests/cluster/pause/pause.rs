//! The first process of every pod sandbox, which keeps the pod's namespaces.
//!
//! A separate package, so that it builds fast and stays small. The runtime ends it with SIGKILL, so
//! it handles no signal.

fn main() {
    loop {
        std::thread::park();
    }
}
