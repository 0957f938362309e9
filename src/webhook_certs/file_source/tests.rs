//! The folder of someone else's certificates: exchanged, torn, emptied, expired.

use super::*;
use crate::webhook_certs::issue;
use crate::webhook_certs::lifetimes::Lifetimes;
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A folder of its own for each test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorate-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, (certificate, key): &(String, String)) {
        fs::write(self.0.join("tls.crt"), certificate).unwrap();
        fs::write(self.0.join("tls.key"), key).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Valid in these years.
fn pair(from: i32, until: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.b.svc".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn files(folder: &Folder) -> FileSource {
    FileSource {
        folder: folder.0.clone(),
        identity: CertResolver::default(),
        gates: Gates::new(&[Gate::Certificate]),
        metrics: Metrics::new(Timestamp::UNIX_EPOCH),
    }
}

fn shown(files: &FileSource) -> Option<Vec<u8>> {
    files.identity.current().map(|it| it.end_entity_cert().unwrap().to_vec())
}

#[tokio::test(start_paused = true)]
async fn the_first_good_pair_opens_the_gate_and_the_next_one_takes_its_place() {
    let (folder, mut run) = (Folder::new(), Run::default());
    let files = files(&folder);
    files.reconcile(&mut run).await;
    assert!(!files.gates.state().ready() && shown(&files).is_none());
    folder.put(&pair(2020, 2090));
    files.reconcile(&mut run).await;
    let first = shown(&files);
    assert!(files.gates.state().ready() && first.is_some());
    files.reconcile(&mut run).await;
    assert_eq!(shown(&files), first);
    folder.put(&pair(2020, 2091));
    files.reconcile(&mut run).await;
    assert!(shown(&files).is_some() && shown(&files) != first);
    let log_state = files.metrics.encode().unwrap();
    assert!(log_state.contains("expiry_timestamp_seconds{which=\"leaf\"} 38184"), "{log_state}");
}

#[tokio::test(start_paused = true)]
async fn what_is_torn_missing_or_expired_changes_nothing_that_is_shown() {
    let (folder, mut run) = (Folder::new(), Run::default());
    let files = files(&folder);
    let good = pair(2020, 2090);
    folder.put(&good);
    files.reconcile(&mut run).await;
    let first = shown(&files);
    let (other, other_key) = pair(2020, 2090);
    let long = " ".repeat(70_000);
    for bad in [
        (other.clone(), good.1.clone()),
        (good.0.clone(), other_key),
        (String::new(), good.1.clone()),
        (other, long),
        pair(2001, 2002),
    ] {
        folder.put(&bad);
        files.reconcile(&mut run).await;
        assert_eq!(shown(&files), first);
        assert!(run.log_state.is_some());
        run.log_state = None;
    }
    fs::remove_file(folder.0.join("tls.key")).unwrap();
    files.reconcile(&mut run).await;
    assert_eq!(shown(&files), first);
    assert!(files.gates.state().ready(), "the gate stays open");
}

#[tokio::test(start_paused = true)]
async fn an_expired_pair_is_shown_if_there_is_no_better_but_opens_no_gate() {
    let (folder, mut run) = (Folder::new(), Run::default());
    let files = files(&folder);
    folder.put(&pair(2001, 2002));
    files.reconcile(&mut run).await;
    assert!(shown(&files).is_some() && !files.gates.state().ready());
    folder.put(&pair(2020, 2090));
    files.reconcile(&mut run).await;
    assert!(files.gates.state().ready());
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_is_exchanged_while_it_is_read_is_read_again() {
    let (folder, mut run) = (Folder::new(), Run::default());
    let files = files(&folder);
    let (good, other) = (pair(2020, 2090), pair(2020, 2090));
    folder.put(&(good.0.clone(), other.1));
    // The second half arrives while the reader pauses.
    let mend = async {
        time::sleep(ATTEMPT_PAUSE / 2).await;
        folder.put(&good);
    };
    tokio::join!(files.reconcile(&mut run), mend);
    assert!(files.gates.state().ready());
    assert!(run.log_state.is_none(), "it was not worth a word");
}

#[tokio::test(start_paused = true)]
async fn the_same_trouble_is_said_once() {
    let (folder, mut run) = (Folder::new(), Run::default());
    let files = files(&folder);
    files.reconcile(&mut run).await;
    let said = run.log_state.clone();
    assert!(said.as_ref().is_some_and(|it| it.contains("tls.crt")), "{said:?}");
    files.reconcile(&mut run).await;
    assert_eq!(run.log_state, said);
    assert!(files.gates.state().to_string().contains("cannot be had"));
}

#[tokio::test(start_paused = true)]
async fn it_reads_again_and_again_until_it_is_told_to_stop() {
    let folder = Folder::new();
    let files = files(&folder);
    let (gates, identity) = (files.gates.clone(), files.identity.clone());
    let authority = issue::authority(&Lifetimes::default(), clock::wall()).unwrap();
    let end = async {
        time::sleep(PAUSE / 2).await;
        folder.put(&(authority.certificate.pem(), authority.key.pem()));
        time::sleep(PAUSE).await;
    };
    files.run(end).await;
    assert!(gates.state().ready() && identity.current().is_some());
}
