//! Faults during a bad update, whose pods do not start or are rejected: a pod that is lost
//! meanwhile is recreated from the previous template, and a new member is not tried with the bad
//! one again and again.

use quorate::etcd_cluster::plan::Reason;
use quorate::etcd_cluster::state::MemberName;

use super::model::{Fault, Model};
use super::{MAX_RECONCILES, converge, decide_checked, healthy_cluster, reconciled};

#[test]
fn pod_lost_during_canary_is_recreated_from_previous_template() {
    let mut cases = 0;
    for (version, fault) in [
        (0, Fault::BadSpec),
        (1, Fault::BadSpec),
        (0, Fault::RejectedPods),
        (1, Fault::RejectedPods),
    ] {
        let updated =
            healthy_cluster().with_releases(&[0, 1]).with_fault(&Fault::SetVersion(version));
        let bad = updated.with_fault(&fault);
        let rounds = (0..8).flat_map(|first| (first + 1..10).map(move |second| (first, second)));
        for (first, second) in rounds {
            for names in [["a", "b"], ["a", "c"], ["b", "a"], ["b", "c"], ["c", "a"], ["c", "b"]] {
                let losses = [(first, names[0]), (second, names[1])];
                for losses in [&losses[..1], &losses[..]] {
                    cases += 1;
                    check_rolled_back(&bad, losses);
                }
            }
        }
    }
    assert!(cases > 1000, "{cases}");
}

/// A bad update is rolled back, and quorum is kept, whichever pods are lost in these
/// reconciliations. Each pod is recreated before the next one is lost.
fn check_rolled_back(bad: &Model, losses: &[(usize, &str)]) {
    let mut model = bad.clone();
    for round in 0..MAX_RECONCILES {
        let lost = losses.iter().filter(|(at, _)| *at == round);
        for name in lost.map(|(_, name)| MemberName((*name).to_owned())) {
            model = model.with_fault(&Fault::LosePod(name));
        }
        let plan = decide_checked(&model);
        let after = model.apply(&plan, usize::MAX);
        assert_eq!(after.violation, None, "{losses:?}");
        let later = after.advance_time();
        let is_idle = after == model;
        if is_idle && later == model && round > 10 {
            assert_eq!(plan.reason, Reason::RolledBack, "{losses:?}: {model:#?}");
            assert!(model.has_quorum(), "{losses:?}: {model:#?}");
            return;
        }
        model = if is_idle { later } else { after };
    }
    panic!("no convergence: {losses:?} {model:#?}")
}

#[test]
fn new_member_is_not_tried_with_a_bad_template_again_and_again() {
    for (persistent, size) in [(true, 5), (false, 3)] {
        let model = reconciled(Model::new(3, persistent, &[3, 5]), 20);
        let bad = model.with_fault(&Fault::BadSpec).with_fault(&Fault::SetReplicas(size));
        let (end, reason, _) = converge(&bad, None);
        assert_eq!(reason, Reason::RolledBack, "{end:#?}");
        assert_eq!(end.state().members.len(), size, "{end:#?}");
    }
}
