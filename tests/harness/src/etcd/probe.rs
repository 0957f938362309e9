//! Requests to one member.
//!
//! The member list is only read from a member whose linearizable read has just succeeded: an
//! isolated member also serves a member list, and an outdated one.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use etcd_client::{GetOptions, ResponseHeader};

use super::Endpoint;

/// The key of reads whose value does not matter.
const ANY_KEY: &str = "health";
const LINEARIZABLE_READ_TIMEOUT: Duration = Duration::from_millis(1500);

/// A member as etcd lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMember {
    /// The member ID.
    pub id: u64,
    /// The name in the peer URL, which is set before the member has started.
    pub name: String,
    /// Whether the member is a learner.
    pub is_learner: bool,
}

impl fmt::Display for ListedMember {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_learner { "learner" } else { "voter" };
        write!(formatter, "{} ({kind} {:x})", self.name, self.id)
    }
}

/// The member list, read after a linearizable read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberList {
    /// The cluster ID.
    pub cluster: u64,
    /// The members.
    pub members: Vec<ListedMember>,
}

impl MemberList {
    /// The ID of a member.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<u64> {
        self.members.iter().find(|member| member.name == name).map(|member| member.id)
    }
}

/// The status of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberProbe {
    /// The member ID.
    pub id: u64,
    /// The cluster ID.
    pub cluster: u64,
    /// The ID of the leader as the member sees it; 0 for none.
    pub leader: u64,
    /// The etcd version.
    pub version: String,
    /// Whether the member is a learner.
    pub is_learner: bool,
    /// Whether a linearizable read succeeds.
    pub linearizable_read_ok: bool,
    /// The member list, if the linearizable read succeeded.
    pub list: Option<MemberList>,
}

impl MemberProbe {
    /// Whether the member sees itself as the leader.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.leader == self.id
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The revision of the last write.
    pub revision: i64,
}

impl Endpoint {
    /// The member's status, and the member list if a quorum is available.
    ///
    /// # Errors
    /// If the member is unreachable.
    pub async fn probe(&self) -> Result<MemberProbe> {
        let status = self.client.clone().status().await.with_context(|| self.describe())?;
        let header = status.header().context("a response without a header")?;
        // Without a quorum the read times out; the member is reachable nevertheless.
        let list = tokio::time::timeout(LINEARIZABLE_READ_TIMEOUT, self.member_list()).await;
        let list = list.ok().and_then(Result::ok);
        Ok(MemberProbe {
            id: header.member_id(),
            cluster: header.cluster_id(),
            leader: status.leader(),
            version: status.version().to_owned(),
            is_learner: status.is_learner(),
            linearizable_read_ok: list.is_some(),
            list,
        })
    }

    /// The member list, after a linearizable read.
    ///
    /// # Errors
    /// If the member is unreachable, or has no quorum.
    pub async fn member_list(&self) -> Result<MemberList> {
        self.revision().await?;
        let list = self.client.clone().member_list().await.with_context(|| self.describe())?;
        let cluster = list.header().map(ResponseHeader::cluster_id);
        let members = list.members().iter().map(|member| ListedMember {
            id: member.id(),
            name: member.peer_urls().first().map_or("", |url| host(url)).to_owned(),
            is_learner: member.is_learner(),
        });
        Ok(MemberList {
            cluster: cluster.context("a response without a header")?,
            members: members.collect(),
        })
    }

    /// The present revision, by a linearizable read.
    ///
    /// # Errors
    /// If the member is unreachable, or has no quorum.
    pub async fn revision(&self) -> Result<i64> {
        let read = self.client.clone().get(ANY_KEY, None).await.with_context(|| self.describe())?;
        Ok(read.header().context("a response without a header")?.revision())
    }

    /// The hash of all data up to a revision (`HashKV`).
    ///
    /// # Errors
    /// If the member is unreachable, or has not applied the revision.
    pub async fn hash(&self, revision: i64) -> Result<u32> {
        let response = self.client.clone().hash_kv(revision).await;
        Ok(response.with_context(|| self.describe())?.hash())
    }

    /// Writes a value and returns the revision of the write.
    ///
    /// # Errors
    /// If the write was not acknowledged. It may have been applied nevertheless.
    pub async fn put(&self, key: &str, value: &str) -> Result<i64> {
        let put =
            self.client.clone().put(key, value, None).await.with_context(|| self.describe())?;
        Ok(put.header().context("a response without a header")?.revision())
    }

    /// The keys with a prefix, by a linearizable read.
    ///
    /// # Errors
    /// If the member is unreachable, or has no quorum.
    pub async fn get_prefix(&self, prefix: &str) -> Result<Vec<KeyValue>> {
        let options = GetOptions::new().with_prefix();
        let read = self.client.clone().get(prefix, Some(options)).await;
        let read = read.with_context(|| self.describe())?;
        let value = |pair: &etcd_client::KeyValue| {
            Ok(KeyValue {
                key: pair.key_str()?.to_owned(),
                value: pair.value_str()?.to_owned(),
                revision: pair.mod_revision(),
            })
        };
        read.kvs().iter().map(value).collect()
    }

    fn describe(&self) -> String {
        format!("{} at {}", self.member, self.address)
    }
}

/// The first label of the host of a URL: the name of the member.
fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split(['.', ':', '/']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn member_name_is_the_first_label_of_the_host() {
        assert_eq!(host("https://main-abcde.main.shop.svc:2380"), "main-abcde");
        assert_eq!(host("http://bare-0.bare:2380"), "bare-0");
    }
}
