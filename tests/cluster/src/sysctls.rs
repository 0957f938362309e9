//! Kernel settings that the cluster changes, remembered before the first change and put back at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

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

/// The values of a moment, and the boot in which they were read.
#[derive(Serialize, Deserialize)]
struct Record {
    boot: String,
    values: BTreeMap<String, String>,
}

/// Remembers the present values, unless a predecessor has remembered older ones.
///
/// # Errors
/// If they cannot be written down.
pub fn remember(places: &Places) -> Result<()> {
    if on_record(places).is_some() {
        return Ok(());
    }
    let values = TOUCHED.iter().filter_map(|name| Some(((*name).to_owned(), read(name)?)));
    let record = Record { boot: boot(), values: values.collect() };
    files::write(&places.sysctls_before(), serde_json::to_vec_pretty(&record)?)
}

/// None if nothing was remembered, or if the machine was started anew since: then the values have gone with
/// the old boot, and what is there now is the admin's.
fn on_record(places: &Places) -> Option<Record> {
    let text = std::fs::read(places.sysctls_before()).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    (record.boot == boot()).then_some(record)
}

fn boot() -> String {
    read("kernel/random/boot_id").unwrap_or_default()
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
    let Some(record) = on_record(places) else { return Ok(()) };
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
