//! Settings of etcd that people know from its command line, and what to write instead.
//! Comes in: a key that no schema of ours has. Goes out: what to do about it, or nothing.
//! May touch: std only. One entry for each setting; a word of etcd's that is missing here is an
//! unknown field like any other.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// What becomes of a setting of etcd's.
#[derive(Clone, Copy)]
enum Fate {
    /// A field says it.
    Write(&'static str),
    /// The operator sets it, from what is said elsewhere.
    Ours(&'static str),
    /// It is not to be set.
    Fixed,
    /// etcd 3.6 does not have it any more.
    RemovedIn36,
    /// etcd 3.7 does not have any of these any more.
    Experimental,
}

/// The settings, as [`plain`] writes them.
const FLAGS: &[(&str, Fate)] = &[
    ("advertiseclienturls", Fate::Ours("the member's own address")),
    ("auditlog", Fate::Fixed),
    ("authtoken", Fate::Write("spec.auth")),
    ("autocompactionmode", Fate::Write("spec.options.autoCompaction")),
    ("autocompactionretention", Fate::Write("spec.options.autoCompaction")),
    ("autotls", Fate::Write("spec.tls")),
    ("certfile", Fate::Write("spec.tls")),
    ("clientcertauth", Fate::Write("spec.tls")),
    ("datadir", Fate::Ours("the volume of `spec.storage.size`")),
    ("election", Fate::Write("spec.options.electionMilliseconds")),
    ("electiontimeout", Fate::Write("spec.options.electionMilliseconds")),
    ("enablev2", Fate::RemovedIn36),
    ("featuregates", Fate::Fixed),
    ("forcenewcluster", Fate::Ours("an EtcdRestore with `recoverQuorum`")),
    ("heartbeat", Fate::Write("spec.options.heartbeatMilliseconds")),
    ("heartbeatinterval", Fate::Write("spec.options.heartbeatMilliseconds")),
    ("initialadvertisepeerurls", Fate::Ours("the member's own address")),
    ("initialcluster", Fate::Ours("the members that there are")),
    ("initialclusterstate", Fate::Ours("the members that there are")),
    ("initialclustertoken", Fate::Ours("the members that there are")),
    ("keyfile", Fate::Write("spec.tls")),
    ("listenclienturls", Fate::Ours("the member's own address")),
    ("listenmetricsurls", Fate::Ours("the member's own address")),
    ("listenpeerurls", Fate::Ours("the member's own address")),
    ("loglevel", Fate::Fixed),
    ("maxrequestbytes", Fate::Fixed),
    ("maxsnapshots", Fate::Fixed),
    ("maxtxnops", Fate::Fixed),
    ("maxwals", Fate::Fixed),
    ("peerautotls", Fate::Write("spec.tls")),
    ("peercertfile", Fate::Write("spec.tls")),
    ("peerclientcertauth", Fate::Write("spec.tls")),
    ("peerkeyfile", Fate::Write("spec.tls")),
    ("peertrustedcafile", Fate::Write("spec.tls")),
    ("proxy", Fate::RemovedIn36),
    ("quotabackendbytes", Fate::Write("spec.options.quota")),
    ("snapshotcount", Fate::Write("spec.options.snapshotCount")),
    ("trustedcafile", Fate::Write("spec.tls")),
    ("waldir", Fate::Ours("the volume of `spec.storage.size`")),
];

/// What to do about `key`, if it is a setting of etcd's.
pub(super) fn instead(key: &str) -> Option<String> {
    let key = plain(key);
    let fate = if key.starts_with("experimental") {
        Fate::Experimental
    } else if key.starts_with("proxy") {
        Fate::RemovedIn36
    } else {
        FLAGS.iter().find(|(flag, _)| *flag == key).map(|(_, fate)| *fate)?
    };
    Some(match fate {
        Fate::Write(field) => format!("write `{field}` instead"),
        Fate::Ours(from) => format!("the operator sets it from {from}; leave it out"),
        Fate::Fixed => "this setting of etcd cannot be changed here; leave it out".to_owned(),
        Fate::RemovedIn36 => {
            "etcd has no such setting since 3.6, and it cannot be set for 3.5 here; leave it out"
                .to_owned()
        }
        Fate::Experimental => {
            "experimental settings cannot be set here, and etcd 3.7 refuses them; leave it out"
                .to_owned()
        }
    })
}

/// The key as a flag, a variable and a camel-cased word have it in common: `--enable-v2`,
/// `ETCD_ENABLE_V2` and `enableV2` are one setting.
fn plain(key: &str) -> String {
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    let plain = letters.collect::<String>().to_ascii_lowercase();
    plain.strip_prefix("etcd").map(str::to_owned).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_known_however_it_is_written() {
        for key in ["quota-backend-bytes", "--quota-backend-bytes", "ETCD_QUOTA_BACKEND_BYTES"] {
            let words = instead(key).unwrap();
            assert!(words.contains("`spec.options.quota`"), "{key}: {words}");
        }
        for key in ["experimentalCorruptCheckTime", "--experimental-warning-apply-duration"] {
            assert!(instead(key).unwrap().starts_with("experimental"), "{key}");
        }
        for key in ["quota", "colour", "etcd", ""] {
            assert_eq!(instead(key), None, "{key}");
        }
    }

    #[test]
    fn the_table_is_written_as_keys_are_read() {
        assert!(FLAGS.iter().all(|(flag, _)| plain(flag) == *flag));
        assert!(FLAGS.is_sorted_by_key(|(flag, _)| *flag));
    }
}
