//! Advice for etcd flags that users write as fields.
//! A flag without an entry is an unknown field like any other.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Advice for an etcd flag.
#[derive(Clone, Copy)]
enum FlagAdvice {
    /// A field of the spec sets it.
    UseField(&'static str),
    /// The operator derives it.
    Derived(&'static str),
    /// It cannot be set.
    Unsupported,
    /// etcd 3.6 removed it.
    RemovedIn36,
    /// etcd 3.7 removed all experimental flags.
    Experimental,
}

/// The flags in the form of [`normalized`].
const FLAGS: &[(&str, FlagAdvice)] = &[
    ("advertiseclienturls", FlagAdvice::Derived("the address of the member")),
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
    ("forcenewcluster", FlagAdvice::Unsupported),
    ("heartbeat", FlagAdvice::UseField("spec.options.heartbeatMilliseconds")),
    ("heartbeatinterval", FlagAdvice::UseField("spec.options.heartbeatMilliseconds")),
    ("initialadvertisepeerurls", FlagAdvice::Derived("the address of the member")),
    ("initialcluster", FlagAdvice::Derived("the current members")),
    ("initialclusterstate", FlagAdvice::Derived("the current members")),
    ("initialclustertoken", FlagAdvice::Derived("the current members")),
    ("keyfile", FlagAdvice::UseField("spec.tls")),
    ("listenclienturls", FlagAdvice::Derived("the address of the member")),
    ("listenmetricsurls", FlagAdvice::Derived("the address of the member")),
    ("listenpeerurls", FlagAdvice::Derived("the address of the member")),
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

/// Advice for `key`, if it is an etcd flag.
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
        FlagAdvice::UseField(field) => format!("use `{field}` instead"),
        FlagAdvice::Derived(from) => {
            format!("the operator derives this setting from {from}; remove the field")
        }
        FlagAdvice::Unsupported => {
            "this etcd setting cannot be changed; remove the field".to_owned()
        }
        FlagAdvice::RemovedIn36 => {
            "etcd 3.6 removed this setting, and it cannot be set for 3.5; remove the field"
                .to_owned()
        }
        FlagAdvice::Experimental => {
            "experimental settings cannot be set, and etcd 3.7 rejects them; remove the field"
                .to_owned()
        }
    })
}

/// The common form of a flag, an environment variable and a field name: `--enable-v2`,
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
    fn flag_is_recognized_in_any_notation() {
        for key in ["quota-backend-bytes", "--quota-backend-bytes", "ETCD_QUOTA_BACKEND_BYTES"] {
            let advice = advice_for(key).unwrap();
            assert!(advice.contains("`spec.options.quota`"), "{key}: {advice}");
        }
        for key in ["experimentalCorruptCheckTime", "--experimental-warning-apply-duration"] {
            assert!(advice_for(key).unwrap().starts_with("experimental"), "{key}");
        }
        for key in ["quota", "colour", "etcd", ""] {
            assert_eq!(advice_for(key), None, "{key}");
        }
    }

    #[test]
    fn flags_are_normalized_and_sorted() {
        assert!(FLAGS.iter().all(|(flag, _)| normalized(flag) == *flag));
        assert!(FLAGS.is_sorted_by_key(|(flag, _)| *flag));
    }
}
