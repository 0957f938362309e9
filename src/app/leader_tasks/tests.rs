//! Duties begin with a term, end with it, and never overlap with the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use tokio::sync::oneshot;

use super::*;
use crate::api::monotonic::MonotonicTime;

/// How many `leader_tasks` run now, and how many were ever begun.
#[derive(Clone, Default)]
struct Count {
    now: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
}

struct RunConfig(Arc<AtomicUsize>);

impl Drop for RunConfig {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Count {
    fn leader_task(&self, work: impl Future<Output = ()> + Send + 'static) -> LeaderTask {
        let count = self.clone();
        let work = async move {
            count.begun.fetch_add(1, Ordering::SeqCst);
            assert_eq!(count.now.fetch_add(1, Ordering::SeqCst), 0, "two terms act at once");
            let _running = RunConfig(count.now);
            work.await;
        };
        LeaderTask { name: "the leader_task", work: work.boxed() }
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

fn long() -> Leadership {
    Leadership::Leading { until: MonotonicTime::new(Duration::from_hours(1)) }
}

/// Lets every task do what it can do now.
async fn breathe() {
    time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn duties_run_while_the_replica_leads_and_at_no_other_time() {
    let (told, asked) = watch::channel(Leadership::Following);
    let (stop, stopped) = oneshot::channel::<()>();
    let count = Count::default();
    let terms = LeaderTasks { told: asked, clock: Clock::start() };
    let counted = count.clone();
    let leader_tasks = move || vec![counted.leader_task(std::future::pending())];
    let served = tokio::spawn(terms.serve(leader_tasks, async { stopped.await.unwrap() }));
    breathe().await;
    assert_eq!((count.now(), count.begun()), (0, 0));
    told.send_replace(long());
    breathe().await;
    assert_eq!((count.now(), count.begun()), (1, 1));
    // A renewal changes nothing.
    told.send_replace(Leadership::Leading { until: MonotonicTime::new(Duration::from_secs(3601)) });
    breathe().await;
    assert_eq!((count.now(), count.begun()), (1, 1));
    told.send_replace(Leadership::Following);
    breathe().await;
    assert_eq!((count.now(), count.begun()), (0, 1));
    told.send_replace(long());
    breathe().await;
    assert_eq!((count.now(), count.begun()), (1, 2));
    stop.send(()).unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(count.now(), 0);
}

#[tokio::test]
async fn a_term_that_nobody_renews_ends_by_itself() {
    let clock = Clock::start();
    let soon = clock.now().plus(Duration::from_millis(50));
    let (_told, asked) = watch::channel(Leadership::Leading { until: soon });
    let mut terms = LeaderTasks { told: asked, clock };
    terms.wait_for_lead().await;
    terms.wait_for_loss().await;
    assert!(!terms.holds());
}

#[tokio::test(start_paused = true)]
async fn a_duty_that_ends_or_panics_is_begun_again_after_a_pause() {
    let (_told, asked) = watch::channel(long());
    let count = Count::default();
    let terms = LeaderTasks { told: asked, clock: Clock::start() };
    let counted = count.clone();
    let leader_tasks = move || vec![counted.leader_task(async { panic!("a bug") })];
    tokio::spawn(terms.serve(leader_tasks, std::future::pending()));
    breathe().await;
    assert_eq!(count.begun(), 1);
    time::sleep(RESTART_DELAY).await;
    breathe().await;
    assert_eq!(count.begun(), 2);
}
