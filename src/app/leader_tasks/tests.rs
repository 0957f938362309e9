//! Leader tasks start and stop with a leadership term, and never overlap with the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use tokio::sync::oneshot;

use super::*;
use crate::api::monotonic::MonotonicTime;

/// The number of running tasks, and of all started ones.
#[derive(Clone, Default)]
struct Count {
    running: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
}

struct RunningGuard(Arc<AtomicUsize>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Count {
    fn leader_task(&self, work: impl Future<Output = ()> + Send + 'static) -> LeaderTask {
        let count = self.clone();
        let work = async move {
            count.started.fetch_add(1, Ordering::SeqCst);
            assert_eq!(
                count.running.fetch_add(1, Ordering::SeqCst),
                0,
                "tasks of two terms overlap"
            );
            let _running = RunningGuard(count.running);
            work.await;
        };
        LeaderTask { name: "test task", work: work.boxed() }
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

fn leading() -> Leadership {
    Leadership::Leading { until: MonotonicTime::new(Duration::from_hours(1)) }
}

/// Lets every task run until it waits.
async fn settle() {
    time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn leader_tasks_run_only_while_the_replica_leads() {
    let (leadership, receiver) = watch::channel(Leadership::Following);
    let (stop, stopped) = oneshot::channel::<()>();
    let count = Count::default();
    let terms = LeaderTasks { leadership: receiver, clock: Clock::start() };
    let counted = count.clone();
    let leader_tasks = move || vec![counted.leader_task(std::future::pending())];
    let served = tokio::spawn(terms.serve(leader_tasks, async { stopped.await.unwrap() }));
    settle().await;
    assert_eq!((count.running(), count.started()), (0, 0));
    leadership.send_replace(leading());
    settle().await;
    assert_eq!((count.running(), count.started()), (1, 1));
    // A renewal changes nothing.
    leadership
        .send_replace(Leadership::Leading { until: MonotonicTime::new(Duration::from_secs(3601)) });
    settle().await;
    assert_eq!((count.running(), count.started()), (1, 1));
    leadership.send_replace(Leadership::Following);
    settle().await;
    assert_eq!((count.running(), count.started()), (0, 1));
    leadership.send_replace(leading());
    settle().await;
    assert_eq!((count.running(), count.started()), (1, 2));
    stop.send(()).unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(count.running(), 0);
}

#[tokio::test]
async fn term_ends_without_renewal() {
    let clock = Clock::start();
    let until = clock.now().plus(Duration::from_millis(50));
    let (_leadership, receiver) = watch::channel(Leadership::Leading { until });
    let mut terms = LeaderTasks { leadership: receiver, clock };
    terms.wait_for_lead().await;
    terms.wait_for_loss().await;
    assert!(!terms.is_leading());
}

#[tokio::test(start_paused = true)]
async fn leader_task_that_panics_is_restarted_after_a_delay() {
    let (_leadership, receiver) = watch::channel(leading());
    let count = Count::default();
    let terms = LeaderTasks { leadership: receiver, clock: Clock::start() };
    let counted = count.clone();
    let leader_tasks = move || vec![counted.leader_task(async { panic!("a bug") })];
    tokio::spawn(terms.serve(leader_tasks, std::future::pending()));
    settle().await;
    assert_eq!(count.started(), 1);
    time::sleep(RESTART_DELAY).await;
    settle().await;
    assert_eq!(count.started(), 2);
}
