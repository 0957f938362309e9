//! The ring of authorities: the one that signs, the one to come, and those that have signed.
//! Comes in: a ring, and what shall become of it. Goes out: the next ring, and the bundle that
//! everyone shall trust. May touch: nothing; pure. The bundle is sorted by what is in it and not by
//! what it is for, so that promoting an authority changes no byte of it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use crate::pki::ca::{Certificate, CertificateAuthority, MAX_CERTIFICATES, ParseError, bundle};

/// All authorities, as one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaSet {
    /// What replicas sign with; none, if it was lost.
    pub(crate) current: Option<CertificateAuthority>,
    /// What will sign when everybody trusts it.
    pub(crate) next: Option<CertificateAuthority>,
    /// What may have signed certificates that are still in use. Its keys are gone.
    pub(crate) previous: Vec<Certificate>,
    /// When an authority was last made `current`, by the leader's wall clock.
    pub(crate) promoted: Option<Timestamp>,
}

/// One thing that was found broken, by the name of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidEntry {
    /// Where.
    pub(crate) place: &'static str,
    /// What is wrong.
    pub(crate) why: ParseError,
}

impl CaSet {
    /// A ring in a place where there was none. If certificates are remembered, some replica may
    /// still use one that they signed: then the new authority must first be trusted.
    pub(crate) fn new(authority: CertificateAuthority, remembered: &[Certificate]) -> Self {
        let empty = Self { previous: remembered.to_vec(), ..Self::default() };
        if remembered.is_empty() {
            Self { current: Some(authority), ..empty }
        } else {
            empty.with_next(authority)
        }
    }

    /// With another authority to come. What cannot sign now signs no more: it is only trusted.
    pub(crate) fn with_next(self, next: CertificateAuthority) -> Self {
        Self { next: Some(next), ..self }.bounded()
    }

    /// With what is remembered of a ring that was damaged since.
    pub(crate) fn with_remembered(mut self, remembered: &[Certificate]) -> Self {
        let known = self.certificates();
        let lost = remembered.iter().filter(|it| !known.contains(it)).cloned();
        self.previous.extend(lost.collect::<Vec<_>>());
        self.bounded()
    }

    /// The authority to come signs from now on. The one before is trusted for as long as something
    /// that it signed may be in use; its key is forgotten.
    pub(crate) fn promote(self, now: Timestamp) -> Self {
        let Self { current, next, mut previous, promoted } = self;
        if next.is_none() {
            return Self { current, next, previous, promoted };
        }
        previous.extend(current.map(|authority| authority.certificate));
        Self { current: next, next: None, previous, promoted: Some(now) }.bounded()
    }

    /// As if what signs now had been promoted at `now`, because nobody knows when it was.
    pub(crate) fn stamp(self, now: Timestamp) -> Self {
        Self { promoted: Some(now), ..self }
    }

    /// Without what has signed before.
    pub(crate) fn without_previous(self) -> Self {
        Self { previous: Vec::new(), ..self }
    }

    /// Every certificate that shall be trusted, each once, in an order that depends on nothing but
    /// the certificates.
    pub(crate) fn certificates(&self) -> Vec<&Certificate> {
        let signing = [&self.current, &self.next].into_iter().flatten();
        let signing = signing.map(|authority| &authority.certificate);
        let mut all: Vec<&Certificate> = signing.chain(&self.previous).collect();
        all.sort_by(|one, other| (one.from, &one.der).cmp(&(other.from, &other.der)));
        all.dedup_by(|one, other| one.der == other.der);
        all
    }

    /// What every target shall hold.
    pub(crate) fn bundle(&self) -> Vec<u8> {
        bundle(self.certificates())
    }

    /// Keeps the newest of what has signed before, as many as there is room for beside two that
    /// sign. More than one is rare, and more than six only comes of somebody's doing.
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

    fn authority(name: u8, from: i64, until: i64) -> CertificateAuthority {
        let time = |second| Timestamp::from_second(second).unwrap();
        CertificateAuthority {
            certificate: Certificate { der: vec![name], from: time(from), until: time(until) },
            key: PrivateKey::new(vec![name]),
        }
    }

    #[test]
    fn promoting_changes_no_byte_of_the_bundle() {
        let ca_set = CaSet::new(authority(9, 0, 90), &[]).with_next(authority(1, 60, 150));
        let before = ca_set.bundle();
        let after = ca_set.promote(Timestamp::from_second(70).unwrap());
        assert_eq!(after.bundle(), before);
        assert_eq!(after.current, Some(authority(1, 60, 150)));
        assert_eq!(after.previous, [authority(9, 0, 90).certificate]);
        assert_eq!(after.next, None);
    }

    #[test]
    fn promoting_twice_is_promoting_once() {
        let ca_set = CaSet::new(authority(9, 0, 90), &[]).with_next(authority(1, 60, 150));
        let once = ca_set.promote(Timestamp::from_second(70).unwrap());
        assert_eq!(once.clone().promote(Timestamp::from_second(80).unwrap()), once);
    }

    #[test]
    fn the_order_of_a_bundle_depends_on_nothing_but_what_is_in_it() {
        let [a, b, c] = [(3, 5), (2, 5), (1, 9)].map(|(name, from)| authority(name, from, 99));
        let one = CaSet::new(a.clone(), &[]).with_next(b.clone());
        let one = CaSet { previous: vec![c.certificate.clone(), b.certificate.clone()], ..one };
        let other = CaSet::new(c, &[]).with_next(a);
        let other = CaSet { previous: vec![b.certificate], ..other };
        assert_eq!(one.bundle(), other.bundle());
        let names: Vec<u8> = one.certificates().iter().map(|it| it.der[0]).collect();
        assert_eq!(names, [2, 3, 1]);
    }

    #[test]
    fn a_ring_made_anew_is_trusted_first_if_something_older_may_be_in_use() {
        let fresh = CaSet::new(authority(1, 0, 90), &[]);
        assert!(fresh.current.is_some() && fresh.next.is_none());
        let old = authority(2, 0, 80).certificate;
        let anew = CaSet::new(authority(1, 0, 90), std::slice::from_ref(&old));
        assert!(anew.current.is_none() && anew.next.is_some());
        assert_eq!(anew.previous, [old]);
    }

    #[test]
    fn a_ring_never_grows_beyond_its_bound_and_forgets_the_oldest() {
        let mut ca_set = CaSet::new(authority(0, 0, 1), &[]);
        for name in 1..40 {
            let at = i64::from(name);
            ca_set = ca_set.with_next(authority(name, at, at + 1));
            ca_set = ca_set.promote(Timestamp::from_second(at).unwrap());
            assert!(ca_set.certificates().len() <= MAX_CERTIFICATES);
        }
        let names: Vec<u8> = ca_set.certificates().iter().map(|it| it.der[0]).collect();
        assert_eq!(names, [33, 34, 35, 36, 37, 38, 39]);
    }
}
