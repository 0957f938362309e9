//! Latency between the members of an etcd cluster: peer connections to the members' Services are
//! redirected through this process, which delays each message in both directions. The delay ends
//! when its guard is dropped.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Service;
use quorate_cluster::network::CUT_TABLE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::context::TestContext;
use crate::faults::nft;

const PEER_PORT: u16 = 2380;
/// How many chunks of a connection may be delayed at a time.
const MAX_DELAYED_CHUNKS: usize = 1024;
const CHUNK: usize = 64 * 1024;

/// Members whose peer traffic is delayed until this is dropped.
#[must_use = "the delay ends when this is dropped"]
#[derive(Debug)]
pub struct AddedLatency(Vec<JoinHandle<()>>);

impl Drop for AddedLatency {
    fn drop(&mut self) {
        drop(nft(&format!("flush chain inet {CUT_TABLE} slowed")));
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl TestContext {
    /// Delays the traffic of new peer connections to these members by `delay` in each direction.
    ///
    /// # Errors
    /// If a member has no Service.
    pub async fn add_latency(&self, members: &[String], delay: Duration) -> Result<AddedLatency> {
        let mut latency = AddedLatency(Vec::new());
        nft(&format!(
            "table inet {CUT_TABLE} {{
                chain slowed {{ type nat hook prerouting priority dstnat - 10; }}
            }}"
        ))?;
        for member in members {
            let service = self.api::<Service>().get(member).await?;
            let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
            let address: IpAddr =
                address.parse().with_context(|| format!("{member}: {address}"))?;
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
            let port = listener.local_addr()?.port();
            latency.0.push(tokio::spawn(serve(listener, address, delay)));
            nft(&format!(
                "add rule inet {CUT_TABLE} slowed ip daddr {address} tcp dport {PEER_PORT} redirect to :{port}"
            ))?;
        }
        Ok(latency)
    }
}

async fn serve(listener: TcpListener, address: IpAddr, delay: Duration) {
    while let Ok((from, _)) = listener.accept().await {
        tokio::spawn(async move {
            // While the member is unreachable the connection is closed, as it would be without the
            // proxy.
            let Ok(to) = TcpStream::connect((address, PEER_PORT)).await else { return };
            let ((from_read, from_write), (to_read, to_write)) =
                (from.into_split(), to.into_split());
            tokio::join!(forward(from_read, to_write, delay), forward(to_read, from_write, delay));
        });
    }
}

/// Forwards each chunk after the delay.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut delayed) = mpsc::channel::<(Instant, Vec<u8>)>(MAX_DELAYED_CHUNKS);
    let reads = async move {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read) = from.read(&mut chunk).await {
            let bytes = chunk.get(..read).unwrap_or_default().to_vec();
            let now = Instant::now();
            let due = now.checked_add(delay).unwrap_or(now);
            if read == 0 || sender.send((due, bytes)).await.is_err() {
                break;
            }
        }
    };
    let writes = async move {
        while let Some((due, bytes)) = delayed.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        drop(to.shutdown().await);
    };
    tokio::join!(reads, writes);
}
