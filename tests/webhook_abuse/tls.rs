//! Hostile handshakes: old versions, other protocols, malformed records.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::rng::Rng;
use super::server_process::{RESPONSE_TIMEOUT, ServerProcess};

const HANDSHAKE: u8 = 0x16;

fn record(kind: u8, version: [u8; 2], content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[kind][..], &version, &length, content].concat()
}

fn config(server: &ServerProcess, only_1_2: bool, protocols: &[&str]) -> ClientConfig {
    let versions = if only_1_2 { [&TLS12] } else { [&TLS13] };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(server.roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// The `ClientHello` of a legitimate client, without its record.
fn hello(server: &ServerProcess) -> Vec<u8> {
    let name = ServerName::try_from("anything.example").unwrap();
    let config = Arc::new(config(server, false, &["http/1.1"]));
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes[5..].to_vec()
}

/// A `ClientHello` of an obsolete version, with weak ciphers.
fn old_hello(version: [u8; 2]) -> Vec<u8> {
    let ciphers = [0x00, 0x01, 0x00, 0x03, 0x00, 0x2f, 0x00, 0x35];
    let mut body = [&version[..], &[7; 32], &[0, 0, 8], &ciphers, &[1, 0]].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut message = vec![1, length[1], length[2], length[3]];
    message.append(&mut body);
    record(HANDSHAKE, version, &message)
}

fn raw(server: &ServerProcess, rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => old_hello([3, 0]),
        1 => old_hello([3, 1]),
        2 => old_hello([3, 2]),
        3 => old_hello([3, 3]),
        4 => vec![0x80, 0x2e, 1, 0, 2, 0, 21, 0, 0, 0, 16],
        5 => record(HANDSHAKE, [3, 1], &[]).repeat(1000),
        6 => [&[HANDSHAKE, 3, 1, 0xff, 0xff][..], &vec![0; 70_000]].concat(),
        7 => record(0x15, [3, 3], &[1, 90]).repeat(500),
        8 => record(0x14, [3, 3], &[1]).repeat(500),
        9 => b"POST /convert HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        10 => {
            let count = rng.below(2000);
            rng.bytes(count)
        }
        _ => {
            let mut bytes = record(HANDSHAKE, [3, 1], &hello(server));
            rng.disturb(&mut bytes);
            // The record may still be valid; then the following one is not.
            bytes.extend_from_slice(&record(0x17, [3, 3], &[0; 99]));
            bytes
        }
    }
}

/// Sends a hostile handshake and waits for the end; an error is an unexpected outcome.
pub(crate) async fn handshake(
    server: &ServerProcess,
    rng: &mut Rng,
    from: u8,
) -> Result<(), String> {
    match rng.below(8) {
        0 => match server.handshake(from, config(server, true, &["http/1.1"])).await {
            Ok(_) => Err("TLS 1.2 was accepted".to_owned()),
            Err(_) => Ok(()),
        },
        1 => match server.handshake(from, config(server, false, &["h2"])).await {
            Ok(_) => Err("HTTP/2 was negotiated".to_owned()),
            Err(_) => Ok(()),
        },
        2 => {
            // One byte per record.
            let records = hello(server).into_iter().map(|byte| record(HANDSHAKE, [3, 1], &[byte]));
            send_until_end(server, from, &records.collect::<Vec<_>>().concat(), false).await
        }
        3 => {
            let stream = server.handshake(from, config(server, false, &["http/1.1"])).await;
            let (mut socket, _) = stream.map_err(|error| error.to_string())?.into_inner();
            let count = rng.below(500) + 1;
            let random = rng.bytes(count);
            socket.write_all(&record(0x17, [3, 3], &random)).await.ok();
            end(socket).await
        }
        _ => {
            let bytes = raw(server, rng);
            send_until_end(server, from, &bytes, true).await
        }
    }
}

async fn send_until_end(
    server: &ServerProcess,
    from: u8,
    bytes: &[u8],
    close: bool,
) -> Result<(), String> {
    let mut socket = server.socket(from).await.map_err(|error| error.to_string())?;
    socket.write_all(bytes).await.ok();
    if close {
        socket.shutdown().await.ok();
        return end(socket).await;
    }
    let mut first = [0_u8; 1];
    match timeout(RESPONSE_TIMEOUT, socket.read(&mut first)).await {
        Ok(_) => Ok(()),
        Err(_) => Err("the handshake did not end".to_owned()),
    }
}

async fn end(mut socket: TcpStream) -> Result<(), String> {
    let mut received = Vec::new();
    match timeout(RESPONSE_TIMEOUT, socket.read_to_end(&mut received)).await {
        // The connection may also end with a reset.
        Ok(_) => Ok(()),
        Err(_) => Err("the handshake did not end".to_owned()),
    }
}
