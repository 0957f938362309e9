//! Hostile handshakes: old versions, other protocols, records that no library would send.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dice::Dice;
use super::port::{PATIENCE, Port};

const HANDSHAKE: u8 = 0x16;

fn record(kind: u8, version: [u8; 2], content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[kind][..], &version, &length, content].concat()
}

fn config(port: &Port, only_1_2: bool, protocols: &[&str]) -> ClientConfig {
    let versions = if only_1_2 { [&TLS12] } else { [&TLS13] };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(port.roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// The first message of an honest client, without the record around it.
fn hello(port: &Port) -> Vec<u8> {
    let name = ServerName::try_from("anything.example").unwrap();
    let config = Arc::new(config(port, false, &["http/1.1"]));
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes[5..].to_vec()
}

/// A hello of a version that is no longer spoken, with ciphers that nobody should offer.
fn old_hello(version: [u8; 2]) -> Vec<u8> {
    let ciphers = [0x00, 0x01, 0x00, 0x03, 0x00, 0x2f, 0x00, 0x35];
    let mut body = [&version[..], &[7; 32], &[0, 0, 8], &ciphers, &[1, 0]].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut message = vec![1, length[1], length[2], length[3]];
    message.append(&mut body);
    record(HANDSHAKE, version, &message)
}

fn raw(port: &Port, dice: &mut Dice) -> Vec<u8> {
    match dice.below(12) {
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
            let count = dice.below(2000);
            dice.bytes(count)
        }
        _ => {
            let mut bytes = record(HANDSHAKE, [3, 1], &hello(port));
            dice.disturb(&mut bytes);
            // It may still be well; then what follows is not.
            bytes.extend_from_slice(&record(0x17, [3, 3], &[0; 99]));
            bytes
        }
    }
}

/// Sends one, and waits for the end. Text: what should not have been.
pub(crate) async fn strike(port: &Port, dice: &mut Dice, from: u8) -> Result<(), String> {
    match dice.below(8) {
        0 => match port.shake(from, config(port, true, &["http/1.1"])).await {
            Ok(_) => Err("TLS 1.2 was spoken".to_owned()),
            Err(_) => Ok(()),
        },
        1 => match port.shake(from, config(port, false, &["h2"])).await {
            Ok(_) => Err("HTTP/2 was agreed on".to_owned()),
            Err(_) => Ok(()),
        },
        2 => {
            // In pieces of one byte, each in a record of its own, as one library could not bear.
            let pieces = hello(port).into_iter().map(|byte| record(HANDSHAKE, [3, 1], &[byte]));
            until_end(port, from, &pieces.collect::<Vec<_>>().concat(), false).await
        }
        3 => {
            let stream = port.shake(from, config(port, false, &["http/1.1"])).await;
            let (mut socket, _) = stream.map_err(|error| error.to_string())?.into_inner();
            let count = dice.below(500) + 1;
            let noise = dice.bytes(count);
            socket.write_all(&record(0x17, [3, 3], &noise)).await.ok();
            end(socket).await
        }
        _ => {
            let bytes = raw(port, dice);
            until_end(port, from, &bytes, true).await
        }
    }
}

async fn until_end(port: &Port, from: u8, bytes: &[u8], closes: bool) -> Result<(), String> {
    let mut socket = port.socket(from).await.map_err(|error| error.to_string())?;
    socket.write_all(bytes).await.ok();
    if closes {
        socket.shutdown().await.ok();
        return end(socket).await;
    }
    let mut first = [0_u8; 1];
    match timeout(PATIENCE, socket.read(&mut first)).await {
        Ok(_) => Ok(()),
        Err(_) => Err("a handshake was left without an end".to_owned()),
    }
}

async fn end(mut socket: TcpStream) -> Result<(), String> {
    let mut said = Vec::new();
    match timeout(PATIENCE, socket.read_to_end(&mut said)).await {
        // The end may come as a reset, too.
        Ok(_) => Ok(()),
        Err(_) => Err("a handshake was left without an end".to_owned()),
    }
}
