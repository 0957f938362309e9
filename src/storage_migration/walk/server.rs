//! The API server of the model: objects with revisions and stored versions, a definition, and a list that is forgotten.

use std::collections::BTreeMap;

use crate::api::crd::stored::StoredCrd;
use crate::storage_migration::record::Record;
use crate::storage_migration::seen::Listed;
use crate::storage_migration::settle::Answer;

/// The leader is gone.
#[derive(Debug)]
pub(super) struct Death;

/// What can happen at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// The leader dies before its call is made.
    Dies,
    /// The leader dies after its call was made.
    DiesAfter,
    /// The call gets no answer, though it was made.
    Unanswered,
    /// The API server wants to be left alone.
    TooMany,
    /// Nobody converts, for some moments.
    NobodyConverts,
    /// A user edits an object in the middle of the list.
    Edited,
    /// A user deletes one.
    Deleted,
    /// A user deletes one and makes another of the same name.
    Replaced,
    /// A user makes one at the beginning of the list.
    Made,
    /// The API server forgets its lists.
    Forgotten,
    /// An authority is put into the definition.
    Injected,
    /// The older storage version comes back, a user writes an object, and today's is applied again.
    ThereAndBack,
    /// The older storage version comes back, and a user writes an object.
    There,
    /// Today's storage version is applied again, and a user writes an object.
    Back,
    /// A webhook refuses an object, for some moments.
    Refused,
    /// A webhook answers with a conflict, for some moments.
    Pretended,
}

impl Happening {
    pub(super) const ALL: [Self; 16] = [
        Self::Dies,
        Self::DiesAfter,
        Self::Unanswered,
        Self::TooMany,
        Self::NobodyConverts,
        Self::Edited,
        Self::Deleted,
        Self::Replaced,
        Self::Made,
        Self::Forgotten,
        Self::Injected,
        Self::ThereAndBack,
        Self::There,
        Self::Back,
        Self::Refused,
        Self::Pretended,
    ];
}

/// For so many moments a webhook refuses, or nobody converts.
const LONG: usize = 12;
const PAGE: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) uid: u64,
    pub(super) revision: u64,
    pub(super) stored: String,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) definition: StoredCrd,
    pub(super) book: Option<Record>,
    book_version: u64,
    revision: u64,
    pub(super) moment: usize,
    happenings: Vec<(usize, Happening)>,
    lists: Vec<BTreeMap<String, Object>>,
    forgotten: usize,
    until: BTreeMap<&'static str, usize>,
    /// Writes of objects that nobody could take for stale.
    pub(super) needless: u64,
}

/// What a call finds at its moment.
#[derive(Clone, Copy, Default)]
pub(super) struct Weather {
    dies_after: bool,
    unanswered: bool,
    too_many: bool,
}

impl Server {
    pub(super) fn new(happenings: &[(usize, Happening)]) -> Self {
        let object = |(at, stored): (u64, &str)| {
            let revision = at + 10;
            (format!("o{at}"), Object { uid: at, revision, stored: stored.to_owned() })
        };
        let stored = ["v1alpha1", "v1", "v1beta1", "v1alpha1", "v1beta1"];
        Self {
            objects: (1..).zip(stored).map(object).collect(),
            definition: StoredCrd {
                name: "etcdclusters.etcd.appdelivery.cncf.io".to_owned(),
                uid: "uid".to_owned(),
                resource_version: "20".to_owned(),
                storage: "v1".to_owned(),
                versions: ["v1", "v1beta1", "v1alpha1"].map(|it| (it.to_owned(), true)).to_vec(),
                stored: ["v1alpha1", "v1beta1", "v1"].map(str::to_owned).to_vec(),
                established: true,
                converted: true,
                paused: false,
                spec_fingerprint: "0".to_owned(),
            },
            book: None,
            book_version: 0,
            revision: 20,
            moment: 0,
            happenings: happenings.to_vec(),
            lists: Vec::new(),
            forgotten: 0,
            until: BTreeMap::new(),
            needless: 0,
        }
    }

