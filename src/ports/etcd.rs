//! Calls to one member of an etcd cluster.
//! Comes in: where the member is and who it says it is. Goes out: its answers, or how a call ended.
//! May touch: the network, each call within a limit. It chooses nothing and repeats nothing: etcd's
//! own client would spread calls over members, and an answer must be known to come from one.

pub(crate) mod metrics;
mod upkeep;
pub(crate) mod users;

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

use crate::api::etcd_says::{Alarm, Listed, Standing};

/// How long a connection may take. A member in the same cluster answers in milliseconds.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// A key that nobody needs: only the agreement on it counts.
const PROBE_KEY: &str = "quorate-probe";
/// A key that is smaller.
const BEFORE_PROBE_KEY: &str = "quorate";
/// etcd's words for its alarms.
const NO_SPACE: &str = "NOSPACE";
const CORRUPT: &str = "CORRUPT";
/// So many entries are on their way at once.
const AT_ONCE: usize = 64;

/// What the operator shows to members, and whom it trusts. It is not shown to anybody else.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// The certificates of the authority that signed the members', as PEM.
    pub(crate) authority: Vec<u8>,
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
pub(crate) struct Place {
    /// The address of its pod. Its name is not looked up: caches of names lag behind.
    pub(crate) address: IpAddr,
    /// Its port for clients.
    pub(crate) port: u16,
    /// The host that its certificate must name.
    pub(crate) host: String,
    /// Whether it takes whoever calls in the clear, and nobody else.
    pub(crate) is_open: bool,
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
    #[error("failed to {doing} at {host}")]
    Call {
        doing: &'static str,
        host: String,
        #[source]
        source: Box<etcd_client::Error>,
    },
    /// No answer came in time. A change may still be made.
    #[error("failed to {doing} at {host}: no answer within {}ms", .limit.as_millis())]
    TimedOut { doing: &'static str, host: String, limit: Duration },
    /// The answer lacks what every answer has.
    #[error("failed to {doing} at {host}: the answer is incomplete")]
    Incomplete { doing: &'static str, host: String },
}

impl EtcdError {
    /// etcd's own words, if it said any.
    pub(crate) fn words(&self) -> Option<&str> {
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
pub(crate) struct Line {
    client: Client,
    host: String,
    limit: Duration,
}

impl Line {
    /// A line to the member at `place`, on which each call has `limit`. Nothing is sent yet.
    pub(crate) async fn open(
        place: &Place,
        credentials: Option<&Credentials>,
        limit: Duration,
    ) -> Result<Self, EtcdError> {
        let host = place.host.clone();
        let unprepared =
            |source| EtcdError::Prepare { host: host.clone(), source: Box::new(source) };
        let channel = match credentials {
            None => Endpoint::from_shared(format!("http://{}", place.socket())),
            Some(credentials) => Endpoint::from_shared(format!("https://{}", place.socket()))
                .and_then(|it| it.tls_config(tls(credentials, &host))),
        };
        let channel = channel.map_err(unprepared)?.connect_timeout(CONNECT_LIMIT).connect_lazy();
        let opened = Client::from_channel(Channel::Tonic(channel), None).await;
        let failed = |source| EtcdError::Call {
            doing: "connect",
            host: host.clone(),
            source: Box::new(source),
        };
        let client = opened.map_err(failed)?;
        Ok(Self { client, host, limit })
    }

    async fn within<T>(
        &self,
        doing: &'static str,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, EtcdError> {
        self.within_limit(self.limit, doing, call).await
    }

    async fn within_limit<T>(
        &self,
        limit: Duration,
        doing: &'static str,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, EtcdError> {
        let host = || self.host.clone();
        match time::timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => {
                Err(EtcdError::Call { doing, host: host(), source: Box::new(source) })
            }
            Err(time::error::Elapsed { .. }) => {
                Err(EtcdError::TimedOut { doing, host: host(), limit })
            }
        }
    }

    /// What the member says of itself, from what it has.
    pub(crate) async fn status(&self) -> Result<Standing, EtcdError> {
        let doing = "read the status";
        let mut client = self.client.maintenance_client();
        let told = self.within(doing, client.status()).await?;
        let incomplete = || EtcdError::Incomplete { doing, host: self.host.clone() };
        let header = told.header().ok_or_else(incomplete)?;
        Ok(Standing {
            cluster: header.cluster_id(),
            member: header.member_id(),
            leader: told.leader(),
            version: told.version().to_owned(),
            storage_version: told.storage_version().to_owned(),
            lowered_to: told
                .downgrade_info()
                .filter(|it| it.enabled())
                .map(|it| it.target_version().to_owned())
                .unwrap_or_default(),
            is_learner: told.is_learner(),
            raft_index: told.raft_index(),
            applied_index: told.raft_applied_index(),
            revision: header.revision(),
            db_size: told.db_size(),
            db_in_use: told.raft_used_db_size(),
        })
    }

    /// Whether the member can agree with a quorum on anything: a read that needs one. The answer is the
    /// revision that they agree on.
    pub(crate) async fn agrees(&self) -> Result<i64, EtcdError> {
        let doing = "read with a quorum";
        let mut client = self.client.kv_client();
        let options = GetOptions::new().with_count_only();
        let told = self.within(doing, client.get(PROBE_KEY, Some(options))).await?;
        let incomplete = || EtcdError::Incomplete { doing, host: self.host.clone() };
        Ok(told.header().ok_or_else(incomplete)?.revision())
    }

    /// Everybody the member knows of. It is what a quorum agrees on only if the member has just read with one:
    /// the client cannot ask for more.
    pub(crate) async fn members(&self) -> Result<Vec<Listed>, EtcdError> {
        let mut client = self.client.cluster_client();
        let told = self.within("list the members", client.member_list()).await?;
        let listed = |it: &etcd_client::Member| Listed {
            id: it.id(),
            peer_urls: it.peer_urls().to_vec(),
            is_learner: it.is_learner(),
        };
        Ok(told.members().iter().map(listed).collect())
    }

    /// The alarms that are on, of all members.
    pub(crate) async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.alarm(AlarmAction::Get, AlarmType::None, None);
        let told = self.within("read the alarms", call).await?;
        let alarm = |it: &etcd_client::AlarmMember| {
            let word = match it.alarm() {
                AlarmType::None => return None,
                AlarmType::Nospace => NO_SPACE,
                AlarmType::Corrupt => CORRUPT,
            };
            Some(Alarm { member: it.member_id(), word })
        };
        Ok(told.alarms().iter().filter_map(alarm).collect())
    }

    /// Writes entries to the log that change nothing: from one key up to a smaller one there is no key to delete.
    pub(crate) async fn write_nothing(&self, entries: usize) -> Result<(), EtcdError> {
        let one = |_| async {
            let mut client = self.client.kv_client();
            let options = DeleteOptions::new().with_range(BEFORE_PROBE_KEY);
            let call = client.delete(PROBE_KEY, Some(options));
            self.within("write to the log", call).await.map(|_| ())
        };
        stream::iter(0..entries).map(one).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Lets members of an older minor version in, after etcd has found that it can: it brings its data down to that.
    pub(crate) async fn allow_downgrade(&self, to: &str) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        let ask = client.downgrade(DowngradeOptions::Validate(to.to_owned()));
        self.within("ask for a downgrade", ask).await?;
        let call = client.downgrade(DowngradeOptions::Enable(to.to_owned()));
        self.within("allow a downgrade", call).await.map(|_| ())
    }

    /// Lets no members of an older minor version in any more.
    pub(crate) async fn forbid_downgrade(&self) -> Result<(), EtcdError> {
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

impl Place {
    fn socket(&self) -> std::net::SocketAddr {
        std::net::SocketAddr::new(self.address, self.port)
    }
}

fn tls(credentials: &Credentials, host: &str) -> TlsOptions {
    let Credentials { authority, certificate, key } = credentials;
    TlsOptions::new()
        .domain_name(host)
        .ca_certificate(Certificate::from_pem(authority))
        .identity(Identity::from_pem(certificate, key))
}
