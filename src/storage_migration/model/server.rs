//! The API server of the model: objects with revisions and stored versions, a CRD, and lists whose
//! continue tokens expire.

use std::collections::BTreeMap;

use crate::api::crd::stored::StoredCrd;
use crate::storage_migration::record::Record;
use crate::storage_migration::state::ObjectKey;
use crate::storage_migration::transition::WriteResponse;

/// The leader crashed.
#[derive(Debug)]
pub(super) struct Crash;

/// A fault, or an action of another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The leader crashes before the call.
    CrashBefore,
    /// The leader crashes after the call.
    CrashAfter,
    /// The call is processed, but its response is lost.
    ResponseLost,
    /// The API server rejects the call with 429.
    TooManyRequests,
    /// The conversion webhook is unavailable for some calls.
    WebhookDown,
    /// A user edits an object in the middle of the list.
    Edited,
    /// A user deletes an object.
    Deleted,
    /// A user deletes an object and creates another of the same name.
    Recreated,
    /// A user creates an object at the beginning of the list.
    Created,
    /// All continue tokens expire.
    ListsExpired,
    /// A CA bundle is injected into the CRD.
    BundleInjected,
    /// The older storage version is applied, a user writes an object, and the newer is applied
    /// again.
    StorageRevertedAndRestored,
    /// The older storage version is applied, and a user writes an object.
    StorageReverted,
    /// The newer storage version is applied, and a user writes an object.
    StorageRestored,
    /// A webhook rejects an object for some calls.
    Rejected,
    /// A webhook responds with a conflict for some calls.
    FalseConflict,
}

impl Fault {
    pub(super) const ALL: [Self; 16] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::ResponseLost,
        Self::TooManyRequests,
        Self::WebhookDown,
        Self::Edited,
        Self::Deleted,
        Self::Recreated,
        Self::Created,
        Self::ListsExpired,
        Self::BundleInjected,
        Self::StorageRevertedAndRestored,
        Self::StorageReverted,
        Self::StorageRestored,
        Self::Rejected,
        Self::FalseConflict,
    ];
}

/// For so many calls a webhook is unavailable or rejects.
const OUTAGE_CALLS: usize = 12;
const PAGE_SIZE: usize = 2;

/// A fault that lasts for `OUTAGE_CALLS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outage {
    Webhook,
    Rejection,
    FalseConflict,
}

#[derive(Clone, Debug)]
pub(super) struct ModelObject {
    pub(super) uid: u64,
    pub(super) revision: u64,
    pub(super) stored: String,
}

#[derive(Debug)]
pub(super) struct ModelServer {
    pub(super) objects: BTreeMap<String, ModelObject>,
    pub(super) crd: StoredCrd,
    pub(super) record: Option<Record>,
    record_version: u64,
    revision: u64,
    pub(super) calls: usize,
    faults: Vec<(usize, Fault)>,
    lists: Vec<BTreeMap<String, ModelObject>>,
    /// Lists before this index have expired.
    first_valid_list: usize,
    outages: BTreeMap<Outage, usize>,
    /// Writes of objects that are known to be current.
    pub(super) needless_writes: u64,
}

/// The faults of one call.
#[derive(Clone, Copy, Default)]
pub(super) struct CallFaults {
    crash_after: bool,
    response_lost: bool,
    too_many_requests: bool,
}

impl ModelServer {
    pub(super) fn new(faults: &[(usize, Fault)]) -> Self {
        let object = |(at, stored): (u64, &str)| {
            let revision = at + 10;
            (format!("o{at}"), ModelObject { uid: at, revision, stored: stored.to_owned() })
        };
        let stored = ["v1alpha1", "v1", "v1beta1", "v1alpha1", "v1beta1"];
        Self {
            objects: (1..).zip(stored).map(object).collect(),
            crd: StoredCrd {
                name: "etcdclusters.etcd.appdelivery.cncf.io".to_owned(),
                uid: "uid".to_owned(),
                resource_version: "20".to_owned(),
                storage: "v1".to_owned(),
                versions: ["v1", "v1beta1", "v1alpha1"]
                    .map(|name| (name.to_owned(), true))
                    .to_vec(),
                stored: ["v1alpha1", "v1beta1", "v1"].map(str::to_owned).to_vec(),
                established: true,
                converted: true,
                paused: false,
                spec_fingerprint: "0".to_owned(),
            },
            record: None,
            record_version: 0,
            revision: 20,
            calls: 0,
            faults: faults.to_vec(),
            lists: Vec::new(),
            first_valid_list: 0,
            outages: BTreeMap::new(),
            needless_writes: 0,
        }
    }

