//! Maintenance calls to a member: defragment, compact, hash of the data, alarms.
//!
//! A call that exceeds its timeout continues in the member: etcd does not abort it when the client
//! disconnects.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions};
use tonic::Code;

use super::{EtcdError, MemberClient};
use crate::api::etcd_types::DataHash;

/// The member reads its whole database for a hash.
const HASH_TIMEOUT: Duration = Duration::from_secs(30);

impl MemberClient {
    /// Defragments the member's database. The member is unavailable until it finishes.
    pub(crate) async fn defragment(&self) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        match self.within("defragment", client.defragment()).await {
            // The member continues after the timeout.
            Err(EtcdError::TimedOut { .. }) => Ok(()),
            response => response.map(|_| ()),
        }
    }

    /// Compacts to a revision, in all members. Success if that is done already. After a timeout it
    /// is unknown whether the compaction was committed, so the call must be repeated.
    pub(crate) async fn compact(&self, revision: i64) -> Result<(), EtcdError> {
        let mut client = self.client.kv_client();
        // The response comes when this member has compacted; the others take about as long.
        let options = CompactionOptions::new().with_physical();
        let call = client.compact(revision, Some(options));
        match self.within("compact", call).await {
            Err(error) if error.code() == Some(Code::OutOfRange) => Ok(()),
            response => response.map(|_| ()),
        }
    }

    /// The hash of the member's data at a revision.
    pub(crate) async fn hash_kv(&self, revision: i64) -> Result<DataHash, EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.hash_kv(revision);
        let response = self.within_timeout(HASH_TIMEOUT, "hash the data", call).await?;
        Ok(DataHash { hash: response.hash(), compacted: response.compact_version() })
    }

    /// Disarms every alarm of this type.
    pub(crate) async fn disarm_alarm(&self, alarm_type: &str) -> Result<(), EtcdError> {
        for alarm in self.alarms().await?.iter().filter(|alarm| alarm.alarm_type == alarm_type) {
            let mut client = self.client.maintenance_client();
            let mut options = AlarmOptions::new();
            options.with_member(alarm.member);
            let is_no_space = alarm_type == super::NO_SPACE;
            let kind = if is_no_space { AlarmType::Nospace } else { AlarmType::Corrupt };
            let call = client.alarm(AlarmAction::Deactivate, kind, Some(options));
            self.within("disarm an alarm", call).await?;
        }
        Ok(())
    }
}
