//! The cluster's certificates: one CA for the API, the node and etcd, a second one for aggregated APIs, and
//! the key that signs service account tokens.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::files;
use crate::places::Places;
use crate::settings::{CLUSTER_DOMAIN, NODE_NAME, Network};

/// Certificate and key of one name, as files.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Where a pair of this name is.
#[must_use]
pub fn pair(places: &Places, name: &str) -> Pair {
    let folder = places.pki();
    Pair { cert: folder.join(format!("{name}.crt")), key: folder.join(format!("{name}.key")) }
}

/// The users with a kubeconfig: name, and the groups they belong to.
pub const USERS: [(&str, &str, &str); 6] = [
    ("admin", "admin", "system:masters"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("kubelet", "system:node:quorate-local", "system:nodes"),
    ("kube-proxy", "system:kube-proxy", ""),
    // A name of its own, so that the audit log tells its writes from a person's.
    ("volumes", "quorate-cluster:volumes", "system:masters"),
];

/// Makes all certificates, unless they are there.
///
/// # Errors
/// If they cannot be written.
pub fn ensure(places: &Places, network: &Network) -> Result<()> {
    let ready = places.pki();
    if ready.exists() {
        return Ok(());
    }
    // Moved into place as a whole: a folder of that name is always complete.
    let scratch = ready.with_extension("new");
    drop(std::fs::remove_dir_all(&scratch));
    std::fs::create_dir_all(&scratch)?;
    std::fs::set_permissions(&scratch, Permissions::from_mode(0o700))?;
    write_all(&scratch, network).context("cannot make the certificates")?;
    std::fs::rename(&scratch, &ready).context("cannot move the certificates into place")
}

fn write_all(folder: &Path, network: &Network) -> Result<()> {
    let node = network.node.to_string();
    let ca = Authority::make(folder, "ca", "quorate-cluster")?;
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
    ca.issue(folder, "apiserver", "kube-apiserver", "", &api_names)?;
    ca.issue(folder, "apiserver-kubelet-client", "kube-apiserver", "system:masters", &[])?;
    ca.issue(folder, "etcd", "etcd", "", &["localhost", "127.0.0.1", &node])?;
    ca.issue(folder, "kubelet-server", NODE_NAME, "", &[NODE_NAME, &node])?;
    for (name, user, group) in USERS {
        ca.issue(folder, name, user, group, &[])?;
    }
    let front = Authority::make(folder, "front-proxy-ca", "quorate-cluster-front-proxy")?;
    front.issue(folder, "front-proxy-client", "front-proxy-client", "", &[])?;
    let tokens = KeyPair::generate()?;
    files::write_private(&folder.join("service-accounts.key"), &tokens.serialize_pem())?;
    files::write(&folder.join("service-accounts.pub"), tokens.public_key_pem())?;
    Ok(())
}

/// A certificate authority that can issue.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The cluster's CA, read back from its files.
    ///
    /// # Errors
    /// If the files are not there.
    pub fn of_cluster(places: &Places) -> Result<Self> {
        let ca = pair(places, "ca");
        let key = KeyPair::from_pem(&std::fs::read_to_string(&ca.key)?)?;
        let issuer = Issuer::from_ca_cert_pem(&std::fs::read_to_string(&ca.cert)?, key)?;
        Ok(Self { issuer })
    }

    fn make(folder: &Path, name: &str, common_name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        files::write(&folder.join(format!("{name}.crt")), params.self_signed(&key)?.pem())?;
        files::write_private(&folder.join(format!("{name}.key")), &key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// Writes `<name>.crt` and `<name>.key` into a folder.
    ///
    /// # Errors
    /// If a name is no DNS name or address, or the files cannot be written.
    pub fn issue(
        &self,
        folder: &Path,
        name: &str,
        user: &str,
        group: &str,
        names: &[&str],
    ) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (cert, key) = self.pem(user, group, names)?;
        files::write(&folder.join(format!("{name}.crt")), cert)?;
        files::write_private(&folder.join(format!("{name}.key")), &key)
    }

    /// A certificate and its key as text; good for servers and clients alike.
    ///
    /// # Errors
    /// If a name is no DNS name or address.
    pub fn pem(&self, user: &str, group: &str, names: Vec<String>) -> Result<(String, String)> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, user);
        if !group.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}