    /// Whether the faults are over, apart from false conflicts.
    pub(super) fn is_quiet(&self) -> bool {
        self.faults.iter().all(|(at, _)| *at < self.calls)
            && !self.has(Outage::Rejection)
            && !self.has(Outage::Webhook)
    }

    pub(super) fn check(&self, faults: &[(usize, Fault)]) {
        for (name, object) in &self.objects {
            assert!(
                self.crd.stored.contains(&object.stored),
                "{faults:?}: {name} is stored in a version that is not in storedVersions: {self:?}"
            );
        }
    }

    /// Starts a call: its faults happen.
    pub(super) fn call(&mut self) -> Result<CallFaults, Crash> {
        let mut call = CallFaults::default();
        let now = self.calls;
        self.calls += 1;
        let due: Vec<Fault> =
            self.faults.iter().filter(|(at, _)| *at == now).map(|(_, fault)| *fault).collect();
        for fault in due {
            match fault {
                Fault::CrashBefore => return Err(Crash),
                Fault::CrashAfter => call.crash_after = true,
                Fault::ResponseLost => call.response_lost = true,
                Fault::TooManyRequests => call.too_many_requests = true,
                Fault::WebhookDown => self.start_outage(Outage::Webhook, now),
                Fault::Edited => self.write("o3"),
                Fault::Deleted => drop(self.objects.remove("o4")),
                Fault::Recreated => {
                    self.objects.remove("o4");
                    self.create("o4");
                }
                Fault::Created => self.create("o0"),
                Fault::ListsExpired => self.first_valid_list = self.lists.len(),
                Fault::BundleInjected => self.bump_crd(),
                Fault::StorageRevertedAndRestored => {
                    self.set_storage("v1beta1");
                    self.write("o2");
                    self.set_storage("v1");
                }
                Fault::StorageReverted => {
                    self.set_storage("v1beta1");
                    self.write("o3");
                }
                Fault::StorageRestored => {
                    self.set_storage("v1");
                    self.write("o1");
                }
                Fault::Rejected => self.start_outage(Outage::Rejection, now),
                Fault::FalseConflict => self.start_outage(Outage::FalseConflict, now),
            }
        }
        Ok(call)
    }

    fn start_outage(&mut self, outage: Outage, now: usize) {
        self.outages.insert(outage, now + OUTAGE_CALLS);
    }

