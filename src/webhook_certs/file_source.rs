//! Serves a certificate from two files, which another tool writes, and opens the readiness gate
//! with the first valid one. The files are polled: kubelet replaces a mounted Secret by a symbolic
//! link above the files, and a watch of the files would miss that.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time;

use super::key_pair::{self, KeyPairError, ServingKeyPair, replaces};
use crate::clients::cert_files::{self, CertFiles, ReadError};
use crate::clients::clock;
use crate::clients::serving_cert::CertResolver;
use crate::pki::ca::Certificate;
use crate::telemetry::{Gate, Gates, Metrics, error_chain};

const READ_INTERVAL: Duration = Duration::from_secs(10);
/// The files may be replaced between the two reads: then the first attempt finds a mismatch, and
/// the next one does not.
const MAX_ATTEMPTS: usize = 3;
const ATTEMPT_DELAY: Duration = Duration::from_millis(200);

/// The serving certificate of a directory.
pub(crate) struct FileSource {
    pub(crate) dir: PathBuf,
    pub(crate) resolver: CertResolver,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

/// State that changes from one reconciliation to the next.
#[derive(Default)]
struct FileRun {
    /// The contents that were loaded last.
    loaded: Option<CertFiles>,
    serving: Option<Certificate>,
    gate_open: bool,
    /// The error that was logged last, so that each error is logged once.
    logged_error: Option<String>,
}

/// Why a key pair was not loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Read(ReadError),
    #[error(transparent)]
    KeyPair(KeyPairError),
    #[error(
        "the certificate in tls.crt is outside its validity period; still serving the previous one"
    )]
    NotValidNow,
}

impl FileSource {
    /// Serves the certificate of the directory until `stop` is done.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = FileRun::default();
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.reconcile(&mut run) => {}
            }
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(READ_INTERVAL) => {}
            }
        }
    }

    async fn reconcile(&self, run: &mut FileRun) {
        match self.read(run).await {
            Ok(None) => {}
            Ok(Some((files, pair))) => self.load(run, files, pair),
            Err(error) => self.report_load_error(run, &error),
        }
        self.open_gate(run);
    }

    /// The key pair, if the files differ from those loaded last.
    async fn read(&self, run: &FileRun) -> Result<Option<(CertFiles, ServingKeyPair)>, LoadError> {
        let mut last = LoadError::NotValidNow;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                time::sleep(ATTEMPT_DELAY).await;
            }
            let files = cert_files::read(&self.dir).map_err(LoadError::Read)?;
            if run.loaded.as_ref() == Some(&files) {
                return Ok(None);
            }
            match key_pair::parse(&files.certificate, &files.key) {
                Ok(pair) => return Ok(Some((files, pair))),
                Err(error) => last = LoadError::KeyPair(error),
            }
        }
        Err(last)
    }

    fn load(&self, run: &mut FileRun, files: CertFiles, pair: ServingKeyPair) {
        let ServingKeyPair { key, certificate } = pair;
        if !replaces(&certificate, run.serving.as_ref(), clock::wall()) {
            // Checked again each time: it may become valid, and the serving one may expire.
            self.report_load_error(run, &LoadError::NotValidNow);
            return;
        }
        tracing::info!(
            from = %certificate.from,
            until = %certificate.until,
            "webhook certificate loaded from files"
        );
        self.metrics.certificates.expires("leaf", Some(certificate.until));
        self.resolver.put(key);
        run.loaded = Some(files);
        run.serving = Some(certificate);
        run.logged_error = None;
    }

    fn open_gate(&self, run: &mut FileRun) {
        let now = clock::wall();
        let is_valid = run.serving.as_ref().is_some_and(|serving| serving.valid_at(now));
        if !run.gate_open && is_valid {
            self.gates.open(Gate::Certificate);
            run.gate_open = true;
        }
    }

    fn report_load_error(&self, run: &mut FileRun, error: &LoadError) {
        let error = error_chain(error);
        if run.logged_error.as_ref() == Some(&error) {
            return;
        }
        self.gates.forbidden(Gate::Certificate);
        tracing::warn!(
            directory = %self.dir.display(),
            error,
            "cannot load the webhook certificate from its files; retrying"
        );
        run.logged_error = Some(error);
    }
}

#[cfg(test)]
mod tests;
