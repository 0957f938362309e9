//! etcd as its users see it: every member of a cluster, dialled at its pod with the cluster's own client Secret.
//!
//! The pods are listed again and again, because members come and go under a story's feet.

mod ask;
mod dial;
mod upkeep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Mutex;

pub use ask::{Answer, Listed, Registered, Value};
use dial::Access;
pub use dial::Endpoint;
pub use upkeep::File;

/// On everything of an EtcdCluster: its name.
pub const CLUSTER_LABEL: &str = "etcd.appdelivery.cncf.io/cluster";
/// How old the list of pods may be.
const FRESH: Duration = Duration::from_millis(400);
/// How long it may take until a user sees that the Secret says something else.
const READ: Duration = Duration::from_secs(2);
/// How long a question to one member may take.
const SOON: Duration = Duration::from_secs(2);

/// Somebody who uses a cluster. Clones share their connections.
#[derive(Clone)]
pub struct EtcdUser {
    client: Client,
    namespace: String,
    selector: String,
    /// The EtcdCluster whose Secret opens the door; without one, the door is open.
    cluster: Option<String>,
    known: Arc<Mutex<Known>>,
}

/// What was found out last.
#[derive(Default)]
struct Known {
    at: Option<Instant>,
    access: Option<Access>,
    /// When the Secret was read.
    read: Option<Instant>,
    endpoints: Vec<Endpoint>,
}

