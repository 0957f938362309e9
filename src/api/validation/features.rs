//! Features of this release. A request for an unsupported feature is rejected, never accepted and
//! ignored. Supporting a feature changes one line here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// A feature that the API can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Version change of a running cluster by one step.
    Upgrade,
    /// Version change through several steps.
    MultiStepUpgrade,
    /// Downgrade to the previous minor version.
    Downgrade,
    /// Backups, on demand and scheduled.
    Backup,
    /// Restore of a backup, into a new or an existing cluster.
    Restore,
    /// Certificates from cert-manager.
    CertManager,
    /// Certificates from a Secret.
    SecretCertificates,
    /// Connections without TLS.
    Plaintext,
    /// etcd authentication.
    Auth,
    /// Scheduled defragmentation.
    Defragment,
    /// Controller for EtcdClusters.
    Cluster,
    /// Controller for ExampleApps.
    Application,
}

impl Feature {
    /// All features.
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

    /// Subject and verb of a message, before "not supported in this release".
    #[must_use]
    pub const fn subject(self) -> &'static str {
        match self {
            Self::Upgrade => "version changes of a running cluster are",
            Self::MultiStepUpgrade => "version changes through several steps are",
            Self::Downgrade => "downgrades to an older minor version are",
            Self::Backup => "backups are",
            Self::Restore => "restores are",
            Self::CertManager => "certificates from cert-manager are",
            Self::SecretCertificates => "certificates from a Secret are",
            Self::Plaintext => "connections without TLS are",
            Self::Auth => "users and passwords in etcd are",
            Self::Defragment => "scheduled defragmentation is",
            Self::Cluster => "EtcdClusters are",
            Self::Application => "ExampleApps are",
        }
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug)]
pub struct FeatureSet(&'static [Feature]);

impl FeatureSet {
    /// Features that this release supports.
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
    /// All features of the API.
    pub const ALL: Self = Self(Feature::ALL);

    /// Exactly these features.
    #[must_use]
    pub const fn only(features: &'static [Feature]) -> Self {
        Self(features)
    }

    /// Whether `feature` is supported.
    #[must_use]
    pub fn contains(self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    /// Warning for an object whose kind has no controller: it is only stored.
    pub(crate) fn stored_only_warning(self, feature: Feature) -> Option<String> {
        self.unsupported_message(feature)
            .map(|message| format!("{message}; the object is stored and not reconciled"))
    }

    /// Start of a message, if `feature` is not supported.
    pub(crate) fn unsupported_message(self, feature: Feature) -> Option<String> {
        let unsupported = !self.contains(feature);
        unsupported.then(|| format!("{} not supported in this release", feature.subject()))
    }
}
