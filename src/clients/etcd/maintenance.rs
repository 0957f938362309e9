//! Maintenance calls to a member: defragment, compact, hash of the data, alarms.
//!
//! A call that exceeds its timeout continues in the member: etcd does not abort it when the client
//! disconnects.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions};
use tonic::Code;

use super::{EtcdError, MemberClient};
use crate::api::etcd_types::DataHash;

/// A member reads everything for this.
const HASH_TIMEOUT: Duration = Duration::from_secs(30);

impl MemberClient {
    /// Lets the member rewrite its file. It answers nobody until it is done.
    pub(crate) async fn defragment(&self) -> Result<(), EtcdError> {
        let mut client = self.client.maintenance_client();
        match self.within("rewrite the file", client.defragment()).await {
            // What was sent, and whose answer did not come in time, is under way.
            Err(EtcdError::TimedOut { .. }) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Lets all members forget what was before a revision. What is forgotten already is as good as done. Without an answer in time
    /// nobody knows whether they agreed on it, so it is to be asked for again.
    pub(crate) async fn compact(&self, revision: i64) -> Result<(), EtcdError> {
        let mut client = self.client.kv_client();
        // The answer comes when this member has let go of it; others need about as long.
        let options = CompactionOptions::new().with_physical();
        let call = client.compact(revision, Some(options));
        match self.within("give history up", call).await {
            Err(error) if error.code() == Some(Code::OutOfRange) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// What the member has at a revision, as a number that is the same for the same data.
    pub(crate) async fn hash_kv(&self, revision: i64) -> Result<DataHash, EtcdError> {
        let mut client = self.client.maintenance_client();
        let call = client.hash_kv(revision);
        let response = self.within_timeout(HASH_TIMEOUT, "compare the data", call).await?;
        Ok(DataHash { hash: response.hash(), compacted: response.compact_version() })
    }

    /// Ends every alarm of this kind.
    pub(crate) async fn disarm_alarm(&self, word: &str) -> Result<(), EtcdError> {
        for alarm in self.alarms().await?.iter().filter(|it| it.alarm_type == word) {
            let mut client = self.client.maintenance_client();
            let mut options = AlarmOptions::new();
            options.with_member(alarm.member);
            let kind =
                if word == super::NO_SPACE { AlarmType::Nospace } else { AlarmType::Corrupt };
            let call = client.alarm(AlarmAction::Deactivate, kind, Some(options));
            self.within("end an alarm", call).await?;
        }
        Ok(())
    }
}
