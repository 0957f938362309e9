//! The API server of the model world: one Lease, a version that every write must name, and a uid
//! that no two Leases share. Comes in: calls. Goes out: answers. May touch: nothing.

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
    pub(super) lease: Option<Lease>,
    writes: u64,
}

impl Server {
    pub(super) fn answer(&mut self, call: Call) -> Answer {
        match (call, self.lease.take()) {
            (Call::Read | Call::Replace(_), None) => Answer::NotFound,
            (Call::Create(lease), None) => {
                let uid = Some(format!("uid-{}", self.writes));
                self.write(*lease, uid)
            }
            (Call::Replace(lease), Some(old))
                if lease.metadata.resource_version == old.metadata.resource_version =>
            {
                self.write(*lease, old.metadata.uid)
            }
            (Call::Read, Some(old)) => {
                self.lease = Some(old.clone());
                Answer::Lease(Box::new(old))
            }
            (Call::Create(_) | Call::Replace(_), Some(old)) => {
                self.lease = Some(old);
                Answer::Conflict
            }
        }
    }

    fn write(&mut self, mut lease: Lease, uid: Option<String>) -> Answer {
        self.writes += 1;
        lease.metadata.uid = uid;
        lease.metadata.resource_version = Some(self.writes.to_string());
        self.lease = Some(lease.clone());
        Answer::Lease(Box::new(lease))
    }
}
