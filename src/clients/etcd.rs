//! Client of one etcd member.
//!
//! etcd's own client would balance calls over members, but a response must be known to come from one
//! member. Each call has a timeout. Nothing is retried here.

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

/// How long a connection may take. A member in the same cluster answers in milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A key that nobody needs: only the agreement on it counts.
const PROBE_KEY: &str = "quorate-probe";
/// A key that is smaller.
const KEY_BEFORE_PROBE: &str = "quorate";
/// etcd's words for its alarms.
const NO_SPACE: &str = "NOSPACE";
const CORRUPT: &str = "CORRUPT";
/// So many entries are on their way at once.
const MAX_CONCURRENT_WRITES: usize = 64;

/// What the operator shows to members, and whom it trusts. It is not shown to anybody else.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// The certificates of the ca that signed the members', as PEM.
    pub(crate) ca: Vec<u8>,
    /// The operator's certificate, as PEM.
    pub(crate) certificate: Vec<u8>,
    /// Its key, as PEM.
    pub(crate) key: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// Where a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberEndpoint {
    /// The address of its pod. Its name is not looked up: caches of names lag behind.
    pub(crate) address: IpAddr,
    /// Its port for clients.
    pub(crate) port: u16,
    /// The host that its certificate must name.
    pub(crate) host: String,
    /// Whether it takes whoever calls in the clear, and nobody else.
    pub(crate) plaintext: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// The address or the certificates are of no use.
    #[error("failed to prepare a connection to {host}")]
    Prepare {
        host: String,
        #[source]
        source: Box<tonic::transport::Error>,
    },
    /// The member answered with an error, or could not be reached.
    #[error("failed to {verb} at {host}")]
    Call {
        verb: &'static str,
        host: String,
        #[source]
        source: Box<etcd_client::Error>,
    },
    /// No answer came in time. A change may still be made.
    #[error("failed to {verb} at {host}: no answer within {}ms", .timeout.as_millis())]
    TimedOut { verb: &'static str, host: String, timeout: Duration },
    /// The answer lacks what every answer has.
    #[error("failed to {verb} at {host}: the answer is incomplete")]
    Incomplete { verb: &'static str, host: String },
}

impl EtcdError {
    /// etcd's own words, if it said any.
    pub(crate) fn server_message(&self) -> Option<&str> {
        let Self::Call { source, .. } = self else { return None };
        let etcd_client::Error::GRpcStatus(status) = source.as_ref() else { return None };
        (!status.message().is_empty()).then(|| status.message())
    }

    /// The code of etcd's answer, if it gave one.
    fn code(&self) -> Option<Code> {
        let Self::Call { source, .. } = self else { return None };
        let etcd_client::Error::GRpcStatus(status) = source.as_ref() else { return None };
        Some(status.code())
    }
}

/// A line to one member.
pub(crate) struct MemberClient {
    client: Client,
    host: String,
    timeout: Duration,
}

impl MemberClient {
    /// A line to the member at `endpoint`, on which each call has `timeout`. Nothing is sent yet.
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
                .and_then(|it| it.tls_config(tls(credentials, &host))),
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
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => {
                Err(EtcdError::Call { verb, host: host(), source: Box::new(source) })
            }
            Err(time::error::Elapsed { .. }) => {
                Err(EtcdError::TimedOut { verb, host: host(), timeout })
            }
        }
    }

    /// What the member says of itself, from what it has.
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
                .filter(|it| it.enabled())
                .map(|it| it.target_version().to_owned())
                .unwrap_or_default(),
            is_learner: response.is_learner(),
            raft_index: response.raft_index(),
            applied_index: response.raft_applied_index(),
            revision: header.revision(),
            db_size: response.db_size(),
            db_in_use: response.raft_used_db_size(),
        })
    }

    /// Whether the member can agree with a quorum on anything: a read that needs one. The answer is the
    /// revision that they agree on.
    pub(crate) async fn linearizable_read(&self) -> Result<i64, EtcdError> {
        let verb = "read with a quorum";
        let mut client = self.client.kv_client();
        let options = GetOptions::new().with_count_only();
        let response = self.within(verb, client.get(PROBE_KEY, Some(options))).await?;
        let incomplete = || EtcdError::Incomplete { verb, host: self.host.clone() };
        Ok(response.header().ok_or_else(incomplete)?.revision())
    }

    /// Everybody the member knows of. It is what a quorum agrees on only if the member has just read with one:
    /// the client cannot ask for more.
    pub(crate) async fn members(&self) -> Result<Vec<MemberEntry>, EtcdError> {
        let mut client = self.client.cluster_client();
        let response = self.within("list the members", client.member_list()).await?;
        let listed = |it: &etcd_client::Member| MemberEntry {
            id: it.id(),
            peer_urls: it.peer_urls().to_vec(),
            is_learner: it.is_learner(),
        };
        Ok(response.members().iter().map(listed).collect())
    }

    /// The alarms that are on, of all members.
    pub(crate) async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.alarm(AlarmAction::Get, AlarmType::None, None);
        let response = self.within("read the alarms", call).await?;
        let alarm = |it: &etcd_client::AlarmMember| {
            let word = match it.alarm() {
                AlarmType::None => return None,
                AlarmType::Nospace => NO_SPACE,
                AlarmType::Corrupt => CORRUPT,
            };
            Some(Alarm { member: it.member_id(), alarm_type: word })
        };
        Ok(response.alarms().iter().filter_map(alarm).collect())
    }

    /// Writes entries to the log that change nothing: from one key up to a smaller one there is no key to delete.
    pub(crate) async fn put_noop(&self, entries: usize) -> Result<(), EtcdError> {
        let one = |_| async {
            let mut client = self.client.kv_client();
            let options = DeleteOptions::new().with_range(KEY_BEFORE_PROBE);
            let call = client.delete(PROBE_KEY, Some(options));
            self.within("write to the log", call).await.map(|_| ())
        };
        stream::iter(0..entries)
            .map(one)
            .buffer_unordered(MAX_CONCURRENT_WRITES)
            .try_collect()
            .await
    }

    /// Lets members of an older minor version in, after etcd has found that it can: it brings its data down to that.
    pub(crate) async fn enable_downgrade(&self, to: &str) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        let ask = client.downgrade(DowngradeOptions::Validate(to.to_owned()));
        self.within("ask for a downgrade", ask).await?;
        let call = client.downgrade(DowngradeOptions::Enable(to.to_owned()));
        self.within("allow a downgrade", call).await.map(|_| ())
    }

    /// Lets no members of an older minor version in any more.
    pub(crate) async fn cancel_downgrade(&self) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.downgrade(DowngradeOptions::Cancel);
        self.within("end a downgrade", call).await.map(|_| ())
    }

    /// Lets the members know of one that will listen.
    pub(crate) async fn add_learner(&self, peer_url: &str) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        let options = MemberAddOptions::new().with_is_learner();
        let call = client.member_add(vec![peer_url.to_owned()], Some(options));
        self.within("add a learner", call).await.map(|_| ())
    }

    /// Lets a listener vote.
    pub(crate) async fn promote(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        self.within("promote a learner", client.member_promote(id)).await.map(|_| ())
    }

    /// Strikes a member from the list.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        self.within("remove a member", client.member_remove(id)).await.map(|_| ())
    }

    /// Lets the members know of another address of one of them. In older releases a learner would vote from then on.
    pub(crate) async fn update(&self, id: u64, peer_url: &str) -> Result<(), EtcdError> {
        let mut client = self.client.cluster_client();
        let call = client.member_update(id, vec![peer_url.to_owned()]);
        self.within("change the address of a member", call).await.map(|_| ())
    }

    /// Lets another lead. Only the leader can be asked.
    pub(crate) async fn move_leader(&self, id: u64) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        self.within("move the lead", client.move_leader(id)).await.map(|_| ())
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