    fn has(&self, outage: Outage) -> bool {
        self.outages.get(&outage).is_some_and(|until| self.calls < *until)
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// A user writes an object.
    fn write(&mut self, name: &str) {
        let revision = self.next_revision();
        let stored = self.crd.storage.clone();
        if let Some(object) = self.objects.get_mut(name) {
            (object.revision, object.stored) = (revision, stored);
        }
    }

    fn create(&mut self, name: &str) {
        let uid = self.next_revision();
        let stored = self.crd.storage.clone();
        self.objects.insert(name.to_owned(), ModelObject { uid, revision: uid, stored });
    }

    fn bump_crd(&mut self) {
        self.crd.resource_version = self.next_revision().to_string();
    }

    fn set_storage(&mut self, version: &str) {
        self.crd.storage = version.to_owned();
        self.crd.spec_fingerprint = self.next_revision().to_string();
        if !self.crd.stored.iter().any(|stored| stored == version) {
            self.crd.stored.push(version.to_owned());
        }
        self.bump_crd();
    }

    /// The response to a processed call.
    fn respond<T>(call: CallFaults, response: T, lost: T) -> Result<T, Crash> {
        if call.crash_after {
            return Err(Crash);
        }
        Ok(if call.response_lost { lost } else { response })
    }

    pub(super) fn read_crd(&mut self) -> Result<StoredCrd, Crash> {
        let call = self.call()?;
        Self::respond(call, self.crd.clone(), self.crd.clone())
    }

    pub(super) fn read_record(&mut self) -> Result<(Option<Record>, u64), Crash> {
        let call = self.call()?;
        let record = (self.record.clone(), self.record_version);
        Self::respond(call, record.clone(), record)
    }

    /// Whether the record is known to be written.
    pub(super) fn save(&mut self, record: Record, version: u64) -> Result<bool, Crash> {
        let call = self.call()?;
        if call.too_many_requests || version != self.record_version {
            return Ok(false);
        }
        (self.record, self.record_version) = (Some(record), version + 1);
        Self::respond(call, true, false)
    }

    fn conversion_fails(&self) -> bool {
        let stale = |object: &ModelObject| object.stored != self.crd.storage;
        self.has(Outage::Webhook) && self.objects.values().any(stale)
    }

    /// A page of the list.
    pub(super) fn page(&mut self, token: Option<&str>) -> Result<Listing, Crash> {
        let call = self.call()?;
        if call.too_many_requests || call.response_lost || self.conversion_fails() {
            return Self::respond(call, Listing::Failed, Listing::Failed);
        }
        let continued = token.and_then(|token| token.split_once(' '));
        let (list, after) = if let Some((list, after)) = continued {
            (list.parse::<usize>().unwrap(), after.to_owned())
        } else {
            self.lists.push(self.objects.clone());
            (self.lists.len() - 1, String::new())
        };
        if list < self.first_valid_list {
            self.lists.push(self.objects.clone());
            let token = format!("{} {after}", self.lists.len() - 1);
            return Self::respond(call, Listing::Expired(token), Listing::Failed);
        }
        let rest: Vec<(&String, &ModelObject)> =
            self.lists[list].iter().filter(|(name, _)| **name > after).collect();
        let items: Vec<ObjectKey> =
            rest.iter().take(PAGE_SIZE).map(|(name, object)| key(name, object)).collect();
        let next =
            (rest.len() > PAGE_SIZE).then(|| format!("{list} {}", items[items.len() - 1].name));
        let page = Listing::Page { items, next, revision: self.revision };
        Self::respond(call, page, Listing::Failed)
    }

    /// A write that changes nothing.
    pub(super) fn rewrite(
        &mut self,
        sent: &ObjectKey,
        threshold: u64,
    ) -> Result<WriteResponse, Crash> {
        let call = self.call()?;
        let unknown = || WriteResponse::Unknown("timeout".to_owned());
        if call.too_many_requests {
            return Ok(unknown());
        }
        self.needless_writes += u64::from(sent.is_after(threshold));
        let response = self.process_rewrite(sent);
        Self::respond(call, response, unknown())
    }

    fn process_rewrite(&mut self, sent: &ObjectKey) -> WriteResponse {
        let (rejects, false_conflict) =
            (self.has(Outage::Rejection), self.has(Outage::FalseConflict));
        let (webhook_down, storage) = (self.has(Outage::Webhook), self.crd.storage.clone());
        let revision = self.revision + 1;
        let Some(object) = self.objects.get_mut(&sent.name) else {
            return WriteResponse::NotFound;
        };
        if webhook_down && object.stored != storage {
            return WriteResponse::Unknown("conversion webhook failed".to_owned());
        }
        if object.uid.to_string() != sent.uid
            || object.revision.to_string() != sent.resource_version
        {
            return WriteResponse::Conflict;
        }
        if sent.name == "o5" && false_conflict {
            return WriteResponse::Conflict;
        }
        if sent.name == "o5" && rejects {
            return WriteResponse::Rejected("denied".to_owned());
        }
        if object.stored != storage {
            (object.revision, object.stored, self.revision) = (revision, storage, revision);
        }
        WriteResponse::Accepted(object.revision.to_string())
    }

    /// Reads the metadata of an object.
    pub(super) fn get(&mut self, sent: &ObjectKey) -> Result<Lookup, Crash> {
        let call = self.call()?;
        let found = self.objects.get(&sent.name).map(|object| key(&sent.name, object));
        if call.too_many_requests {
            return Ok(Lookup::NoResponse);
        }
        Self::respond(call, Lookup::Response(found), Lookup::NoResponse)
    }

    /// Whether `storedVersions` is known to be trimmed.
    pub(super) fn trim(&mut self, read: &StoredCrd) -> Result<bool, Crash> {
        let call = self.call()?;
        if call.too_many_requests || read.resource_version != self.crd.resource_version {
            return Ok(false);
        }
        self.crd.stored = vec![read.storage.clone()];
        self.bump_crd();
        Self::respond(call, true, false)
    }
}

pub(super) enum Lookup {
    Response(Option<ObjectKey>),
    NoResponse,
}

pub(super) enum Listing {
    Page { items: Vec<ObjectKey>, next: Option<String>, revision: u64 },
    Expired(String),
    Failed,
}

fn key(name: &str, object: &ModelObject) -> ObjectKey {
    ObjectKey {
        namespace: "space".to_owned(),
        name: name.to_owned(),
        uid: object.uid.to_string(),
        resource_version: object.revision.to_string(),
    }
}
