//! A real single-node Kubernetes on a bare Debian machine.
//!
//! ```text
//!  up:   host -> binaries -> (stale_resources) -> network -> pki -> components -> manifests
//!        -> baseline
//!  down: stale_resources
//! ```
//!
//! | topic                              | file                            |
//! | ---------------------------------- | ------------------------------- |
//! | order of the start                 | `up.rs`                         |
//! | flags of a component               | `components/kubelet.rs`, others |
//! | Go binaries                        | `binaries.rs`, `programs/`      |
//! | images and their content           | `images/catalog.rs`             |
//! | removal of what a crash can leave  | `stale_resources.rs`            |
//! | volumes with an enforced size      | `volumes.rs`                    |
//!
//! Only `install` knows the product.

pub mod binaries;
pub mod cgroups;
pub mod command;
pub mod components;
pub mod down;
pub mod files;
pub mod go;
pub mod host;
pub mod images;
pub mod install;
pub mod kubeconfig;
pub mod kubectl;
pub mod locks;
pub mod network;
pub mod paths;
pub mod pki;
pub mod preflight;
pub mod processes;
pub mod progress;
pub mod reset;
pub mod s3;
pub mod settings;
pub mod stale_resources;
pub mod sysctls;
pub mod up;
pub mod volumes;
pub mod wait;
