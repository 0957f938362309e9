//! etcd from a client's side: a connection to every member of a cluster, with the cluster's own
//! client Secret.
//!
//! The pods are listed again and again, because members are added and removed during a test.

mod endpoint;
mod maintenance;
mod probe;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Mutex;

use endpoint::Credentials;
pub use endpoint::Endpoint;
pub use maintenance::DatabaseFile;
pub use probe::{KeyValue, ListedMember, MemberList, MemberProbe};

/// The label on every object of an EtcdCluster, with the cluster's name.
pub const CLUSTER_LABEL: &str = "etcd.appdelivery.cncf.io/cluster";
/// How often the pods are listed.
const POD_LIST_INTERVAL: Duration = Duration::from_millis(400);
/// How often the client Secret is read, as an application would.
const SECRET_INTERVAL: Duration = Duration::from_secs(2);
/// The timeout of one request to one member, or to the API server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of a cluster. Clones share their connections.
#[derive(Clone)]
pub struct EtcdClient {
    client: Client,
    namespace: String,
    selector: String,
    /// The EtcdCluster whose client Secret is used; plaintext without one.
    cluster: Option<String>,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    /// When the pods were listed.
    listed_at: Option<Instant>,
    credentials: Option<Credentials>,
    /// When the Secret was read.
    secret_read_at: Option<Instant>,
    endpoints: Vec<Endpoint>,
}

