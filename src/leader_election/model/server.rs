//! The API server of the model test: one Lease, a uid and a version that every replacement must
//! name. As in Kubernetes, a replacement of what does not exist is a conflict if it names a uid,
//! and a creation if it does not.

use k8s_openapi::api::coordination::v1::Lease;

pub(super) enum Call {
    Read,
    Create(Box<Lease>),
    Replace(Box<Lease>),
}

pub(super) enum Answer {
    Lease(Box<Lease>),
    NotFound,
    Conflict,
}

#[derive(Default)]
pub(super) struct Server {
    lease: Option<Lease>,
    writes: u64,
}

impl Server {
    pub(super) fn answer(&mut self, call: Call) -> Answer {
        match (call, self.lease.clone()) {
            (Call::Read, None) => Answer::NotFound,
            (Call::Read, Some(lease)) => Answer::Lease(Box::new(lease)),
            (Call::Create(lease), None) => self.write(*lease, None),
            (Call::Replace(lease), None) if lease.metadata.uid.is_none() => {
                self.write(*lease, None)
            }
            (Call::Replace(lease), Some(old)) if names(&lease, &old) => {
                self.write(*lease, old.metadata.uid)
            }
            (Call::Create(_), Some(_)) | (Call::Replace(_), _) => Answer::Conflict,
        }
    }

    /// Deletes the Lease by hand; returns whether one existed.
    pub(super) fn delete(&mut self) -> bool {
        self.lease.take().is_some()
    }

    /// Clears the holder by hand; returns whether there was a holder.
    pub(super) fn empty_the_holder(&mut self) -> bool {
        let Some(mut lease) = self.lease.clone() else {
            return false;
        };
        let spec = lease.spec.get_or_insert_default();
        let holder = spec.holder_identity.replace(String::new());
        let uid = lease.metadata.uid.clone();
        self.write(lease, uid);
        holder.is_some_and(|holder| !holder.is_empty())
    }

    fn write(&mut self, mut lease: Lease, uid: Option<String>) -> Answer {
        self.writes += 1;
        lease.metadata.uid = uid.or_else(|| Some(format!("uid-{}", self.writes)));
        lease.metadata.resource_version = Some(self.writes.to_string());
        self.lease = Some(lease.clone());
        Answer::Lease(Box::new(lease))
    }
}

/// Whether a replacement names exactly the Lease that is there. What it leaves out it does not
/// ask for.
fn names(new: &Lease, old: &Lease) -> bool {
    let (new, old) = (&new.metadata, &old.metadata);
    let fits = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
    fits(&new.uid, &old.uid) && fits(&new.resource_version, &old.resource_version)
}
