//! Client of one etcd member.
//!
//! etcd's own client would balance calls over members, but a response must be known to come from
//! one member. Each call has a timeout. Nothing is retried here.

pub(crate) mod auth;
mod maintenance;
pub(crate) mod metrics;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmType, Certificate, Channel, Client, DeleteOptions, DowngradeOptions,
    GetOptions, Identity, MemberAddOptions, TlsOptions,
};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::time;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::api::etcd_types::{Alarm, EndpointStatus, MemberEntry};

/// How long a connection may take. A member in the same Kubernetes cluster responds in
/// milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The key of linearizable reads; it need not exist.
const PROBE_KEY: &str = "quorate-probe";
/// A key that sorts before it.
const KEY_BEFORE_PROBE: &str = "quorate";
/// etcd's names of its alarms.
const NO_SPACE: &str = "NOSPACE";
const CORRUPT: &str = "CORRUPT";
const MAX_CONCURRENT_WRITES: usize = 64;

/// The operator's client certificate and its trust bundle. Never printed.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// The CAs that issued the members' certificates, as PEM.
    pub(crate) ca: Vec<u8>,
    /// The operator's client certificate, as PEM.
    pub(crate) certificate: Vec<u8>,
    /// The private key, as PEM.
    pub(crate) key: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// The endpoint of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberEndpoint {
    /// The address of its pod. DNS is not used: its caches lag behind.
    pub(crate) address: IpAddr,
    /// Its client port.
    pub(crate) port: u16,
    /// The host name that its certificate must contain.
    pub(crate) host: String,
    /// Whether it accepts plaintext, and only that.
    pub(crate) plaintext: bool,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// The address or the certificates are invalid.
    #[error("failed to prepare a connection to {host}")]
    Prepare {
        host: String,
        #[source]
        source: Box<tonic::transport::Error>,
    },
    /// The member responded with an error, or is unreachable.
    #[error("failed to {verb} at {host}")]
    Call {
        verb: &'static str,
        host: String,
        #[source]
        source: Box<etcd_client::Error>,
    },
    /// No response came in time. A change may still be made.
    #[error("failed to {verb} at {host}: no response within {}ms", .timeout.as_millis())]
    TimedOut { verb: &'static str, host: String, timeout: Duration },
    /// The response has no header.
    #[error("failed to {verb} at {host}: the response has no header")]
    Incomplete { verb: &'static str, host: String },
}

impl EtcdError {
    /// The message of etcd's response, if it sent one.
    pub(crate) fn server_message(&self) -> Option<&str> {
        let Self::Call { source, .. } = self else { return None };
        let etcd_client::Error::GRpcStatus(status) = source.as_ref() else { return None };
        (!status.message().is_empty()).then(|| status.message())
    }

    /// The gRPC code of etcd's response, if it sent one.
    fn code(&self) -> Option<Code> {
        let Self::Call { source, .. } = self else { return None };
        let etcd_client::Error::GRpcStatus(status) = source.as_ref() else { return None };
        Some(status.code())
    }
}

/// A client of one member.
pub(crate) struct MemberClient {
    client: Client,
    host: String,
    timeout: Duration,
}

impl MemberClient {
    /// A client of the member at `endpoint`, whose calls have this timeout. Nothing is sent yet.
    pub(crate) async fn open(
        endpoint: &MemberEndpoint,
        credentials: Option<&Credentials>,
        timeout: Duration,
    ) -> Result<Self, EtcdError> {
        let host = endpoint.host.clone();
        let prepare_error =
            |source| EtcdError::Prepare { host: host.clone(), source: Box::new(source) };
        let channel = match credentials {
            None => Endpoint::from_shared(format!("http://{}", endpoint.socket())),
            Some(credentials) => Endpoint::from_shared(format!("https://{}", endpoint.socket()))
                .and_then(|endpoint| endpoint.tls_config(tls(credentials, &host))),
        };
        let channel =
            channel.map_err(prepare_error)?.connect_timeout(CONNECT_TIMEOUT).connect_lazy();
        let opened = Client::from_channel(Channel::Tonic(channel), None).await;
        let failed = |source| EtcdError::Call {
            verb: "connect",
            host: host.clone(),
            source: Box::new(source),
        };
        let client = opened.map_err(failed)?;
        Ok(Self { client, host, timeout })
    }

    async fn within<T>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, EtcdError> {
        self.within_timeout(self.timeout, verb, call).await
    }

    async fn within_timeout<T>(
        &self,
        timeout: Duration,
        verb: &'static str,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, EtcdError> {
        let host = || self.host.clone();
        match time::timeout(timeout, call).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => {
                Err(EtcdError::Call { verb, host: host(), source: Box::new(source) })
            }
            Err(time::error::Elapsed { .. }) => {
                Err(EtcdError::TimedOut { verb, host: host(), timeout })
            }
        }
    }

    /// The endpoint status, from the member's own state.
    pub(crate) async fn status(&self) -> Result<EndpointStatus, EtcdError> {
        let verb = "read the status";
        let mut client = self.client.maintenance_client();
        let response = self.within(verb, client.status()).await?;
        let incomplete = || EtcdError::Incomplete { verb, host: self.host.clone() };
        let header = response.header().ok_or_else(incomplete)?;
        Ok(EndpointStatus {
            cluster: header.cluster_id(),
            member: header.member_id(),
            leader: response.leader(),
            version: response.version().to_owned(),
            storage_version: response.storage_version().to_owned(),
            downgrade_target: response
                .downgrade_info()
                .filter(|downgrade| downgrade.enabled())
                .map(|downgrade| downgrade.target_version().to_owned())
                .unwrap_or_default(),
            is_learner: response.is_learner(),
            raft_index: response.raft_index(),
            applied_index: response.raft_applied_index(),
            revision: header.revision(),
            db_size: response.db_size(),
            db_in_use: response.raft_used_db_size(),
        })
    }

    /// A linearizable read, which needs a quorum; returns the revision.
    pub(crate) async fn linearizable_read(&self) -> Result<i64, EtcdError> {
        let verb = "read linearizably";
        let mut client = self.client.kv_client();
        let options = GetOptions::new().with_count_only();
        let response = self.within(verb, client.get(PROBE_KEY, Some(options))).await?;
        let incomplete = || EtcdError::Incomplete { verb, host: self.host.clone() };
        Ok(response.header().ok_or_else(incomplete)?.revision())
    }

    /// The member list. The client cannot request a linearizable one: it is current only if the
    /// member has just served a linearizable read.
    pub(crate) async fn members(&self) -> Result<Vec<MemberEntry>, EtcdError> {
        let mut client = self.client.cluster_client();
        let response = self.within("list the members", client.member_list()).await?;
        let entry = |member: &etcd_client::Member| MemberEntry {
            id: member.id(),
            peer_urls: member.peer_urls().to_vec(),
            is_learner: member.is_learner(),
        };
        Ok(response.members().iter().map(entry).collect())
    }

    /// The active alarms of all members.
    pub(crate) async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.alarm(AlarmAction::Get, AlarmType::None, None);
        let response = self.within("read the alarms", call).await?;
        let alarm = |alarm: &etcd_client::AlarmMember| {
            let alarm_type = match alarm.alarm() {
                AlarmType::None => return None,
                AlarmType::Nospace => NO_SPACE,
                AlarmType::Corrupt => CORRUPT,
            };
            Some(Alarm { member: alarm.member_id(), alarm_type })
        };
        Ok(response.alarms().iter().filter_map(alarm).collect())
    }

    /// Appends raft log entries that change nothing: deletions of an empty key range.
    pub(crate) async fn put_noop(&self, entries: usize) -> Result<(), EtcdError> {
        let append = |_| async {
            let mut client = self.client.kv_client();
            let options = DeleteOptions::new().with_range(KEY_BEFORE_PROBE);
            let call = client.delete(PROBE_KEY, Some(options));
            self.within("append to the raft log", call).await.map(|_| ())
        };
        stream::iter(0..entries)
            .map(append)
            .buffer_unordered(MAX_CONCURRENT_WRITES)
            .try_collect()
            .await
    }

    /// Validates and enables a downgrade: etcd migrates its storage to this version, and members of
    /// it may join.
    pub(crate) async fn enable_downgrade(&self, to: &str) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        let validate = client.downgrade(DowngradeOptions::Validate(to.to_owned()));
        self.within("validate a downgrade", validate).await?;
        let call = client.downgrade(DowngradeOptions::Enable(to.to_owned()));
        self.within("enable a downgrade", call).await.map(|_| ())
    }

    /// Cancels a downgrade.
    pub(crate) async fn cancel_downgrade(&self) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.downgrade(DowngradeOptions::Cancel);
        self.within("cancel a downgrade", call).await.map(|_| ())
    }

    /// Adds a learner to the member list.
    pub(crate) async fn add_learner(&self, peer_url: &str) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        let options = MemberAddOptions::new().with_is_learner();
        let call = client.member_add(vec![peer_url.to_owned()], Some(options));
        self.within("add a learner", call).await.map(|_| ())
    }

    /// Promotes a learner to voter.
    pub(crate) async fn promote(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        self.within("promote a learner", client.member_promote(id)).await.map(|_| ())
    }

    /// Removes a member from the member list.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        self.within("remove a member", client.member_remove(id)).await.map(|_| ())
    }

    /// Updates the peer URL of a member. Older etcd releases promote a learner by this.
    pub(crate) async fn update(&self, id: u64, peer_url: &str) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        let call = client.member_update(id, vec![peer_url.to_owned()]);
        self.within("update the peer URL of a member", call).await.map(|_| ())
    }

    /// Transfers leadership to another member. Only the leader accepts this call.
    pub(crate) async fn move_leader(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        self.within("move the leader", client.move_leader(id)).await.map(|_| ())
    }
}

impl MemberEndpoint {
    fn socket(&self) -> std::net::SocketAddr {
        std::net::SocketAddr::new(self.address, self.port)
    }
}

fn tls(credentials: &Credentials, host: &str) -> TlsOptions {
    let Credentials { ca, certificate, key } = credentials;
    TlsOptions::new()
        .domain_name(host)
        .ca_certificate(Certificate::from_pem(ca))
        .identity(Identity::from_pem(certificate, key))
}
