//! Maintenance requests: database file sizes, alarms and compaction.

use anyhow::{Context, Result};
use etcd_client::{AlarmAction, AlarmType};

use super::{EtcdClient, REQUEST_TIMEOUT};

/// A member's database file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFile {
    /// The name of the member.
    pub member: String,
    /// The size, in bytes.
    pub size: i64,
    /// The bytes in use.
    pub in_use: i64,
}

impl EtcdClient {
    /// The database file of every running member.
    ///
    /// # Errors
    /// If a member is unreachable, as one is that is being defragmented.
    pub async fn database_files(&self) -> Result<Vec<DatabaseFile>> {
        let mut files = Vec::new();
        for endpoint in self.endpoints().await? {
            let mut client = endpoint.client.clone();
            let status = tokio::time::timeout(REQUEST_TIMEOUT, client.status()).await;
            let status =
                status.with_context(|| format!("{} does not respond", endpoint.member))??;
            files.push(DatabaseFile {
                member: endpoint.member.clone(),
                size: status.db_size(),
                in_use: status.raft_used_db_size(),
            });
        }
        Ok(files)
    }

    /// Compacts to the present revision and returns it.
    ///
    /// # Errors
    /// If no member is reachable.
    pub async fn compact(&self) -> Result<i64> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("no member is running")?;
        let revision = first.revision().await?;
        let options = etcd_client::CompactionOptions::new().with_physical();
        first.client.clone().compact(revision, Some(options)).await?;
        Ok(revision)
    }

    /// The active alarms.
    ///
    /// # Errors
    /// If no member is reachable.
    pub async fn alarms(&self) -> Result<Vec<AlarmType>> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("no member is running")?;
        let mut client = first.client.maintenance_client();
        let response = client.alarm(AlarmAction::Get, AlarmType::None, None).await?;
        Ok(response.alarms().iter().map(etcd_client::AlarmMember::alarm).collect())
    }
}
