//! Sysctls that the cluster changes: recorded before the first change, restored by `down`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::paths::Paths;

/// Sysctls that the kubelet, kube-proxy, the CNI plugins or this tool write.
const TOUCHED: [&str; 9] = [
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/conf/all/route_localnet",
];

/// Recorded values, with the ID of the boot in which they were read.
#[derive(Serialize, Deserialize)]
struct Record {
    boot: String,
    values: BTreeMap<String, String>,
}

/// Records the current values, unless an earlier run has recorded them.
///
/// # Errors
/// If they cannot be written.
pub fn record(paths: &Paths) -> Result<()> {
    if recorded(paths).is_some() {
        return Ok(());
    }
    let values = TOUCHED.iter().filter_map(|name| Some(((*name).to_owned(), read(name)?)));
    let record = Record { boot: boot(), values: values.collect() };
    files::write(&paths.sysctls_before(), serde_json::to_vec_pretty(&record)?)
}

/// None without a record, or if the machine was rebooted since: the reboot has reset the values,
/// and the current ones are the administrator's.
fn recorded(paths: &Paths) -> Option<Record> {
    let text = std::fs::read(paths.sysctls_before()).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    (record.boot == boot()).then_some(record)
}

fn boot() -> String {
    read("kernel/random/boot_id").unwrap_or_default()
}

/// Enables IP forwarding between pods.
///
/// # Errors
/// If the kernel rejects it.
pub fn allow_forwarding() -> Result<()> {
    write("net/ipv4/ip_forward", "1")
}

/// Restores the recorded values, if there are any.
///
/// # Errors
/// If the kernel rejects a recorded value.
pub fn restore(paths: &Paths) -> Result<()> {
    let Some(record) = recorded(paths) else { return Ok(()) };
    for (name, value) in record.values {
        if read(&name).as_ref() != Some(&value) {
            write(&name, &value)?;
        }
    }
    Ok(())
}

fn file(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}

fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(file(name)).ok().map(|value| value.trim().to_owned())
}

fn write(name: &str, value: &str) -> Result<()> {
    std::fs::write(file(name), value).with_context(|| format!("cannot set {name} to {value}"))
}
