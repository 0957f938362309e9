//! What this release can do. What no controller does yet is refused with description, never accepted
//! and ignored.
//! Comes in: nothing. Goes out: the features, and a sentence for each that is missing.
//! May touch: std. When a controller learns something, one line here changes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Change the version of a running cluster by one step.
    Upgrade,
    /// Go through several versions by asking for the last one.
    MultiStepUpgrade,
    /// Go back to the minor release before.
    Downgrade,
    /// Make backups, on demand and on a schedule.
    Backup,
    /// Begin with, or go back to, the data of a backup.
    Restore,
    /// Take certificates from cert-manager.
    CertManager,
    /// Take certificates from a Secret.
    SecretCertificates,
    /// Let connections be in the clear.
    Plaintext,
    /// Ask clients for users and passwords.
    Auth,
    /// Rewrite members' files to give back space.
    Defragment,
    /// Run etcd clusters.
    Cluster,
    /// Run the example application.
    Application,
}

impl Feature {
    /// Everything that can be asked for.
    pub const ALL: &[Self] = &[
        Self::Upgrade,
        Self::MultiStepUpgrade,
        Self::Downgrade,
        Self::Backup,
        Self::Restore,
        Self::CertManager,
        Self::SecretCertificates,
        Self::Plaintext,
        Self::Auth,
        Self::Defragment,
        Self::Cluster,
        Self::Application,
    ];

    /// What it is called in a sentence.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Upgrade => "changing the version of a cluster that runs",
            Self::MultiStepUpgrade => "going through several versions in one change",
            Self::Downgrade => "going back to an older minor release",
            Self::Backup => "making backups",
            Self::Restore => "restoring backups",
            Self::CertManager => "certificates from cert-manager",
            Self::SecretCertificates => "certificates from a Secret of yours",
            Self::Plaintext => "connections without TLS",
            Self::Auth => "users and passwords in etcd",
            Self::Defragment => "defragmentation on a schedule",
            Self::Cluster => "running etcd clusters",
            Self::Application => "running the example application",
        }
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug)]
pub struct FeatureSet(&'static [Feature]);

impl FeatureSet {
    /// What the controllers of this release do.
    pub const CURRENT: Self = Self(&[
        Feature::Cluster,
        Feature::Upgrade,
        Feature::MultiStepUpgrade,
        Feature::Downgrade,
        Feature::CertManager,
        Feature::SecretCertificates,
        Feature::Plaintext,
        Feature::Auth,
        Feature::Defragment,
    ]);
    /// Everything that the API has description for.
    pub const ALL: Self = Self(Feature::ALL);

    /// These and no others.
    #[must_use]
    pub const fn only(features: &'static [Feature]) -> Self {
        Self(features)
    }

    /// Whether `feature` is one of them.
    #[must_use]
    pub fn contains(self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    /// A warning, if what an object is for is missing: it is stored, and nothing comes of it yet.
    pub(crate) fn stored_only_warning(self, feature: Feature) -> Option<String> {
        self.unsupported_message(feature)
            .map(|unsupported_message| format!("{unsupported_message}; the object is only stored"))
    }

    /// The beginning of a sentence, if `feature` is missing.
    pub(crate) fn unsupported_message(self, feature: Feature) -> Option<String> {
        let missing = !self.contains(feature);
        missing.then(|| format!("not in this release: {}", feature.description()))
    }
}
