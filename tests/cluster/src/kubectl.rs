//! kubectl for this tool and the e2e tests: with the cluster's kubeconfig, never the user's.

use std::path::PathBuf;

use anyhow::Result;
use tokio::process::Command;

use crate::paths::Paths;
use crate::settings::Settings;
use crate::{binaries, command};

/// A kubectl and its kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The binary.
    pub program: PathBuf,
    /// The kubeconfig of the local cluster; `None` is the kubeconfig of the user.
    pub kubeconfig: Option<PathBuf>,
}

impl Kubectl {
    /// The kubectl of this Kubernetes release, as the cluster's admin.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn admin(kubernetes: &str, paths: &Paths) -> Result<Self> {
        let built = binaries::KUBERNETES.binaries(kubernetes, paths).await?;
        Ok(Self { program: built.join("kubectl"), kubeconfig: Some(paths.kubeconfig("admin")) })
    }

    /// The user's kubectl and kubeconfig; the kubectl of this tool if none is installed.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn of_user(settings: &Settings, paths: &Paths) -> Result<Self> {
        let own = command::run("kubectl", &["version", "--client"]).await.is_ok();
        let program = if own {
            PathBuf::from("kubectl")
        } else {
            binaries::KUBERNETES.binaries(&settings.kubernetes, paths).await?.join("kubectl")
        };
        Ok(Self { program, kubeconfig: None })
    }

    /// A command without arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut kubectl = command::command(&self.program);
        if let Some(kubeconfig) = &self.kubeconfig {
            kubectl.arg("--kubeconfig").arg(kubeconfig);
            for proxy in
                ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
            {
                kubectl.env_remove(proxy);
            }
        }
        kubectl
    }

    /// Runs kubectl and returns its standard output.
    ///
    /// # Errors
    /// If kubectl fails, with its standard error.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        command::output(self.command().args(args)).await
    }

    /// Applies manifests by server-side apply, with this tool as field manager.
    ///
    /// # Errors
    /// If kubectl fails, with its standard error.
    pub async fn apply(&self, manifests: &str) -> Result<()> {
        let mut apply = self.command();
        apply.args([
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=quorate-cluster",
        ]);
        apply.args(["--filename", "-"]);
        command::feed(&mut apply, manifests.as_bytes()).await.map(drop)
    }

    /// Applies manifests by client-side apply, as a user does.
    ///
    /// # Errors
    /// If kubectl fails, with its standard error.
    pub async fn apply_as_user(&self, manifests: &str) -> Result<()> {
        let mut apply = self.command();
        apply.args(["apply", "--filename", "-"]);
        command::feed(&mut apply, manifests.as_bytes()).await.map(drop)
    }
}
