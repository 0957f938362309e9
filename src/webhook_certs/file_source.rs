//! The corridor for certificates that someone else makes: reads them from two files, again and again.
//! Comes in: a folder, the wish to stop. Goes out: the certificate of the next handshake, and a gate
//! that opens with the first good one. May touch: `clients`, `telemetry`. The contents are read each
//! time: a mounted Secret is exchanged by a link far above the files, and a watch would miss it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time;

use super::key_pair::{self, KeyPairError, ServingKeyPair, is_better};
use crate::clients::cert_files::{self as port, CertFiles, ReadError};
use crate::clients::clock;
use crate::clients::serving_cert::CertResolver;
use crate::pki::ca::Certificate;
use crate::telemetry::{Gate, Gates, Metrics, error_chain};

const PAUSE: Duration = Duration::from_secs(10);
/// The files may be exchanged between the two reads: then they do not belong together, and soon do.
const ATTEMPTS: usize = 3;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);

/// The certificate in a folder.
pub(crate) struct FileSource {
    pub(crate) folder: PathBuf,
    pub(crate) identity: CertResolver,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass.
#[derive(Default)]
struct Run {
    /// The contents that were last judged.
    seen: Option<CertFiles>,
    shown: Option<Certificate>,
    opened: bool,
    /// What was last said, so that it is said once.
    log_state: Option<String>,
}

/// Why no pair was taken.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Unread(ReadError),
    #[error(transparent)]
    Unusable(KeyPairError),
    #[error("the certificate in tls.crt is not valid now; the one before is kept")]
    Invalid,
}

impl FileSource {
    /// Shows what is in the folder until `stop` is done.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = Run::default();
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.reconcile(&mut run) => {}
            }
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(PAUSE) => {}
            }
        }
    }

    async fn reconcile(&self, run: &mut Run) {
        match self.read(run).await {
            Ok(None) => {}
            Ok(Some((pair, found))) => self.take(run, pair, found),
            Err(error) => self.report_untaken(run, &error),
        }
        self.open(run);
    }

    /// The pair, if it is another than the one that was judged last.
    async fn read(&self, run: &Run) -> Result<Option<(CertFiles, ServingKeyPair)>, LoadError> {
        let mut last = LoadError::Invalid;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                time::sleep(ATTEMPT_PAUSE).await;
            }
            let found = port::read(&self.folder).map_err(LoadError::Unread)?;
            if run.seen.as_ref() == Some(&found) {
                return Ok(None);
            }
            match key_pair::read(&found.certificate, &found.key) {
                Ok(shown) => return Ok(Some((found, shown))),
                Err(error) => last = LoadError::Unusable(error),
            }
        }
        Err(last)
    }

    fn take(&self, run: &mut Run, pair: CertFiles, found: ServingKeyPair) {
        let ServingKeyPair { key, certificate } = found;
        if !is_better(&certificate, run.shown.as_ref(), clock::wall()) {
            // It is judged again each time: it may become valid, and the one before may end.
            self.report_untaken(run, &LoadError::Invalid);
            return;
        }
        tracing::info!(
            from = %certificate.from,
            until = %certificate.until,
            "webhook certificate read from files"
        );
        self.metrics.certificates.expires("leaf", Some(certificate.until));
        self.identity.put(key);
        run.seen = Some(pair);
        run.shown = Some(certificate);
        run.log_state = None;
    }

    fn open(&self, run: &mut Run) {
        let now = clock::wall();
        if !run.opened && run.shown.as_ref().is_some_and(|shown| shown.valid_at(now)) {
            self.gates.open(Gate::Certificate);
            run.opened = true;
        }
    }

    fn report_untaken(&self, run: &mut Run, error: &LoadError) {
        let words = error_chain(error);
        if run.log_state.as_ref() == Some(&words) {
            return;
        }
        self.gates.forbidden(Gate::Certificate);
        tracing::warn!(
            folder = %self.folder.display(),
            error = words,
            "the webhook certificate cannot be taken from the files; will read them again"
        );
        run.log_state = Some(words);
    }
}

#[cfg(test)]
mod tests;