    /// Whether nothing is left to happen.
    pub(super) fn is_quiet(&self) -> bool {
        self.happenings.iter().all(|(at, _)| *at < self.moment)
            && !self.is("refuses")
            && !self.is("silent")
    }

    pub(super) fn check(&self, told: &[(usize, Happening)]) {
        for (name, object) in &self.objects {
            assert!(
                self.definition.stored.contains(&object.stored),
                "{told:?}: {name} is stranded: {self:?}"
            );
        }
    }

    /// One moment passes: what belongs to it happens.
    pub(super) fn call(&mut self) -> Result<Weather, Death> {
        let mut weather = Weather::default();
        let now = self.moment;
        self.moment += 1;
        let due: Vec<Happening> =
            self.happenings.iter().filter(|(at, _)| *at == now).map(|(_, it)| *it).collect();
        for happening in due {
            match happening {
                Happening::Dies => return Err(Death),
                Happening::DiesAfter => weather.dies_after = true,
                Happening::Unanswered => weather.unanswered = true,
                Happening::TooMany => weather.too_many = true,
                Happening::NobodyConverts => drop(self.until.insert("silent", now + LONG)),
                Happening::Edited => self.write("o3"),
                Happening::Deleted => drop(self.objects.remove("o4")),
                Happening::Replaced => {
                    self.objects.remove("o4");
                    self.make("o4");
                }
                Happening::Made => self.make("o0"),
                Happening::Forgotten => self.forgotten = self.lists.len(),
                Happening::Injected => self.changed(),
                Happening::ThereAndBack => {
                    self.store_as("v1beta1");
                    self.write("o2");
                    self.store_as("v1");
                }
                Happening::There => {
                    self.store_as("v1beta1");
                    self.write("o3");
                }
                Happening::Back => {
                    self.store_as("v1");
                    self.write("o1");
                }
                Happening::Refused => drop(self.until.insert("refuses", now + LONG)),
                Happening::Pretended => drop(self.until.insert("pretends", now + LONG)),
            }
        }
        Ok(weather)
    }

    fn is(&self, what: &str) -> bool {
        self.until.get(what).is_some_and(|until| self.moment < *until)
    }

