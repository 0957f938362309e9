//! Members' files from the outside: how large they are, what alarms they raised, and history that is given up.

use anyhow::{Context, Result};
use etcd_client::{AlarmAction, AlarmType};

use super::{EtcdUser, SOON};

/// A member's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Whose it is.
    pub member: String,
    /// Its size, in bytes.
    pub size: i64,
    /// What of it is in use.
    pub in_use: i64,
}

impl EtcdUser {
    /// The file of every member that runs.
    ///
    /// # Errors
    /// If one of them does not answer: who rewrites its file does not.
    pub async fn files(&self) -> Result<Vec<File>> {
        let mut files = Vec::new();
        for endpoint in self.endpoints().await? {
            let mut client = endpoint.client.clone();
            let status = tokio::time::timeout(SOON, client.status()).await;
            let status = status.with_context(|| format!("{} is silent", endpoint.member))??;
            files.push(File {
                member: endpoint.member.clone(),
                size: status.db_size(),
                in_use: status.raft_used_db_size(),
            });
        }
        Ok(files)
    }

    /// Lets all members forget what was before now.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn forget(&self) -> Result<i64> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("nobody answers")?;
        let revision = first.revision().await?;
        let options = etcd_client::CompactionOptions::new().with_physical();
        first.client.clone().compact(revision, Some(options)).await?;
        Ok(revision)
    }

    /// The alarms that are raised.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn alarms(&self) -> Result<Vec<AlarmType>> {
        let endpoints = self.endpoints().await?;
        let first = endpoints.first().context("nobody answers")?;
        let asked = first.client.clone();
        let told =
            asked.maintenance_client().alarm(AlarmAction::Get, AlarmType::None, None).await?;
        Ok(told.alarms().iter().map(etcd_client::AlarmMember::alarm).collect())
    }
}
