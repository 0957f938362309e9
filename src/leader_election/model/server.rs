//! The API server of the model test: one Lease with a uid and a resourceVersion. As in Kubernetes,
//! a replacement of a missing Lease is a conflict if it carries a uid, and a create if it does not.

use k8s_openapi::api::coordination::v1::Lease;

pub(super) enum Request {
    Read,
    Create(Box<Lease>),
    Replace(Box<Lease>),
}

pub(super) enum Response {
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
    pub(super) fn handle(&mut self, request: Request) -> Response {
        match (request, self.lease.clone()) {
            (Request::Read, None) => Response::NotFound,
            (Request::Read, Some(lease)) => Response::Lease(Box::new(lease)),
            (Request::Create(lease), None) => self.write(*lease, None),
            (Request::Replace(lease), None) if lease.metadata.uid.is_none() => {
                self.write(*lease, None)
            }
            (Request::Replace(lease), Some(old)) if matches_stored(&lease, &old) => {
                self.write(*lease, old.metadata.uid)
            }
            (Request::Create(_), Some(_)) | (Request::Replace(_), _) => Response::Conflict,
        }
    }

    /// Deletes the Lease by hand; returns whether one existed.
    pub(super) fn delete(&mut self) -> bool {
        self.lease.take().is_some()
    }

    /// Clears the holder by hand; returns whether there was a holder.
    pub(super) fn clear_holder(&mut self) -> bool {
        let Some(mut lease) = self.lease.clone() else {
            return false;
        };
        let spec = lease.spec.get_or_insert_default();
        let holder = spec.holder_identity.replace(String::new());
        let uid = lease.metadata.uid.clone();
        self.write(lease, uid);
        holder.is_some_and(|holder| !holder.is_empty())
    }

    fn write(&mut self, mut lease: Lease, uid: Option<String>) -> Response {
        self.writes += 1;
        lease.metadata.uid = uid.or_else(|| Some(format!("uid-{}", self.writes)));
        lease.metadata.resource_version = Some(self.writes.to_string());
        self.lease = Some(lease.clone());
        Response::Lease(Box::new(lease))
    }
}

/// Whether a replacement carries uid and resourceVersion of the stored Lease. A missing field
/// matches any value.
fn matches_stored(new: &Lease, old: &Lease) -> bool {
    let (new, old) = (&new.metadata, &old.metadata);
    let matches = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
    matches(&new.uid, &old.uid) && matches(&new.resource_version, &old.resource_version)
}