impl EtcdClient {
    /// A client of an EtcdCluster.
    #[must_use]
    pub fn of_cluster(client: &Client, namespace: &str, cluster: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            selector: format!("{CLUSTER_LABEL}={cluster}"),
            cluster: Some(cluster.to_owned()),
            cache: Arc::default(),
        }
    }

    /// A client of etcd pods without an EtcdCluster and without TLS.
    #[must_use]
    pub fn of_pods(client: &Client, namespace: &str, selector: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            selector: selector.to_owned(),
            cluster: None,
            cache: Arc::default(),
        }
    }

    /// The running members, by their pods.
    ///
    /// # Errors
    /// If no client Secret exists.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let mut cache = self.cache.lock().await;
        if cache.listed_at.is_some_and(|at| at.elapsed() < POD_LIST_INTERVAL) {
            return Ok(cache.endpoints.clone());
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        // While the API server is unreachable, the known endpoints stay in use.
        let own = ListParams::default().labels(&self.selector);
        let Ok(Ok(pods)) = tokio::time::timeout(REQUEST_TIMEOUT, pods.list(&own)).await else {
            return Ok(cache.endpoints.clone());
        };
        self.refresh_credentials(&mut cache).await;
        let (mut found, mut failed) = (Vec::new(), None);
        for pod in pods.items.iter().filter(|pod| serves(pod)) {
            let known = cache.endpoints.iter().find(|endpoint| endpoint.is_of(pod)).cloned();
            match known {
                Some(endpoint) => found.push(endpoint),
                None => match self.connect(&mut cache, pod).await {
                    Ok(endpoint) => found.push(endpoint),
                    Err(error) => failed = Some(error),
                },
            }
        }
        // Also after a failure: otherwise all clones would list the pods again at once.
        cache.endpoints.clone_from(&found);
        cache.listed_at = Some(Instant::now());
        match failed {
            Some(error) if found.is_empty() => Err(error),
            Some(_) | None => Ok(found),
        }
    }

    /// Reconnects to all members if the scheme in the Secret has changed, as an application does.
    async fn refresh_credentials(&self, cache: &mut Cache) {
        let is_due = cache.secret_read_at.is_none_or(|at| at.elapsed() >= SECRET_INTERVAL);
        let (Some(before), Some(cluster)) = (&cache.credentials, &self.cluster) else { return };
        if !is_due {
            return;
        }
        cache.secret_read_at = Some(Instant::now());
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let name = format!("{cluster}-client");
        // A Secret that cannot be read changes nothing for its readers.
        let read = tokio::time::timeout(REQUEST_TIMEOUT, secrets.get(&name)).await;
        let Ok(Ok(secret)) = read else { return };
        let Ok(credentials) = Credentials::read(&secret) else { return };
        if !credentials.same_scheme(before) {
            cache.endpoints.clear();
            cache.credentials = Some(credentials);
        }
    }

    async fn connect(&self, cache: &mut Cache, pod: &Pod) -> Result<Endpoint> {
        let Some(cluster) = &self.cluster else {
            return Endpoint::connect(pod, None).await;
        };
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        match secrets.get(&format!("{cluster}-client")).await {
            Ok(secret) => cache.credentials = Some(Credentials::read(&secret)?),
            // Members of a disconnected cluster outlive the Secret; its credentials stay valid.
            Err(error) if cache.credentials.is_none() => {
                return Err(error).context("the client Secret cannot be read");
            }
            Err(_still_known) => {}
        }
        let host = format!("{}.{}.svc", pod.name_any(), self.namespace);
        let credentials = cache.credentials.as_ref().context("no credentials")?;
        Endpoint::connect(pod, Some((credentials, &host))).await
    }

    /// Closes all connections. An open TLS connection delays the shutdown of a member for a second
    /// or more.
    pub async fn disconnect(&self) {
        *self.cache.lock().await = Cache::default();
    }

    /// Probes every running member; `None` for an unreachable one.
    ///
    /// # Errors
    /// As [`EtcdClient::endpoints`].
    pub async fn probe_all(&self) -> Result<Vec<(String, Option<MemberProbe>)>> {
        let endpoints = self.endpoints().await?;
        let probes = endpoints.iter().map(async |endpoint| {
            let probe = tokio::time::timeout(REQUEST_TIMEOUT, endpoint.probe()).await;
            (endpoint.member.clone(), probe.ok().and_then(Result::ok))
        });
        Ok(join_all(probes).await)
    }

    /// The member list, from a member whose linearizable read succeeds.
    ///
    /// # Errors
    /// If no member has a quorum.
    pub async fn member_list(&self) -> Result<MemberList> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(REQUEST_TIMEOUT, endpoint.member_list()).await {
                Ok(Ok(members)) => return Ok(members),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no member is reachable")))
    }

    /// The member list, if the cluster has exactly this many voters and no learner, all of them are
    /// started, and a linearizable read succeeds on each of them.
    ///
    /// # Errors
    /// What is missing.
    pub async fn healthy(&self, voters: usize) -> Result<MemberList> {
        let list = self.member_list().await?;
        let names = || list.members.iter().map(ToString::to_string).collect::<Vec<_>>();
        let complete =
            list.members.len() == voters && list.members.iter().all(|member| !member.is_learner);
        ensure!(complete, "etcd lists {:?} instead of {voters} voters", names());
        let probes = self.probe_all().await?;
        for member in &list.members {
            let probe = probes.iter().find(|(name, _)| *name == member.name);
            let probe = probe.with_context(|| format!("{member} has no running pod"))?;
            let probe = probe.1.as_ref().with_context(|| format!("{member} is unreachable"))?;
            ensure!(probe.linearizable_read_ok, "{member}: the linearizable read fails");
            ensure!(probe.id == member.id, "{member} reports the ID {:x}", probe.id);
            ensure!(probe.cluster == list.cluster, "{member} is in another cluster");
        }
        ensure!(probes.len() == voters, "{} pods run for {voters} voters", probes.len());
        Ok(list)
    }

    /// The hash of all data at one revision, if all members have the same. No client may write
    /// meanwhile.
    ///
    /// # Errors
    /// If the hashes differ, or a member is unreachable.
    pub async fn same_data_hash(&self) -> Result<u32> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("no member is running")?;
        let revision = first.revision().await?;
        let mut hashes = Vec::new();
        for endpoint in &endpoints {
            let hash = tokio::time::timeout(REQUEST_TIMEOUT, endpoint.hash(revision)).await;
            let hash = hash.with_context(|| format!("{} does not respond", endpoint.member))?;
            hashes.push((endpoint.member.clone(), hash?));
        }
        let (_, hash) = hashes.first().context("no member is running")?;
        let same = hashes.iter().all(|(_, other)| other == hash);
        ensure!(same, "the data differs at revision {revision}: {hashes:?}");
        Ok(*hash)
    }

    /// Writes a value through the first member that accepts the write.
    ///
    /// # Errors
    /// If no member does.
    pub async fn put(&self, key: &str, value: &str) -> Result<i64> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(REQUEST_TIMEOUT, endpoint.put(key, value)).await {
                Ok(Ok(revision)) => return Ok(revision),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no member is reachable")))
            .context("cannot write")
    }

    /// Activates or disarms an alarm of the first member.
    ///
    /// # Errors
    /// If no member is reachable.
    pub async fn alarm(&self, action: AlarmAction, alarm: AlarmType) -> Result<()> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("no member is running")?;
        let probe = first.probe().await?;
        let mut options = AlarmOptions::new();
        options.with_member(probe.id);
        first.client.clone().alarm(action, alarm, Some(options)).await?;
        Ok(())
    }

    /// Whether etcd accepts this user and password; `None` if authentication is disabled.
    ///
    /// # Errors
    /// If no member is reachable.
    pub async fn authenticate(&self, user: &str, password: &str) -> Result<Option<bool>> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("no member is running")?;
        let mut client = first.client.auth_client();
        let request = client.authenticate(user.to_owned(), password.to_owned());
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await.context("no response")? {
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

    /// A key, by a linearizable read.
    ///
    /// # Errors
    /// If no member has a quorum.
    pub async fn get(&self, key: &str) -> Result<Option<KeyValue>> {
        Ok(self.get_prefix(key).await?.into_iter().find(|entry| entry.key == key))
    }

    /// The keys with a prefix, by a linearizable read.
    ///
    /// # Errors
    /// If no member has a quorum.
    pub async fn get_prefix(&self, prefix: &str) -> Result<Vec<KeyValue>> {
        let mut last = None;
        for endpoint in self.endpoints().await? {
            match tokio::time::timeout(REQUEST_TIMEOUT, endpoint.get_prefix(prefix)).await {
                Ok(Ok(values)) => return Ok(values),
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no member is reachable")))
            .context("cannot read")
    }
}

/// A terminating pod still has an IP, and its member stops.
fn serves(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let running = status.and_then(|status| status.phase.as_deref()) == Some("Running");
    running && pod.metadata.deletion_timestamp.is_none() && endpoint::address(pod).is_some()
}
