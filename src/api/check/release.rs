//! What this release can do. What no controller does yet is refused with words, never accepted
//! and ignored.
//! Comes in: nothing. Goes out: the abilities, and a sentence for each that is missing.
//! May touch: std. When a controller learns something, one line here changes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Change the version of a running cluster by one step.
    Upgrade,
    /// Go through several versions by asking for the last one.
    UpgradeInHops,
    /// Go back to the minor release before.
    Downgrade,
    /// Make backups, on demand and on a schedule.
    Backup,
    /// Begin with, or go back to, the data of a backup.
    Restore,
    /// Take certificates from cert-manager.
    CertManager,
    /// Take certificates from a Secret.
    OwnCertificates,
    /// Let connections be in the clear.
    PlainText,
    /// Ask clients for users and passwords.
    Auth,
    /// Rewrite members' files to give back space.
    Defragment,
    /// Run etcd clusters.
    Cluster,
    /// Run the example application.
    Application,
}

impl Ability {
    /// Everything that can be asked for.
    pub const ALL: &[Self] = &[
        Self::Upgrade,
        Self::UpgradeInHops,
        Self::Downgrade,
        Self::Backup,
        Self::Restore,
        Self::CertManager,
        Self::OwnCertificates,
        Self::PlainText,
        Self::Auth,
        Self::Defragment,
        Self::Cluster,
        Self::Application,
    ];

    /// What it is called in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Upgrade => "changing the version of a cluster that runs",
            Self::UpgradeInHops => "going through several versions in one change",
            Self::Downgrade => "going back to an older minor release",
            Self::Backup => "making backups",
            Self::Restore => "restoring backups",
            Self::CertManager => "certificates from cert-manager",
            Self::OwnCertificates => "certificates from a Secret of yours",
            Self::PlainText => "connections without TLS",
            Self::Auth => "users and passwords in etcd",
            Self::Defragment => "defragmentation on a schedule",
            Self::Cluster => "running etcd clusters",
            Self::Application => "running the example application",
        }
    }
}

/// A set of abilities.
#[derive(Clone, Copy, Debug)]
pub struct Abilities(&'static [Ability]);

impl Abilities {
    /// What the controllers of this release do.
    pub const THIS_RELEASE: Self = Self(&[
        Ability::Cluster,
        Ability::Upgrade,
        Ability::UpgradeInHops,
        Ability::Downgrade,
        Ability::CertManager,
        Ability::OwnCertificates,
        Ability::PlainText,
        Ability::Auth,
        Ability::Defragment,
    ]);
    /// Everything that the API has words for.
    pub const EVERYTHING: Self = Self(Ability::ALL);

    /// These and no others.
    #[must_use]
    pub const fn only(abilities: &'static [Ability]) -> Self {
        Self(abilities)
    }

    /// Whether `ability` is one of them.
    #[must_use]
    pub fn include(self, ability: Ability) -> bool {
        self.0.contains(&ability)
    }

    /// A warning, if what an object is for is missing: it is stored, and nothing comes of it yet.
    pub(crate) fn stored_only(self, ability: Ability) -> Option<String> {
        self.lack(ability).map(|lack| format!("{lack}; the object is only stored"))
    }

    /// The beginning of a sentence, if `ability` is missing.
    pub(crate) fn lack(self, ability: Ability) -> Option<String> {
        let missing = !self.include(ability);
        missing.then(|| format!("not in this release: {}", ability.words()))
    }
}
