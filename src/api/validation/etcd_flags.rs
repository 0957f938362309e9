//! Settings of etcd that people know from its command line, and what to write `advice_for`.
//! Comes in: a key that no schema of ours has. Goes out: what to do about it, or nothing.
//! May touch: std only. One entry for each setting; a word of etcd's that is missing here is an
//! unknown field like any other.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// What becomes of a setting of etcd's.
#[derive(Clone, Copy)]
enum FlagAdvice {
    /// A field says it.
    UseField(&'static str),
    /// The operator sets it, from what is said elsewhere.
    Derived(&'static str),
    /// It is not to be set.
    Unsupported,
    /// etcd 3.6 does not have it any more.
    RemovedIn36,
    /// etcd 3.7 does not have any of these any more.
    Experimental,
}

/// The settings, as [`normalized`] writes them.
const FLAGS: &[(&str, FlagAdvice)] = &[
    ("advertiseclienturls", FlagAdvice::Derived("the member's own address")),
    ("auditlog", FlagAdvice::Unsupported),
    ("authtoken", FlagAdvice::UseField("spec.auth")),
    ("autocompactionmode", FlagAdvice::UseField("spec.options.autoCompaction")),
    ("autocompactionretention", FlagAdvice::UseField("spec.options.autoCompaction")),
    ("autotls", FlagAdvice::UseField("spec.tls")),
    ("certfile", FlagAdvice::UseField("spec.tls")),
    ("clientcertauth", FlagAdvice::UseField("spec.tls")),
    ("datadir", FlagAdvice::Derived("the volume of `spec.storage.size`")),
    ("election", FlagAdvice::UseField("spec.options.electionMilliseconds")),
    ("electiontimeout", FlagAdvice::UseField("spec.options.electionMilliseconds")),
    ("enablev2", FlagAdvice::RemovedIn36),
    ("featuregates", FlagAdvice::Unsupported),
    ("forcenewcluster", FlagAdvice::Derived("an EtcdRestore with `recoverQuorum`")),
    ("heartbeat", FlagAdvice::UseField("spec.options.heartbeatMilliseconds")),
    ("heartbeatinterval", FlagAdvice::UseField("spec.options.heartbeatMilliseconds")),
    ("initialadvertisepeerurls", FlagAdvice::Derived("the member's own address")),
    ("initialcluster", FlagAdvice::Derived("the members that there are")),
    ("initialclusterstate", FlagAdvice::Derived("the members that there are")),
    ("initialclustertoken", FlagAdvice::Derived("the members that there are")),
    ("keyfile", FlagAdvice::UseField("spec.tls")),
    ("listenclienturls", FlagAdvice::Derived("the member's own address")),
    ("listenmetricsurls", FlagAdvice::Derived("the member's own address")),
    ("listenpeerurls", FlagAdvice::Derived("the member's own address")),
    ("loglevel", FlagAdvice::Unsupported),
    ("maxrequestbytes", FlagAdvice::Unsupported),
    ("maxsnapshots", FlagAdvice::Unsupported),
    ("maxtxnops", FlagAdvice::Unsupported),
    ("maxwals", FlagAdvice::Unsupported),
    ("peerautotls", FlagAdvice::UseField("spec.tls")),
    ("peercertfile", FlagAdvice::UseField("spec.tls")),
    ("peerclientcertauth", FlagAdvice::UseField("spec.tls")),
    ("peerkeyfile", FlagAdvice::UseField("spec.tls")),
    ("peertrustedcafile", FlagAdvice::UseField("spec.tls")),
    ("proxy", FlagAdvice::RemovedIn36),
    ("quotabackendbytes", FlagAdvice::UseField("spec.options.quota")),
    ("snapshotcount", FlagAdvice::UseField("spec.options.snapshotCount")),
    ("trustedcafile", FlagAdvice::UseField("spec.tls")),
    ("waldir", FlagAdvice::Derived("the volume of `spec.storage.size`")),
];

/// What to do about `key`, if it is a setting of etcd's.
pub(super) fn advice_for(key: &str) -> Option<String> {
    let key = normalized(key);
    let advice = if key.starts_with("experimental") {
        FlagAdvice::Experimental
    } else if key.starts_with("proxy") {
        FlagAdvice::RemovedIn36
    } else {
        FLAGS.iter().find(|(flag, _)| *flag == key).map(|(_, advice)| *advice)?
    };
    Some(match advice {
        FlagAdvice::UseField(field) => format!("write `{field}` advice_for"),
        FlagAdvice::Derived(from) => format!("the operator sets it from {from}; leave it out"),
        FlagAdvice::Unsupported => {
            "this setting of etcd cannot be changed here; leave it out".to_owned()
        }
        FlagAdvice::RemovedIn36 => {
            "etcd has no such setting since 3.6, and it cannot be set for 3.5 here; leave it out"
                .to_owned()
        }
        FlagAdvice::Experimental => {
            "experimental settings cannot be set here, and etcd 3.7 refuses them; leave it out"
                .to_owned()
        }
    })
}

/// The key as a flag, a variable and a camel-cased word have it in common: `--enable-v2`,
/// `ETCD_ENABLE_V2` and `enableV2` are one setting.
fn normalized(key: &str) -> String {
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    let normalized = letters.collect::<String>().to_ascii_lowercase();
    normalized.strip_prefix("etcd").map(str::to_owned).unwrap_or(normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_known_however_it_is_written() {
        for key in ["quota-backend-bytes", "--quota-backend-bytes", "ETCD_QUOTA_BACKEND_BYTES"] {
            let words = advice_for(key).unwrap();
            assert!(words.contains("`spec.options.quota`"), "{key}: {words}");
        }
        for key in ["experimentalCorruptCheckTime", "--experimental-warning-apply-duration"] {
            assert!(advice_for(key).unwrap().starts_with("experimental"), "{key}");
        }
        for key in ["quota", "colour", "etcd", ""] {
            assert_eq!(advice_for(key), None, "{key}");
        }
    }

    #[test]
    fn the_table_is_written_as_keys_are_read() {
        assert!(FLAGS.iter().all(|(flag, _)| normalized(flag) == *flag));
        assert!(FLAGS.is_sorted_by_key(|(flag, _)| *flag));
    }
}
