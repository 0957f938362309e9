//! Settings of etcd members. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::{Checker, OMIT_HINT};
use crate::cli::RunArgs;
use crate::etcd_cluster::Lifetimes;
use crate::settings::Etcd;

const CA: &str = "--etcd-ca-lifetime";
const LEAF: &str = "--etcd-leaf-lifetime";
const OVERLAP: &str = "--etcd-ca-overlap";
/// The kubelet takes up to two minutes to update a renewed certificate in a pod, within the last
/// third of its lifetime.
const MIN_LEAF_LIFETIME: Duration = Duration::from_mins(10);

impl Checker {
    /// Checks the settings of etcd members.
    pub(super) fn etcd(&mut self, args: &RunArgs) -> Option<Etcd> {
        let image = args.agent_image.clone();
        let has_image = !image.is_empty() && !image.contains(char::is_whitespace);
        if !has_image {
            let expected = "must be an image reference without spaces";
            self.add("--agent-image", &image, expected, "use the image of this operator");
        }
        let ca = self.lifetime(CA, &args.etcd_ca_lifetime);
        let leaf = self.lifetime(LEAF, &args.etcd_leaf_lifetime);
        if leaf.is_some_and(|leaf| leaf < MIN_LEAF_LIFETIME) {
            let expected =
                "must be at least 10m: the kubelet updates mounted certificates within two minutes";
            self.add(LEAF, &args.etcd_leaf_lifetime, expected, OMIT_HINT);
        }
        if let (Some(ca), Some(leaf)) = (ca, leaf)
            && ca < leaf
        {
            let expected = format!("must be at least {LEAF} {}", args.etcd_leaf_lifetime);
            self.add(
                CA,
                &args.etcd_ca_lifetime,
                &expected,
                "raise the CA lifetime, or omit both flags",
            );
        }
        let overlap = self.lifetime(OVERLAP, &args.etcd_ca_overlap);
        // The overlap elapses twice within the last third of the lifetime of a CA.
        if let (Some(ca), Some(overlap)) = (ca, overlap)
            && overlap.saturating_mul(6) > ca
        {
            let expected = format!("must be at most a sixth of {CA} {}", args.etcd_ca_lifetime);
            self.add(
                OVERLAP,
                &args.etcd_ca_overlap,
                &expected,
                "lower the overlap, or raise the CA lifetime",
            );
        }
        let lifetimes = Lifetimes { ca: ca?, leaf: leaf?, overlap: overlap? };
        has_image.then_some(Etcd { agent_image: image, lifetimes })
    }
}
