//! A network that is slow between the members of an etcd cluster: each message takes its time, both ways. What they say to each
//! other by the addresses of their Services goes through this process, which holds it back. It ends when its guard is dropped.

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

use crate::disturb::nft;
use crate::story::Story;

/// etcd's port for members.
const PEERS: u16 = 2380;
/// So many pieces of a connection are held back at a time.
const HELD: usize = 1024;
const PIECE: usize = 64 * 1024;

/// Members whose messages are held back until this is dropped.
#[must_use = "the network is as fast as before as soon as this is dropped"]
#[derive(Debug)]
pub struct Slowed(Vec<JoinHandle<()>>);

impl Drop for Slowed {
    fn drop(&mut self) {
        drop(nft(&format!("flush chain inet {CUT_TABLE} slowed")));
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Story {
    /// Holds back by `delay`, each way, what members are sent by new connections of other members from now on.
    ///
    /// # Errors
    /// If one of them has no Service.
    pub async fn slow_down(&self, members: &[String], delay: Duration) -> Result<Slowed> {
        let mut slowed = Slowed(Vec::new());
        nft(&format!(
            "table inet {CUT_TABLE} {{
                chain slowed {{ type nat hook prerouting priority dstnat - 10; }}
            }}"
        ))?;
        for member in members {
            let service = self.api::<Service>().get(member).await?;
            let address = service.spec.and_then(|it| it.cluster_ip).unwrap_or_default();
            let address: IpAddr =
                address.parse().with_context(|| format!("{member}: {address}"))?;
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
            let port = listener.local_addr()?.port();
            slowed.0.push(tokio::spawn(serve(listener, address, delay)));
            nft(&format!(
                "add rule inet {CUT_TABLE} slowed ip daddr {address} tcp dport {PEERS} redirect to :{port}"
            ))?;
        }
        Ok(slowed)
    }
}

async fn serve(listener: TcpListener, address: IpAddr, delay: Duration) {
    while let Ok((from, _)) = listener.accept().await {
        tokio::spawn(async move {
            // Who comes while the member is away is turned away, as the member would have done.
            let Ok(to) = TcpStream::connect((address, PEERS)).await else { return };
            let ((from_read, from_write), (to_read, to_write)) =
                (from.into_split(), to.into_split());
            tokio::join!(hold(from_read, to_write, delay), hold(to_read, from_write, delay));
        });
    }
}

/// Hands on what comes, each piece after its time.
async fn hold(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut held) = mpsc::channel::<(Instant, Vec<u8>)>(HELD);
    let reads = async move {
        let mut piece = vec![0; PIECE];
        while let Ok(read) = from.read(&mut piece).await {
            let bytes = piece.get(..read).unwrap_or_default().to_vec();
            let now = Instant::now();
            let due = now.checked_add(delay).unwrap_or(now);
            if read == 0 || sender.send((due, bytes)).await.is_err() {
                break;
            }
        }
    };
    let writes = async move {
        while let Some((due, bytes)) = held.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        drop(to.shutdown().await);
    };
    tokio::join!(reads, writes);
}
