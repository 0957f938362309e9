//! Validates endpoints, hosts, buckets and image repositories, with a message that states what is
//! allowed. The patterns in the schema accept more, because a pattern has no message; what the
//! remote side would reject is reported here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::api::suggest;

/// Example at the end of messages about endpoints.
const ENDPOINT: &str = "such as 'https://minio.storage.svc:9000'";
/// Prefixes of bucket names that Amazon reserves.
const RESERVED_PREFIXES: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
/// Suffixes of bucket names that Amazon reserves.
const RESERVED_SUFFIXES: [&str; 2] = ["-s3alias", "--ol-s3"];

/// Error of an endpoint, which must be `http` or `https`, a host and an optional port.
#[must_use]
pub fn endpoint_error(text: &str) -> Option<String> {
    if let Some(error) = common_error(text) {
        return Some(error);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Some(format!(
            "must begin with 'http://' or 'https://': write 'https://{text}', or 'http://{text}' without TLS"
        ));
    };
    if !matches!(scheme, "http" | "https") {
        return Some(format!(
            "must begin with 'http://' or 'https://', not with '{scheme}://', {ENDPOINT}"
        ));
    }
    if rest.contains('@') {
        return Some(
            "must not contain a user or password; use a Secret in `credentialsSecretRef`"
                .to_owned(),
        );
    }
    let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
    server_error(server).or_else(|| {
        (server != rest).then(|| {
            format!(
                "must end after the host and port: write '{scheme}://{server}'; set the bucket in `bucket` and the prefix of the keys in `prefix`"
            )
        })
    })
}

/// Error of a host with an optional port.
#[must_use]
pub fn host_error(text: &str) -> Option<String> {
    if let Some(error) = common_error(text) {
        return Some(error);
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return Some(format!("must be a host, not a URL: write '{host}' without '{scheme}://'"));
    }
    if let Some((host, _)) = text.split_once('/') {
        return Some(format!("must be a host without a path: write '{host}'"));
    }
    server_error(text)
}

/// Errors common to all: empty, typographic characters, or spaces.
fn common_error(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty".to_owned());
    }
    if let Some(plain) = suggest::replace_typographic(text) {
        return Some(format!("has typographic characters; write '{plain}' with plain ones"));
    }
    let blank = text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    blank.then(|| "must not have spaces".to_owned())
}

/// Error of a host with an optional port, without a scheme.
fn server_error(text: &str) -> Option<String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<Ipv6Addr>().is_err() {
                return Some(format!("'[{address}]' is not an IPv6 address"));
            }
            match rest.strip_prefix(':') {
                Some(port) => (None, Some(port)),
                None if rest.is_empty() => (None, None),
                None => return Some(format!("'{rest}' must not follow an IPv6 address")),
            }
        }
        None if text.parse::<Ipv6Addr>().is_ok() => {
            return Some(format!("must have an IPv6 address in brackets: write '[{text}]'"));
        }
        None => match text.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(text), None),
        },
    };
    host.and_then(host_name_error).or_else(|| port.and_then(port_error))
}

fn port_error(port: &str) -> Option<String> {
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let good = digits && port.parse::<u16>().is_ok_and(|number| number > 0);
    (!good).then(|| format!("port '{port}' must be a number from 1 to 65535"))
}

