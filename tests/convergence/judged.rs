//! What happens to others while a change is judged that nobody starts with, or whose pods are refused: whoever loses its pod meanwhile comes back as it was,
//! and whoever comes with it is not tried again and again.

use quorate::etcd_cluster::plan::Reason;
use quorate::etcd_cluster::state::MemberName;

use super::world::{Fault, World};
use super::{MOST_PASSES, checked, ends_at, settled};

#[test]
fn a_pod_that_is_lost_while_a_change_is_judged_comes_back_as_it_was() {
    let mut lost = 0;
    for (asked, wrong) in
        [(0, Fault::Spoil), (1, Fault::Spoil), (0, Fault::Overdo), (1, Fault::Overdo)]
    {
        let bad = settled().with_releases(&[0, 1]).struck(&Fault::Ask(asked)).struck(&wrong);
        for (first, second) in (0..8).flat_map(|it| (it + 1..10).map(move |then| (it, then))) {
            for names in [["a", "b"], ["a", "c"], ["b", "a"], ["b", "c"], ["c", "a"], ["c", "b"]] {
                let losses = [(first, names[0]), (second, names[1])];
                for losses in [&losses[..1], &losses[..]] {
                    lost += 1;
                    is_taken_back(&bad, losses);
                }
            }
        }
    }
    assert!(lost > 1000, "{lost}");
}

/// A bad change ends taken back, and not without a quorum, whoever loses its pod in these passes. Each has another one before the next is lost.
fn is_taken_back(bad: &World, losses: &[(usize, &str)]) {
    let mut world = bad.clone();
    for pass in 0..MOST_PASSES {
        let struck = losses.iter().filter(|it| it.0 == pass).map(|it| MemberName(it.1.to_owned()));
        for name in struck {
            world = world.struck(&Fault::LosePod(name));
        }
        let plan = checked(&world);
        let after = world.after(&plan, usize::MAX);
        assert_eq!(after.broken, None, "{losses:?}");
        let later = after.later();
        let is_still = after == world;
        if is_still && later == world && pass > 10 {
            assert_eq!(plan.reason, Reason::RolledBack, "{losses:?}: {world:#?}");
            assert!(world.serves(), "{losses:?}: {world:#?}");
            return;
        }
        world = if is_still { later } else { after };
    }
    panic!("no rest: {losses:?} {world:#?}")
}

#[test]
fn a_member_that_comes_with_a_bad_change_is_not_tried_again_and_again() {
    for (durable, size) in [(true, 5), (false, 3)] {
        let mut world = World::new(3, durable, &[3, 5]);
        for _ in 0..20 {
            world = world.after(&checked(&world), usize::MAX);
        }
        let bad = world.struck(&Fault::Spoil).struck(&Fault::Edit(size));
        let (rest, because, _) = ends_at(&bad, None);
        assert_eq!(because, Reason::RolledBack, "{rest:#?}");
        assert_eq!(rest.seen().members.len(), size, "{rest:#?}");
    }
}
