//! Certificate files that are replaced, inconsistent, missing or expired.

use super::*;
use crate::webhook_certs::issue;
use crate::webhook_certs::lifetimes::Lifetimes;
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

static DIRECTORIES: AtomicU32 = AtomicU32::new(0);

/// A temporary directory for one test.
struct CertDir(PathBuf);

impl CertDir {
    fn new() -> Self {
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorate-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, (certificate, key): &(String, String)) {
        fs::write(self.0.join("tls.crt"), certificate).unwrap();
        fs::write(self.0.join("tls.key"), key).unwrap();
    }
}

impl Drop for CertDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A key pair that is valid in these years.
fn pair(from: i32, until: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.b.svc".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn file_source(dir: &CertDir) -> FileSource {
    FileSource {
        dir: dir.0.clone(),
        resolver: CertResolver::default(),
        gates: Gates::new(&[Gate::Certificate]),
        metrics: Metrics::new(Timestamp::UNIX_EPOCH),
    }
}

fn serving(source: &FileSource) -> Option<Vec<u8>> {
    source.resolver.current().map(|key| key.end_entity_cert().unwrap().to_vec())
}

#[tokio::test(start_paused = true)]
async fn first_valid_key_pair_opens_the_gate_and_the_next_one_replaces_it() {
    let (dir, mut run) = (CertDir::new(), FileRun::default());
    let source = file_source(&dir);
    source.reconcile(&mut run).await;
    assert!(!source.gates.state().ready() && serving(&source).is_none());
    dir.write(&pair(2020, 2090));
    source.reconcile(&mut run).await;
    let first = serving(&source);
    assert!(source.gates.state().ready() && first.is_some());
    source.reconcile(&mut run).await;
    assert_eq!(serving(&source), first);
    dir.write(&pair(2020, 2091));
    source.reconcile(&mut run).await;
    assert!(serving(&source).is_some() && serving(&source) != first);
    let metrics = source.metrics.encode().unwrap();
    assert!(metrics.contains("expiry_timestamp_seconds{which=\"leaf\"} 38184"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn mismatched_missing_or_expired_files_do_not_replace_the_serving_certificate() {
    let (dir, mut run) = (CertDir::new(), FileRun::default());
    let source = file_source(&dir);
    let valid = pair(2020, 2090);
    dir.write(&valid);
    source.reconcile(&mut run).await;
    let first = serving(&source);
    let (other, other_key) = pair(2020, 2090);
    let long = " ".repeat(70_000);
    for invalid in [
        (other.clone(), valid.1.clone()),
        (valid.0.clone(), other_key),
        (String::new(), valid.1.clone()),
        (other, long),
        pair(2001, 2002),
    ] {
        dir.write(&invalid);
        source.reconcile(&mut run).await;
        assert_eq!(serving(&source), first);
        assert!(run.logged_error.is_some());
        run.logged_error = None;
    }
    fs::remove_file(dir.0.join("tls.key")).unwrap();
    source.reconcile(&mut run).await;
    assert_eq!(serving(&source), first);
    assert!(source.gates.state().ready(), "the gate stays open");
}

#[tokio::test(start_paused = true)]
async fn expired_key_pair_is_served_if_there_is_no_other_but_opens_no_gate() {
    let (dir, mut run) = (CertDir::new(), FileRun::default());
    let source = file_source(&dir);
    dir.write(&pair(2001, 2002));
    source.reconcile(&mut run).await;
    assert!(serving(&source).is_some() && !source.gates.state().ready());
    dir.write(&pair(2020, 2090));
    source.reconcile(&mut run).await;
    assert!(source.gates.state().ready());
}

#[tokio::test(start_paused = true)]
async fn key_pair_that_is_replaced_during_a_read_is_read_again() {
    let (dir, mut run) = (CertDir::new(), FileRun::default());
    let source = file_source(&dir);
    let (valid, other) = (pair(2020, 2090), pair(2020, 2090));
    dir.write(&(valid.0.clone(), other.1));
    // The key is replaced during the delay between two attempts.
    let replace = async {
        time::sleep(ATTEMPT_DELAY / 2).await;
        dir.write(&valid);
    };
    tokio::join!(source.reconcile(&mut run), replace);
    assert!(source.gates.state().ready());
    assert!(run.logged_error.is_none(), "a retried read logs no error");
}

#[tokio::test(start_paused = true)]
async fn same_load_error_is_logged_once_and_reported_at_the_gate() {
    let (dir, mut run) = (CertDir::new(), FileRun::default());
    let source = file_source(&dir);
    source.reconcile(&mut run).await;
    let logged = run.logged_error.clone();
    assert!(logged.as_ref().is_some_and(|error| error.contains("tls.crt")), "{logged:?}");
    source.reconcile(&mut run).await;
    assert_eq!(run.logged_error, logged);
    let readiness = source.gates.state().to_string();
    let failed = "[-]certificate failed: no serving certificate can be obtained; see the log\n";
    assert!(readiness.contains(failed), "{readiness}");
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_until_shutdown() {
    let dir = CertDir::new();
    let source = file_source(&dir);
    let (gates, resolver) = (source.gates.clone(), source.resolver.clone());
    let ca = issue::new_ca(&Lifetimes::default(), clock::wall()).unwrap();
    let end = async {
        time::sleep(READ_INTERVAL / 2).await;
        dir.write(&(ca.certificate.pem(), ca.key.pem()));
        time::sleep(READ_INTERVAL).await;
    };
    source.run(end).await;
    assert!(gates.state().ready() && resolver.current().is_some());
}
