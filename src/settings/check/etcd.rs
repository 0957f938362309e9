//! Settings of etcd members. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::Checker;
use crate::cli::RunArgs;
use crate::etcd_cluster::Lifetimes;
use crate::settings::Etcd;

const CA: &str = "--etcd-ca-lifetime";
const LEAF: &str = "--etcd-leaf-lifetime";
const OVERLAP: &str = "--etcd-ca-overlap";
/// The kubelet takes up to two minutes to bring a renewed certificate into a pod, and a third of its life is
/// what there is for that.
const MIN_LEAF_LIFETIME: Duration = Duration::from_mins(10);

impl Checker {
    /// What the members of etcd clusters are made of.
    pub(super) fn etcd(&mut self, args: &RunArgs) -> Option<Etcd> {
        let image = args.agent_image.clone();
        let has_image = !image.is_empty() && !image.contains(char::is_whitespace);
        if !has_image {
            let expected = "it must be the name of an image, without spaces";
            self.add("--agent-image", &image, expected, "give the image of this very program");
        }
        let authority = self.lifetime(CA, &args.etcd_ca_lifetime);
        let leaf = self.lifetime(LEAF, &args.etcd_leaf_lifetime);
        if leaf.is_some_and(|it| it < MIN_LEAF_LIFETIME) {
            let expected =
                "it must be at least 10m: a pod hears of a renewed certificate after two minutes";
            self.add(LEAF, &args.etcd_leaf_lifetime, expected, "raise it, or leave it out");
        }
        if let (Some(authority), Some(leaf)) = (authority, leaf)
            && authority < leaf
        {
            let expected = format!("it must be at least {LEAF} {}", args.etcd_leaf_lifetime);
            self.add(CA, &args.etcd_ca_lifetime, &expected, "raise it, or leave both out");
        }
        let overlap = self.lifetime(OVERLAP, &args.etcd_ca_overlap);
        // It passes twice, and a third of an authority's life is what there is for that.
        if let (Some(authority), Some(overlap)) = (authority, overlap)
            && overlap.saturating_mul(6) > authority
        {
            let expected = format!("it must be at most a sixth of {CA} {}", args.etcd_ca_lifetime);
            self.add(OVERLAP, &args.etcd_ca_overlap, &expected, "lower it, or raise the other");
        }
        let lifetimes = Lifetimes { ca: authority?, leaf: leaf?, overlap: overlap? };
        has_image.then_some(Etcd { agent_image: image, lifetimes })
    }
}
