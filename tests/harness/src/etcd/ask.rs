//! Questions to one member, and what it answers.
//!
//! A list of members is only asked of one that has just read with a quorum: the list alone is also answered by a
//! member that was left behind.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use etcd_client::{GetOptions, ResponseHeader};

use super::Endpoint;

/// A key for reads that only want to know whether there is an answer.
const ANY: &str = "health";
/// How long a member may take to agree with the others.
const AGREED: Duration = Duration::from_millis(1500);

/// A member as etcd lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// What etcd calls it.
    pub id: u64,
    /// The name in its peer URL, which is there before it has started.
    pub name: String,
    /// Whether it only listens.
    pub learner: bool,
}

impl fmt::Display for Registered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.learner { "learner" } else { "voter" };
        write!(formatter, "{} ({kind} {:x})", self.name, self.id)
    }
}

/// A list of members, read with a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What etcd calls the cluster.
    pub cluster: u64,
    /// Its members.
    pub members: Vec<Registered>,
}

impl Listed {
    /// The ID of a member.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<u64> {
        self.members.iter().find(|it| it.name == name).map(|it| it.id)
    }
}

/// What one member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What etcd calls it.
    pub id: u64,
    /// The cluster that it is in.
    pub cluster: u64,
    /// Whom it takes for the leader; 0 is nobody.
    pub leader: u64,
    /// The release that it runs.
    pub version: String,
    /// Whether it only listens.
    pub learner: bool,
    /// Whether it can read with a quorum.
    pub agrees: bool,
    /// The list, if it could read with a quorum just before.
    pub list: Option<Listed>,
}

/// A value and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its key.
    pub key: String,
    /// What it is.
    pub value: String,
    /// The revision that wrote it.
    pub revision: i64,
}

impl Endpoint {
    /// Everything that one member can tell.
    ///
    /// # Errors
    /// If it does not even answer for itself.
    pub async fn ask(&self) -> Result<Answer> {
        let status = self.client.clone().status().await.with_context(|| self.silent())?;
        let header = status.header().context("an answer without a header")?;
        // Without a quorum this takes its time, and the member is there all the same.
        let list = tokio::time::timeout(AGREED, self.listed()).await;
        let list = list.ok().and_then(Result::ok);
        Ok(Answer {
            id: header.member_id(),
            cluster: header.cluster_id(),
            leader: status.leader(),
            version: status.version().to_owned(),
            learner: status.is_learner(),
            agrees: list.is_some(),
            list,
        })
    }

    /// The list, from a member that has just read with a quorum.
    ///
    /// # Errors
    /// If it does not answer, or has no quorum.
    pub async fn listed(&self) -> Result<Listed> {
        self.revision().await?;
        let list = self.client.clone().member_list().await.with_context(|| self.silent())?;
        let cluster = list.header().map(ResponseHeader::cluster_id);
        let members = list.members().iter().map(|member| Registered {
            id: member.id(),
            name: member.peer_urls().first().map_or("", |url| host(url)).to_owned(),
            learner: member.is_learner(),
        });
        Ok(Listed {
            cluster: cluster.context("an answer without a header")?,
            members: members.collect(),
        })
    }

    /// The present revision, read with a quorum.
    ///
    /// # Errors
    /// If it does not answer, or has no quorum.
    pub async fn revision(&self) -> Result<i64> {
        let read = self.client.clone().get(ANY, None).await.with_context(|| self.silent())?;
        Ok(read.header().context("an answer without a header")?.revision())
    }

    /// The hash of all data up to a revision, and of what is forgotten.
    ///
    /// # Errors
    /// If it does not answer, or is not that far.
    pub async fn hash(&self, revision: i64) -> Result<u32> {
        let answer = self.client.clone().hash_kv(revision).await;
        Ok(answer.with_context(|| self.silent())?.hash())
    }

    /// Writes a value; answers with the revision that wrote it.
    ///
    /// # Errors
    /// If it was not acknowledged. It may have been written all the same.
    pub async fn put(&self, key: &str, value: &str) -> Result<i64> {
        let put = self.client.clone().put(key, value, None).await.with_context(|| self.silent())?;
        Ok(put.header().context("an answer without a header")?.revision())
    }

    /// What is below a prefix, read with a quorum.
    ///
    /// # Errors
    /// If it does not answer, or has no quorum.
    pub async fn below(&self, prefix: &str) -> Result<Vec<Value>> {
        let options = GetOptions::new().with_prefix();
        let read = self.client.clone().get(prefix, Some(options)).await;
        let read = read.with_context(|| self.silent())?;
        let value = |pair: &etcd_client::KeyValue| {
            Ok(Value {
                key: pair.key_str()?.to_owned(),
                value: pair.value_str()?.to_owned(),
                revision: pair.mod_revision(),
            })
        };
        read.kvs().iter().map(value).collect()
    }

    fn silent(&self) -> String {
        format!("{} at {}", self.member, self.address)
    }
}

/// The first word of the host of a URL: a member is called so.
fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split(['.', ':', '/']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_member_is_known_by_the_first_word_of_its_host() {
        assert_eq!(host("https://main-abcde.main.shop.svc:2380"), "main-abcde");
        assert_eq!(host("http://bare-0.bare:2380"), "bare-0");
    }
}