/// Error of a host name or IPv4 address.
fn host_name_error(host: &str) -> Option<String> {
    if host.is_empty() {
        return Some(format!("must have a host, {ENDPOINT}"));
    }
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // No domain ends in a number, so this must be an address.
    if host.rsplit('.').next().is_some_and(numbers) {
        let bad = host.parse::<Ipv4Addr>().is_err();
        return bad.then(|| format!("'{host}' is not an IPv4 address"));
    }
    if host.len() > 253 {
        return Some("host must have at most 253 characters".to_owned());
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let bad = !host.split('.').all(label);
    bad.then(|| {
        format!(
            "host '{host}' must be letters, digits and dashes with single dots between them, and no part may begin or end with a dash"
        )
    })
}

/// Error of the name of an S3 bucket, by Amazon's rules, which other servers follow.
#[must_use]
pub fn bucket_error(text: &str) -> Option<String> {
    if let Some(error) = common_error(text) {
        return Some(error);
    }
    if let Some((_, bucket)) = text.split_once("://") {
        let bucket = bucket.split('/').next().unwrap_or_default();
        return Some(format!("must be a name, not a URL: write '{bucket}'"));
    }
    if let Some((bucket, _)) = text.split_once('/') {
        return Some(format!("must not have '/': write '{bucket}', and set the rest in `prefix`"));
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(format!("must be in lower case: write '{}'", text.to_ascii_lowercase()));
    }
    bucket_letters(text).or_else(|| bucket_reserved(text))
}

fn bucket_letters(text: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if let Some(odd) =
        text.chars().find(|letter| !matches!(letter, 'a'..='z' | '0'..='9' | '.' | '-'))
    {
        return Some(format!(
            "must be lower case letters, digits, dots and dashes; '{odd}' is not allowed"
        ));
    }
    let length = text.len();
    if !(3..=63).contains(&length) {
        return Some(format!("must have 3 to 63 characters, and has {length}"));
    }
    let ends = [text.bytes().next(), text.bytes().next_back()];
    if !ends.into_iter().all(|byte| byte.is_some_and(plain)) {
        return Some("must begin and end with a letter or a digit".to_owned());
    }
    text.contains("..").then(|| "must not have two dots side by side".to_owned())
}

fn bucket_reserved(text: &str) -> Option<String> {
    if text.parse::<Ipv4Addr>().is_ok() {
        return Some("must not be an IP address; set a server in `endpoint`".to_owned());
    }
    if let Some(start) = RESERVED_PREFIXES.iter().find(|start| text.starts_with(**start)) {
        return Some(format!("must not begin with '{start}', which Amazon reserves"));
    }
    let end = RESERVED_SUFFIXES.iter().find(|end| text.ends_with(**end))?;
    Some(format!("must not end with '{end}', which Amazon reserves"))
}

/// Error of an image repository, which must not have a tag: `version` selects it.
#[must_use]
pub fn repository_error(text: &str) -> Option<String> {
    if let Some(error) = common_error(text) {
        return Some(error);
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return Some(format!("must not begin with '{scheme}://': write '{rest}'"));
    }
    if let Some((image, _)) = text.split_once('@') {
        let repository = tagged(image).map_or(image, |(repository, _)| repository);
        return Some(format!(
            "must not contain a digest: `version` selects the image; write '{repository}'"
        ));
    }
    if let Some((repository, tag)) = tagged(text) {
        return Some(format!(
            "must not contain the tag '{tag}': `version` selects the image; write '{repository}'"
        ));
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(format!("must be in lower case: write '{}'", text.to_ascii_lowercase()));
    }
    repository_parts(text)
}

/// Splits off the tag: the part after the last colon, unless that is the port of a registry.
fn tagged(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))
}

fn repository_parts(text: &str) -> Option<String> {
    let (registry, path) = match text.split_once('/') {
        Some((registry, path)) => (registry, Some(path)),
        None => (text, None),
    };
    if let Some((_, port)) = registry.split_once(':')
        && let Some(error) = port_error(port)
    {
        return Some(error);
    }
    let name = registry.split(':').next().unwrap_or_default();
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let good = |part: &str| {
        part.bytes().next().is_some_and(edge)
            && part.bytes().next_back().is_some_and(edge)
            && part.bytes().all(|byte| edge(byte) || matches!(byte, b'.' | b'_' | b'-'))
    };
    let mut parts = std::iter::once(name).chain(path.into_iter().flat_map(|path| path.split('/')));
    let bad = parts.find(|part| !good(part))?;
    Some(format!(
        "'{bad}' must be lower case letters and digits, with dots, dashes and underscores only between them; such as 'quay.io/coreos/etcd'"
    ))
}

#[cfg(test)]
mod tests;
