//! The CA set: the current CA, the next one, and the previous ones. Pure.
//! Guarantees: the bundle is sorted by its content, not by the CAs' roles, so that activating the
//! next CA changes no byte of it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use crate::pki::ca::{Certificate, CertificateAuthority, MAX_CERTIFICATES, ParseError, bundle};

/// All CAs of the webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaSet {
    /// The CA that signs leaves; none if it was lost.
    pub(crate) current: Option<CertificateAuthority>,
    /// The CA that signs once every API server trusts it.
    pub(crate) next: Option<CertificateAuthority>,
    /// CAs whose leaves may still be in use. Their keys are deleted.
    pub(crate) previous: Vec<Certificate>,
    /// When a CA last became `current`, by the leader's wall clock.
    pub(crate) rotated_at: Option<Timestamp>,
}

/// An invalid entry of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidEntry {
    /// The key of the entry.
    pub(crate) key: &'static str,
    /// What is wrong.
    pub(crate) error: ParseError,
}

impl CaSet {
    /// A CA set for a missing Secret. If certificates of an earlier set are known, a replica may
    /// still use a leaf of theirs: then the new CA must be trusted before it signs.
    pub(crate) fn new(ca: CertificateAuthority, known: &[Certificate]) -> Self {
        let empty = Self { previous: known.to_vec(), ..Self::default() };
        if known.is_empty() { Self { current: Some(ca), ..empty } } else { empty.with_next(ca) }
    }

    /// With another next CA.
    pub(crate) fn with_next(self, next: CertificateAuthority) -> Self {
        Self { next: Some(next), ..self }.bounded()
    }

    /// With the known certificates of an earlier set, which are missing in this one.
    pub(crate) fn with_known(mut self, known: &[Certificate]) -> Self {
        let present = self.certificates();
        let lost = known.iter().filter(|certificate| !present.contains(certificate)).cloned();
        self.previous.extend(lost.collect::<Vec<_>>());
        self.bounded()
    }

    /// Makes the next CA the current one. The CA before it stays trusted as long as its leaves may
    /// be in use; its key is deleted.
    pub(crate) fn activate_next(self, now: Timestamp) -> Self {
        let Self { current, next, mut previous, rotated_at } = self;
        if next.is_none() {
            return Self { current, next, previous, rotated_at };
        }
        previous.extend(current.map(|ca| ca.certificate));
        Self { current: next, next: None, previous, rotated_at: Some(now) }.bounded()
    }

    /// With `now` as the time of the last rotation, because the real time is unknown.
    pub(crate) fn with_rotation_time(self, now: Timestamp) -> Self {
        Self { rotated_at: Some(now), ..self }
    }

    /// Without the previous CAs.
    pub(crate) fn without_previous(self) -> Self {
        Self { previous: Vec::new(), ..self }
    }

    /// The trusted certificates without duplicates, in an order that depends only on the
    /// certificates.
    pub(crate) fn certificates(&self) -> Vec<&Certificate> {
        let signing = [&self.current, &self.next].into_iter().flatten();
        let signing = signing.map(|ca| &ca.certificate);
        let mut all: Vec<&Certificate> = signing.chain(&self.previous).collect();
        all.sort_by(|one, other| (one.from, &one.der).cmp(&(other.from, &other.der)));
        all.dedup_by(|one, other| one.der == other.der);
        all
    }

    /// The CA bundle for every target.
    pub(crate) fn bundle(&self) -> Vec<u8> {
        bundle(self.certificates())
    }

    /// Keeps the newest previous CAs, at most [`MAX_CERTIFICATES`] together with `current` and
    /// `next`. More than one is rare; more than six only result from manual changes.
    fn bounded(mut self) -> Self {
        self.previous.sort_by(|one, other| (other.until, &other.der).cmp(&(one.until, &one.der)));
        self.previous.dedup_by(|one, other| one.der == other.der);
        self.previous.truncate(MAX_CERTIFICATES.saturating_sub(2));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::ca::PrivateKey;

    fn ca(name: u8, from: i64, until: i64) -> CertificateAuthority {
        let time = |second| Timestamp::from_second(second).unwrap();
        CertificateAuthority {
            certificate: Certificate { der: vec![name], from: time(from), until: time(until) },
            key: PrivateKey::new(vec![name]),
        }
    }

    #[test]
    fn activating_the_next_ca_changes_no_byte_of_the_bundle() {
        let ca_set = CaSet::new(ca(9, 0, 90), &[]).with_next(ca(1, 60, 150));
        let before = ca_set.bundle();
        let after = ca_set.activate_next(Timestamp::from_second(70).unwrap());
        assert_eq!(after.bundle(), before);
        assert_eq!(after.current, Some(ca(1, 60, 150)));
        assert_eq!(after.previous, [ca(9, 0, 90).certificate]);
        assert_eq!(after.next, None);
    }

    #[test]
    fn activating_the_next_ca_is_idempotent() {
        let ca_set = CaSet::new(ca(9, 0, 90), &[]).with_next(ca(1, 60, 150));
        let once = ca_set.activate_next(Timestamp::from_second(70).unwrap());
        assert_eq!(once.clone().activate_next(Timestamp::from_second(80).unwrap()), once);
    }

    #[test]
    fn bundle_order_depends_only_on_the_certificates() {
        let [a, b, c] = [(3, 5), (2, 5), (1, 9)].map(|(name, from)| ca(name, from, 99));
        let one = CaSet::new(a.clone(), &[]).with_next(b.clone());
        let one = CaSet { previous: vec![c.certificate.clone(), b.certificate.clone()], ..one };
        let other = CaSet::new(c, &[]).with_next(a);
        let other = CaSet { previous: vec![b.certificate], ..other };
        assert_eq!(one.bundle(), other.bundle());
        let names: Vec<u8> =
            one.certificates().iter().map(|certificate| certificate.der[0]).collect();
        assert_eq!(names, [2, 3, 1]);
    }

    #[test]
    fn recreated_ca_set_stages_its_ca_if_older_leaves_may_be_in_use() {
        let fresh = CaSet::new(ca(1, 0, 90), &[]);
        assert!(fresh.current.is_some() && fresh.next.is_none());
        let old = ca(2, 0, 80).certificate;
        let recreated = CaSet::new(ca(1, 0, 90), std::slice::from_ref(&old));
        assert!(recreated.current.is_none() && recreated.next.is_some());
        assert_eq!(recreated.previous, [old]);
    }

    #[test]
    fn ca_set_is_bounded_and_drops_the_oldest_previous_ca() {
        let mut ca_set = CaSet::new(ca(0, 0, 1), &[]);
        for name in 1..40 {
            let at = i64::from(name);
            ca_set = ca_set.with_next(ca(name, at, at + 1));
            ca_set = ca_set.activate_next(Timestamp::from_second(at).unwrap());
            assert!(ca_set.certificates().len() <= MAX_CERTIFICATES);
        }
        let names: Vec<u8> =
            ca_set.certificates().iter().map(|certificate| certificate.der[0]).collect();
        assert_eq!(names, [33, 34, 35, 36, 37, 38, 39]);
    }
}
