//! Kernel settings that the cluster changes, remembered before the first change and put back at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::files;
use crate::places::Places;

/// What the kubelet, kube-proxy, the CNI plugins or this tool may write.
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

/// Remembers the present values, unless a predecessor has remembered older ones.
///
/// # Errors
/// If they cannot be written down.
pub fn remember(places: &Places) -> Result<()> {
    let record = places.sysctls_before();
    if record.exists() {
        return Ok(());
    }
    let values: BTreeMap<&str, String> = TOUCHED
        .iter()
        .filter_map(|name| Some((*name, read(name)?)))
        .collect();
    files::write(&record, serde_json::to_vec_pretty(&values)?)
}

/// Lets the machine forward packets between pods.
///
/// # Errors
/// If the kernel refuses.
pub fn allow_forwarding() -> Result<()> {
    write("net/ipv4/ip_forward", "1")
}

/// Puts back what was remembered. Nothing remembered, nothing changed.
///
/// # Errors
/// If the kernel refuses a value that it once had.
pub fn restore(places: &Places) -> Result<()> {
    let Ok(record) = std::fs::read(places.sysctls_before()) else {
        return Ok(());
    };
    let values: BTreeMap<String, String> =
        serde_json::from_slice(&record).context("the record of kernel settings is damaged")?;
    for (name, value) in values {
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
    std::fs::read_to_string(file(name))
        .ok()
        .map(|value| value.trim().to_owned())
}

fn write(name: &str, value: &str) -> Result<()> {
    std::fs::write(file(name), value).with_context(|| format!("cannot set {name} to {value}"))
}
