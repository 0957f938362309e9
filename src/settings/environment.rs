//! Environment variables, mounted service account and host name of the process, read once.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::{env, fs};

use crate::api::names;

const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Pod and host of the process, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// Pod name, from `POD_NAME`.
    pub(crate) pod_name: Option<String>,
    /// Pod namespace, from `POD_NAMESPACE` or the mounted service account.
    pub(crate) pod_namespace: Option<String>,
    /// Host name.
    pub(crate) host_name: Option<String>,
    /// Random per start of the process.
    pub(crate) nonce: u32,
}

impl Environment {
    /// Reads the environment.
    pub(crate) fn read() -> Self {
        Self {
            pod_name: variable(names::POD_NAME_VARIABLE),
            pod_namespace: variable(names::POD_NAMESPACE_VARIABLE)
                .or_else(|| file(SERVICE_ACCOUNT_NAMESPACE)),
            host_name: file(HOST_NAME),
            nonce: nonce(),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().and_then(|text| present(&text))
}

fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().and_then(|text| present(&text))
}

fn present(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The standard library seeds each hasher with randomness of the operating system, which is enough
/// to distinguish two processes; the value is not a secret.
fn nonce() -> u32 {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
