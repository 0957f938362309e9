//! Parses private keys in PEM and converts them to PKCS #8. Pure. Older tools write RSA keys as
//! PKCS #1 and elliptic curve keys as SEC 1; both are the inner part of PKCS #8.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::ca::{MAX_PEM_BYTES, ParseError, PrivateKey};

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
/// The PKCS #8 version: the integer 0.
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
    /// Parses the first private key in `pem`: PKCS #8, PKCS #1 or SEC 1.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, ParseError> {
        if pem.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLarge);
        }
        // The parser's own error is dropped: it might contain parts of the key.
        let found = PrivateKeyDer::from_pem_slice(pem).or(Err(ParseError::NotAKey))?;
        let candidates = match &found {
            PrivateKeyDer::Pkcs8(key) => vec![key.secret_pkcs8_der().to_vec()],
            PrivateKeyDer::Pkcs1(key) => vec![pkcs8(&RSA, key.secret_pkcs1_der())],
            // SEC 1 may omit the curve; only the key with the right curve can sign.
            PrivateKeyDer::Sec1(key) => {
                let inner = key.secret_sec1_der();
                vec![pkcs8(&P256, inner), pkcs8(&P384, inner)]
            }
            _ => Vec::new(),
        };
        let mut keys = candidates.into_iter().map(Self::new);
        keys.find(|key| key.signer().is_ok()).ok_or(ParseError::NotAKey)
    }
}

fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let content = [&VERSION, algorithm, &tagged(OCTET_STRING, key)].concat();
    tagged(SEQUENCE, &content)
}

/// A DER value: tag, length, content.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match (length.as_slice(), u8::try_from(length.len())) {
        ([], _) => out.push(0),
        ([short], _) if *short < 0x80 => out.push(*short),
        (long, count) => {
            // The number of length bytes always fits: a `usize` has at most eight.
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

    /// Generated for this test with `openssl genrsa -traditional 2048`; used nowhere else.
    const RSA_PKCS1: &str = include_str!("key/rsa-pkcs1.txt");

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    }

    /// The inner key of a PKCS #8 value: the part after version and algorithm.
    fn inner<'a>(pkcs8: &'a [u8], algorithm: &[u8]) -> &'a [u8] {
        let at = pkcs8.windows(algorithm.len()).position(|window| window == algorithm).unwrap();
        let octets = &pkcs8[at.saturating_add(algorithm.len())..];
        assert_eq!(octets[0], OCTET_STRING);
        let head = if octets[1] < 0x80 { 2 } else { usize::from(octets[1] & 0x7f) + 2 };
        &octets[head..]
    }

    #[test]
    fn ec_key_is_parsed_from_pkcs8_and_from_sec1() {
        for (kind, algorithm) in
            [(&PKCS_ECDSA_P256_SHA256, &P256[..]), (&PKCS_ECDSA_P384_SHA384, &P384[..])]
        {
            let generated = KeyPair::generate_for(kind).unwrap();
            let whole = generated.serialize_der();
            let as_pkcs8 = PrivateKey::from_pem(pem("PRIVATE KEY", &whole).as_bytes()).unwrap();
            let sec1 = inner(&whole, algorithm);
            let as_sec1 = PrivateKey::from_pem(pem("EC PRIVATE KEY", sec1).as_bytes()).unwrap();
            assert_eq!(as_pkcs8.pkcs8(), whole);
            assert_eq!(as_sec1.pkcs8(), whole);
        }
    }

    #[test]
    fn pkcs1_rsa_key_is_parsed_and_encoded_as_pkcs8() {
        let old = pem("RSA PRIVATE KEY", &STANDARD.decode(RSA_PKCS1.trim()).unwrap());
        let key = PrivateKey::from_pem(old.as_bytes()).unwrap();
        let encoded = key.pem();
        assert!(encoded.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_eq!(PrivateKey::from_pem(encoded.as_bytes()), Ok(key));
    }

    #[test]
    fn anything_else_than_a_private_key_is_rejected() {
        let certificate = pem("CERTIFICATE", b"x");
        for text in ["", "hunter2", &certificate, &pem("EC PRIVATE KEY", b"hunter2")] {
            assert_eq!(PrivateKey::from_pem(text.as_bytes()), Err(ParseError::NotAKey), "{text}");
        }
        let long = vec![b'x'; MAX_PEM_BYTES.saturating_add(1)];
        assert_eq!(PrivateKey::from_pem(&long), Err(ParseError::TooLarge));
    }
}
