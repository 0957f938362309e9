//! Thin typed clients of the API server, etcd, clocks and files. Each call has a timeout.
//!
//! No decision is made here, and no controller is imported.

pub(crate) mod ca_bundles;
pub(crate) mod cert_files;
pub(crate) mod clock;
pub(crate) mod crds;
pub(crate) mod error;
pub(crate) mod etcd;
pub(crate) mod fault_injection;
pub(crate) mod kube;
pub(crate) mod leader_guard;
pub(crate) mod named_object;
pub(crate) mod notify;
pub(crate) mod objects;
pub(crate) mod random;
pub(crate) mod rbac;
pub(crate) mod serving_cert;
pub(crate) mod storage_versions;
pub(crate) mod tls_probe;
pub(crate) mod watch;
