//! Private keys as people and tools write them, as PKCS #8.
//! Comes in: PEM, from anyone. Goes out: the key in PKCS #8, or why it cannot be used. May touch: nothing
//! outside; pure. Older tools write RSA keys as PKCS #1 and keys on curves as SEC 1; both are the inner part of PKCS #8.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::ca::{MAX_PEM_BYTES, ParseError, PrivateKey};

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
/// The number 0: the version of PKCS #8.
const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
/// `rsaEncryption`.
const RSA: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `id-ecPublicKey` on `prime256v1`.
const P256: [u8; 21] = [
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// `id-ecPublicKey` on `secp384r1`.
const P384: [u8; 18] = [
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];

impl PrivateKey {
    /// Reads the first key that is in `pem`, however it is written.
    pub(crate) fn read(pem: &[u8]) -> Result<Self, ParseError> {
        if pem.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLong);
        }
        // What the reader says might tell of the key.
        let found = PrivateKeyDer::from_pem_slice(pem).or(Err(ParseError::NotAKey))?;
        let kinds = match &found {
            PrivateKeyDer::Pkcs8(it) => vec![it.secret_pkcs8_der().to_vec()],
            PrivateKeyDer::Pkcs1(it) => vec![pkcs8(&RSA, it.secret_pkcs1_der())],
            // The curve may not be said inside; only the right one can sign.
            PrivateKeyDer::Sec1(it) => {
                let inner = it.secret_sec1_der();
                vec![pkcs8(&P256, inner), pkcs8(&P384, inner)]
            }
            _ => Vec::new(),
        };
        let mut keys = kinds.into_iter().map(Self::new);
        keys.find(|it| it.signer().is_ok()).ok_or(ParseError::NotAKey)
    }
}

fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let content = [&VERSION, algorithm, &tagged(OCTET_STRING, key)].concat();
    tagged(SEQUENCE, &content)
}

/// A value of ASN.1, with its kind and its length before it.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match (length.as_slice(), u8::try_from(length.len())) {
        ([], _) => out.push(0),
        ([short], _) if *short < 0x80 => out.push(*short),
        (long, count) => {
            // No key has so many bytes that their number would not fit.
            out.push(0x80 | count.unwrap_or(0x7f));
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    /// Made for this test with `openssl genrsa -traditional 2048`, and used nowhere.
    const OLD_RSA: &str = include_str!("key/rsa-pkcs1.txt");

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    }

    /// What is inside of PKCS #8: after the version and the algorithm.
    fn inner<'a>(pkcs8: &'a [u8], algorithm: &[u8]) -> &'a [u8] {
        let at = pkcs8.windows(algorithm.len()).position(|it| it == algorithm).unwrap();
        let octets = &pkcs8[at.saturating_add(algorithm.len())..];
        assert_eq!(octets[0], OCTET_STRING);
        let head = if octets[1] < 0x80 { 2 } else { usize::from(octets[1] & 0x7f) + 2 };
        &octets[head..]
    }

    #[test]
    fn a_key_on_a_curve_is_read_in_both_ways() {
        for (kind, algorithm) in
            [(&PKCS_ECDSA_P256_SHA256, &P256[..]), (&PKCS_ECDSA_P384_SHA384, &P384[..])]
        {
            let made = KeyPair::generate_for(kind).unwrap();
            let whole = made.serialize_der();
            let as_pkcs8 = PrivateKey::read(pem("PRIVATE KEY", &whole).as_bytes()).unwrap();
            let sec1 = inner(&whole, algorithm);
            let as_sec1 = PrivateKey::read(pem("EC PRIVATE KEY", sec1).as_bytes()).unwrap();
            assert_eq!(as_pkcs8.pkcs8(), whole);
            assert_eq!(as_sec1.pkcs8(), whole);
        }
    }

    #[test]
    fn an_old_rsa_key_is_read_and_written_as_pkcs8() {
        let old = pem("RSA PRIVATE KEY", &STANDARD.decode(OLD_RSA.trim()).unwrap());
        let read = PrivateKey::read(old.as_bytes()).unwrap();
        let written = read.pem();
        assert!(written.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_eq!(PrivateKey::read(written.as_bytes()), Ok(read));
    }

    #[test]
    fn what_is_no_key_is_none() {
        let certificate = pem("CERTIFICATE", b"x");
        for text in ["", "hunter2", &certificate, &pem("EC PRIVATE KEY", b"hunter2")] {
            assert_eq!(PrivateKey::read(text.as_bytes()), Err(ParseError::NotAKey), "{text}");
        }
        let long = vec![b'x'; MAX_PEM_BYTES.saturating_add(1)];
        assert_eq!(PrivateKey::read(&long), Err(ParseError::TooLong));
    }
}
