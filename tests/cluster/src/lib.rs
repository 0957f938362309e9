//! A real single-node Kubernetes on a bare Debian machine.
//!
//! ```text
//!  up:  machine -> programs -> (leftovers) -> network -> pki -> parts -> manifests -> baseline
//!  down: leftovers, all of them
//! ```
//!
//! | where is...                              | file                      |
//! | ---------------------------------------- | ------------------------- |
//! | the order in which things start          | `up.rs`                   |
//! | how the kubelet (or another) is set up   | `parts/kubelet.rs`        |
//! | which programs are built, and from what  | `programs.rs`, `programs/` |
//! | which images exist, and what is in them  | `images/catalog.rs`       |
//! | what a crash may leave, and its removal  | `leftovers.rs`            |
//! | volumes of real size                     | `volumes.rs`              |
//!
//! Nothing here knows the product, except `install` and `demo`, which put this checkout into the cluster.

pub mod cgroups;
pub mod command;
pub mod demo;
pub mod down;
pub mod files;
pub mod go;
pub mod images;
pub mod install;
pub mod kubeconfig;
pub mod kubectl;
pub mod leftovers;
pub mod locks;
pub mod machine;
pub mod network;
pub mod parts;
pub mod pki;
pub mod places;
pub mod preflight;
pub mod processes;
pub mod programs;
pub mod progress;
pub mod reset;
pub mod s3;
pub mod settings;
pub mod sysctls;
pub mod up;
pub mod volumes;
pub mod wait;