    fn next(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// A user writes an object.
    fn write(&mut self, name: &str) {
        let revision = self.next();
        let stored = self.definition.storage.clone();
        if let Some(object) = self.objects.get_mut(name) {
            (object.revision, object.stored) = (revision, stored);
        }
    }

    fn make(&mut self, name: &str) {
        let uid = self.next();
        let stored = self.definition.storage.clone();
        self.objects.insert(name.to_owned(), Object { uid, revision: uid, stored });
    }

    fn changed(&mut self) {
        self.definition.resource_version = self.next().to_string();
    }

    fn store_as(&mut self, version: &str) {
        self.definition.storage = version.to_owned();
        self.definition.spec_fingerprint = self.next().to_string();
        if !self.definition.stored.iter().any(|it| it == version) {
            self.definition.stored.push(version.to_owned());
        }
        self.changed();
    }

    /// The answer of a call that was made.
    fn answered<T>(weather: Weather, answer: T, silence: T) -> Result<T, Death> {
        if weather.dies_after {
            return Err(Death);
        }
        Ok(if weather.unanswered { silence } else { answer })
    }

    pub(super) fn definition(&mut self) -> Result<StoredCrd, Death> {
        let weather = self.call()?;
        Self::answered(weather, self.definition.clone(), self.definition.clone())
    }

    pub(super) fn book(&mut self) -> Result<(Option<Record>, u64), Death> {
        let weather = self.call()?;
        let book = (self.book.clone(), self.book_version);
        Self::answered(weather, book.clone(), book)
    }

    /// Whether it was written down: nobody knows, if nothing is answered.
    pub(super) fn save(&mut self, record: Record, version: u64) -> Result<bool, Death> {
        let weather = self.call()?;
        if weather.too_many || version != self.book_version {
            return Ok(false);
        }
        (self.book, self.book_version) = (Some(record), version + 1);
        Self::answered(weather, true, false)
    }

    fn nobody_converts(&self) -> bool {
        let stale = |it: &Object| it.stored != self.definition.storage;
        self.is("silent") && self.objects.values().any(stale)
    }

    /// A page, where it goes on, and the revision of the list; nothing if there is no answer.
    pub(super) fn page(&mut self, token: Option<&str>) -> Result<Listing, Death> {
        let weather = self.call()?;
        if weather.too_many || weather.unanswered || self.nobody_converts() {
            return Self::answered(weather, Listing::Unwell, Listing::Unwell);
        }
        let (list, after) = if let Some((list, after)) = token.and_then(|it| it.split_once(' ')) {
            (list.parse::<usize>().unwrap(), after.to_owned())
        } else {
            self.lists.push(self.objects.clone());
            (self.lists.len() - 1, String::new())
        };
        if list < self.forgotten {
            self.lists.push(self.objects.clone());
            let token = format!("{} {after}", self.lists.len() - 1);
            return Self::answered(weather, Listing::Expired(token), Listing::Unwell);
        }
        let rest: Vec<(&String, &Object)> =
            self.lists[list].iter().filter(|(name, _)| **name > after).collect();
        let items: Vec<Listed> =
            rest.iter().take(PAGE).map(|(name, object)| listed(name, object)).collect();
        let next = (rest.len() > PAGE).then(|| format!("{list} {}", items[items.len() - 1].name));
        let page = Listing::Page { items, next, revision: self.revision };
        Self::answered(weather, page, Listing::Unwell)
    }

    /// A write that changes nothing.
    pub(super) fn touch(&mut self, sent: &Listed, threshold: u64) -> Result<Answer, Death> {
        let weather = self.call()?;
        let unknown = || Answer::Unknown("silence".to_owned());
        if weather.too_many {
            return Ok(unknown());
        }
        self.needless += u64::from(sent.is_after(threshold));
        let answer = self.touched(sent);
        Self::answered(weather, answer, unknown())
    }

    fn touched(&mut self, sent: &Listed) -> Answer {
        let (refuses, pretends) = (self.is("refuses"), self.is("pretends"));
        let (silent, storage) = (self.is("silent"), self.definition.storage.clone());
        let revision = self.revision + 1;
        let Some(object) = self.objects.get_mut(&sent.name) else { return Answer::NotFound };
        if silent && object.stored != storage {
            return Answer::Unknown("nobody converts".to_owned());
        }
        if object.uid.to_string() != sent.uid || object.revision.to_string() != sent.version {
            return Answer::Conflict;
        }
        if sent.name == "o5" && (refuses || pretends) {
            let no = || Answer::Refused("not this one".to_owned());
            return if pretends { Answer::Conflict } else { no() };
        }
        if object.stored != storage {
            (object.revision, object.stored, self.revision) = (revision, storage, revision);
        }
        Answer::Taken(object.revision.to_string())
    }

    /// The object as it is, if there is one and somebody answers.
    pub(super) fn get(&mut self, sent: &Listed) -> Result<Found, Death> {
        let weather = self.call()?;
        let found = self.objects.get(&sent.name).map(|object| listed(&sent.name, object));
        if weather.too_many {
            return Ok(Found::Silence);
        }
        Self::answered(weather, Found::There(found), Found::Silence)
    }

    /// Whether the definition says what is stored: nobody knows, if nothing is answered.
    pub(super) fn trim(&mut self, read: &StoredCrd) -> Result<bool, Death> {
        let weather = self.call()?;
        if weather.too_many || read.resource_version != self.definition.resource_version {
            return Ok(false);
        }
        self.definition.stored = vec![read.storage.clone()];
        self.changed();
        Self::answered(weather, true, false)
    }
}

pub(super) enum Found {
    There(Option<Listed>),
    Silence,
}

pub(super) enum Listing {
    Page { items: Vec<Listed>, next: Option<String>, revision: u64 },
    Expired(String),
    Unwell,
}

fn listed(name: &str, object: &Object) -> Listed {
    Listed {
        namespace: "space".to_owned(),
        name: name.to_owned(),
        uid: object.uid.to_string(),
        version: object.revision.to_string(),
    }
}
