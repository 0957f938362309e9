//! The cluster's certificates: a CA for the API server and the node, one for etcd, one for
//! aggregated APIs, and the key that signs service account tokens.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::files;
use crate::paths::Paths;
use crate::settings::{CLUSTER_DOMAIN, NODE_NAME, Network};

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct KeyPairFiles {
    /// The certificate.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The files of the key pair with this name.
#[must_use]
pub fn key_pair(paths: &Paths, name: &str) -> KeyPairFiles {
    let folder = paths.pki();
    KeyPairFiles {
        cert: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
    }
}

/// The users with a kubeconfig: file name, user name and group.
#[must_use]
pub fn users() -> [(&'static str, String, &'static str); 6] {
    [
        ("admin", "admin".to_owned(), "system:masters"),
        ("controller-manager", "system:kube-controller-manager".to_owned(), ""),
        ("scheduler", "system:kube-scheduler".to_owned(), ""),
        ("kubelet", format!("system:node:{NODE_NAME}"), "system:nodes"),
        ("kube-proxy", "system:kube-proxy".to_owned(), ""),
        // A separate name, so that the audit log distinguishes its writes from those of a user.
        ("volumes", "quorate-cluster:volumes".to_owned(), "system:masters"),
    ]
}

/// Creates all certificates, unless they exist.
///
/// # Errors
/// If they cannot be written.
pub fn ensure(paths: &Paths, network: &Network) -> Result<()> {
    let ready = paths.pki();
    if ready.exists() {
        return Ok(());
    }
    // Renamed as a whole: a folder with the final name is always complete.
    let scratch = ready.with_extension("new");
    drop(std::fs::remove_dir_all(&scratch));
    files::private_folder(&scratch)?;
    write_all(&scratch, network).context("cannot create the certificates")?;
    std::fs::rename(&scratch, &ready).context("cannot move the certificates into place")
}

fn write_all(folder: &Path, network: &Network) -> Result<()> {
    let node = network.node.to_string();
    let ca = CertificateAuthority::create(folder, "ca", "quorate-cluster")?;
    let api_names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        &format!("kubernetes.default.svc.{CLUSTER_DOMAIN}"),
        "localhost",
        "127.0.0.1",
        &node,
        &network.first_service.to_string(),
    ];
    ca.issue(folder, "apiserver", &Subject::server("kube-apiserver", &api_names))?;
    ca.issue(
        folder,
        "apiserver-kubelet-client",
        &Subject::user("kube-apiserver", "system:masters"),
    )?;
    ca.issue(folder, "kubelet-server", &Subject::server(NODE_NAME, &[NODE_NAME, &node]))?;
    for (name, user, group) in users() {
        ca.issue(folder, name, &Subject::user(&user, group))?;
    }
    // A separate CA: etcd accepts every client with a certificate of this CA.
    let etcd = CertificateAuthority::create(folder, "etcd-ca", "quorate-cluster-etcd")?;
    etcd.issue(folder, "etcd", &Subject::server("etcd", &["127.0.0.1", &node]))?;
    etcd.issue(folder, "etcd-client", &Subject::user("kube-apiserver", ""))?;
    let front =
        CertificateAuthority::create(folder, "front-proxy-ca", "quorate-cluster-front-proxy")?;
    front.issue(folder, "front-proxy-client", &Subject::user("front-proxy-client", ""))?;
    let tokens = KeyPair::generate()?;
    files::write_private(&folder.join("service-accounts.key"), tokens.serialize_pem())?;
    files::write(&folder.join("service-accounts.pub"), tokens.public_key_pem())
}

/// The subject of a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The common name.
    name: &'a str,
    /// The organization, which is the group of a user; may be empty.
    group: &'a str,
    /// The DNS names and addresses of a server.
    hosts: &'a [&'a str],
}

impl<'a> Subject<'a> {
    /// A user of the API.
    #[must_use]
    pub fn user(name: &'a str, group: &'a str) -> Self {
        Self { name, group, hosts: &[] }
    }

    /// A server with these DNS names and addresses.
    #[must_use]
    pub fn server(name: &'a str, hosts: &'a [&'a str]) -> Self {
        Self { name, group: "", hosts }
    }
}

/// A CA with its key.
#[derive(Debug)]
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// The cluster's CA, read from its files.
    ///
    /// # Errors
    /// If the files do not exist.
    pub fn of_cluster(paths: &Paths) -> Result<Self> {
        let ca = key_pair(paths, "ca");
        let key = KeyPair::from_pem(&std::fs::read_to_string(&ca.key)?)?;
        let issuer = Issuer::from_ca_cert_pem(&std::fs::read_to_string(&ca.cert)?, key)?;
        Ok(Self { issuer })
    }

    fn create(folder: &Path, name: &str, common_name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        files::write(&folder.join(format!("{name}.crt")), params.self_signed(&key)?.pem())?;
        files::write_private(&folder.join(format!("{name}.key")), key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// Writes `<name>.crt` and `<name>.key` into a folder.
    ///
    /// # Errors
    /// If a host is no DNS name or address, or the files cannot be written.
    pub fn issue(&self, folder: &Path, name: &str, subject: &Subject<'_>) -> Result<()> {
        let (cert, key) = self.pem(subject)?;
        files::write(&folder.join(format!("{name}.crt")), cert)?;
        files::write_private(&folder.join(format!("{name}.key")), key)
    }

    /// A certificate and its key as PEM: for a server if there are hosts, else for a client.
    ///
    /// # Errors
    /// If a host is no DNS name or address.
    pub fn pem(&self, subject: &Subject<'_>) -> Result<(String, String)> {
        let hosts: Vec<String> = subject.hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, subject.name);
        if !subject.group.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, subject.group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if subject.hosts.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}