impl EtcdUser {
    /// A user of an EtcdCluster.
    #[must_use]
    pub fn of_cluster(client: &Client, namespace: &str, cluster: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            selector: format!("{CLUSTER_LABEL}={cluster}"),
            cluster: Some(cluster.to_owned()),
            known: Arc::default(),
        }
    }

    /// A user of pods that nobody manages and that speak in the clear.
    #[must_use]
    pub fn of_pods(client: &Client, namespace: &str, selector: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            selector: selector.to_owned(),
            cluster: None,
            known: Arc::default(),
        }
    }

    /// The members that run, by their pods.
    ///
    /// # Errors
    /// If there is no Secret to dial with.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let mut known = self.known.lock().await;
        if known.at.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(known.endpoints.clone());
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        // An API that is away changes nothing for those who know where the members are.
        let own = ListParams::default().labels(&self.selector);
        let Ok(Ok(pods)) = tokio::time::timeout(SOON, pods.list(&own)).await else {
            return Ok(known.endpoints.clone());
        };
        self.read_anew(&mut known).await;
        let (mut found, mut failed) = (Vec::new(), None);
        for pod in pods.items.iter().filter(|pod| serves(pod)) {
            let kept = known.endpoints.iter().find(|it| it.is_of(pod)).cloned();
            match kept {
                Some(endpoint) => found.push(endpoint),
                None => match self.dialled(&mut known, pod).await {
                    Ok(endpoint) => found.push(endpoint),
                    Err(error) => failed = Some(error),
                },
            }
        }
        // Also when it failed, or everybody would ask the API again at once.
        known.endpoints.clone_from(&found);
        known.at = Some(Instant::now());
        match failed {
            Some(error) if found.is_empty() => Err(error),
            Some(_) | None => Ok(found),
        }
    }

    /// Dials everybody anew if the Secret says another way than before: it is what an application does.
    async fn read_anew(&self, known: &mut Known) {
        let is_due = known.read.is_none_or(|at| at.elapsed() >= READ);
        let (Some(before), Some(cluster)) = (&known.access, &self.cluster) else { return };
        if !is_due {
            return;
        }
        known.read = Some(Instant::now());
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let name = format!("{cluster}-client");
        // What cannot be read has not changed for its readers.
        let Ok(Ok(secret)) = tokio::time::timeout(SOON, secrets.get(&name)).await else { return };
        let Ok(access) = Access::read(&secret) else { return };
        if !access.is_like(before) {
            known.endpoints.clear();
            known.access = Some(access);
        }
    }

    async fn dialled(&self, known: &mut Known, pod: &Pod) -> Result<Endpoint> {
        let Some(cluster) = &self.cluster else {
            return Endpoint::dial(pod, None).await;
        };
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        match secrets.get(&format!("{cluster}-client")).await {
            Ok(secret) => known.access = Some(Access::read(&secret)?),
            // A cluster that was left alone may outlive it; what opened the door before still does.
            Err(error) if known.access.is_none() => {
                return Err(error).context("the Secret for clients cannot be read");
            }
            Err(_still_known) => {}
        }
        let host = format!("{}.{}.svc", pod.name_any(), self.namespace);
        let access = known.access.as_ref().context("nothing opens the door")?;
        Endpoint::dial(pod, Some((access, &host))).await
    }

    /// Hangs up. Under TLS whoever holds a line keeps a member from ending for a second or more.
    pub async fn hang_up(&self) {
        *self.known.lock().await = Known::default();
    }

    /// Asks every member that runs; those that do not answer are there without an answer.
    ///
    /// # Errors
    /// As [`EtcdUser::endpoints`].
    pub async fn ask_all(&self) -> Result<Vec<(String, Option<Answer>)>> {
        let endpoints = self.endpoints().await?;
        let asked = endpoints.iter().map(async |endpoint| {
            let answer = tokio::time::timeout(SOON, endpoint.ask()).await;
            (endpoint.member.clone(), answer.ok().and_then(Result::ok))
        });
        Ok(join_all(asked).await)
    }

    /// The members as etcd lists them, asked in a way that needs a quorum.
    ///
    /// # Errors
    /// If nobody answers so.
    pub async fn listed(&self) -> Result<Listed> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(SOON, endpoint.listed()).await {
                Ok(Ok(listed)) => return Ok(listed),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("nobody answers")))
    }

    /// What etcd lists, if there are just so many voters, all started, each answers in its pod with a read that needs a
    /// quorum, and nobody else is there.
    ///
    /// # Errors
    /// What is missing.
    pub async fn well(&self, voters: usize) -> Result<Listed> {
        let listed = self.listed().await?;
        let names = || listed.members.iter().map(ToString::to_string).collect::<Vec<_>>();
        let right = listed.members.len() == voters && listed.members.iter().all(|it| !it.learner);
        ensure!(right, "etcd lists {:?} instead of {voters} voters", names());
        let asked = self.ask_all().await?;
        for member in &listed.members {
            let answer = asked.iter().find(|(name, _)| *name == member.name);
            let answer = answer.with_context(|| format!("{member} has no pod that runs"))?;
            let answer = answer.1.as_ref().with_context(|| format!("{member} does not answer"))?;
            ensure!(answer.agrees, "{member} cannot read with a quorum");
            ensure!(answer.id == member.id, "{member} says that it is {:x}", answer.id);
            ensure!(answer.cluster == listed.cluster, "{member} is in another cluster");
        }
        ensure!(asked.len() == voters, "{} pods run for {voters} voters", asked.len());
        Ok(listed)
    }

    /// The hash of all data at one revision, if every member has the same. Nobody may write meanwhile.
    ///
    /// # Errors
    /// If they differ, or one does not answer.
    pub async fn same_everywhere(&self) -> Result<u32> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("nobody runs")?;
        let revision = first.revision().await?;
        let mut hashes = Vec::new();
        for endpoint in &endpoints {
            let hash = tokio::time::timeout(SOON, endpoint.hash(revision)).await;
            let hash = hash.with_context(|| format!("{} is silent", endpoint.member))?;
            hashes.push((endpoint.member.clone(), hash?));
        }
        let (_, hash) = hashes.first().context("nobody runs")?;
        let same = hashes.iter().all(|(_, other)| other == hash);
        ensure!(same, "the data differs at revision {revision}: {hashes:?}");
        Ok(*hash)
    }

    /// Writes a value through whoever takes it.
    ///
    /// # Errors
    /// If nobody does.
    pub async fn put(&self, key: &str, value: &str) -> Result<i64> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(SOON, endpoint.put(key, value)).await {
                Ok(Ok(revision)) => return Ok(revision),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("nobody answers"))).context("cannot write")
    }

    /// Raises an alarm for the first member that takes it, or ends it.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn alarm(&self, action: AlarmAction, alarm: AlarmType) -> Result<()> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("nobody answers")?;
        let asked = first.ask().await?;
        let mut options = AlarmOptions::new();
        options.with_member(asked.id);
        first.client.clone().alarm(action, alarm, Some(options)).await?;
        Ok(())
    }

    /// Whether etcd takes a user with this password; nothing if it asks for none.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn takes(&self, user: &str, password: &str) -> Result<Option<bool>> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("nobody answers")?;
        let mut client = first.client.auth_client();
        let asked = client.authenticate(user.to_owned(), password.to_owned());
        match tokio::time::timeout(SOON, asked).await.context("no answer")? {
            Ok(_) => Ok(Some(true)),
            Err(etcd_client::Error::GRpcStatus(status))
                if status.message().contains("not enabled") =>
            {
                Ok(None)
            }
            Err(etcd_client::Error::GRpcStatus(status)) if status.message().contains("failed") => {
                Ok(Some(false))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is under a key, read in a way that needs a quorum.
    ///
    /// # Errors
    /// If nobody answers so.
    pub async fn get(&self, key: &str) -> Result<Option<Value>> {
        Ok(self.below(key).await?.into_iter().find(|it| it.key == key))
    }

    /// What is below a prefix, read in a way that needs a quorum.
    ///
    /// # Errors
    /// If nobody answers so.
    pub async fn below(&self, prefix: &str) -> Result<Vec<Value>> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(SOON, endpoint.below(prefix)).await {
                Ok(Ok(values)) => return Ok(values),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("nobody answers"))).context("cannot read")
    }
}

/// One that is on its way out still has an address, and soon nobody at it.
fn serves(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let running = status.and_then(|status| status.phase.as_deref()) == Some("Running");
    running && pod.metadata.deletion_timestamp.is_none() && dial::address(pod).is_some()
}
