//! kubectl, as the tool and the stories use it: with the cluster's own kubeconfig, never the user's.

use std::path::PathBuf;

use anyhow::Result;
use tokio::process::Command;

use crate::places::Places;
use crate::settings::Settings;
use crate::{command, programs};

/// A kubectl and the kubeconfig it works with.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// The kubeconfig of the local cluster; without one, whatever the user has set.
    pub kubeconfig: Option<PathBuf>,
}

impl Kubectl {
    /// The kubectl of this Kubernetes release, as the cluster's admin.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn admin(kubernetes: &str, places: &Places) -> Result<Self> {
        let built = programs::KUBERNETES.programs(kubernetes, places).await?;
        Ok(Self { program: built.join("kubectl"), kubeconfig: Some(places.kubeconfig("admin")) })
    }

    /// The user's own kubectl for a cluster of theirs, or ours if there is none.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn of_user(settings: &Settings, places: &Places) -> Result<Self> {
        let own = command::run("kubectl", &["version", "--client"]).await.is_ok();
        let program = if own {
            PathBuf::from("kubectl")
        } else {
            programs::KUBERNETES.programs(&settings.kubernetes, places).await?.join("kubectl")
        };
        Ok(Self { program, kubeconfig: None })
    }

    /// A command that is ready but for its arguments.
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

    /// Runs it and returns what it printed.
    ///
    /// # Errors
    /// With what kubectl said, if it did not succeed.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        command::output(self.command().args(args)).await
    }

    /// Applies manifests by server-side apply, owned by this tool.
    ///
    /// # Errors
    /// With what kubectl said, if it did not succeed.
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

    /// Applies manifests the way a user would.
    ///
    /// # Errors
    /// With what kubectl said, if it did not succeed.
    pub async fn apply_as_user(&self, manifests: &str) -> Result<()> {
        let mut apply = self.command();
        apply.args(["apply", "--filename", "-"]);
        command::feed(&mut apply, manifests.as_bytes()).await.map(drop)
    }
}
