//! The model world of the tests: a store, a definition, users, and leaders that die.
//! Everything is told at each moment of a run: a death, an edit, a deletion, another storage version, and two of them
//! at two moments. After each moment `storedVersions` must name every version that is stored; in the end all objects
//! must be stored in the storage version, and the definition must say so.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod leader;
mod server;

use leader::Leader;
use server::{Happening, Server};

use super::record::Phase;

/// More passes than any of these worlds needs.
const MOST_PASSES: usize = 400;

/// Lives through a world in which these things happen, each at its moment, and answers with how many there were.
fn live(happenings: &[(usize, Happening)]) -> usize {
    let mut server = Server::new(happenings);
    let mut leader = Leader::default();
    let mut rests = 0;
    for _ in 0..MOST_PASSES {
        match leader.pass(&mut server) {
            // Something may have happened after the first of two looks.
            Ok(true) if server.is_quiet() && rests > 0 => break,
            Ok(true) if server.is_quiet() => rests += 1,
            Ok(_) => rests = 0,
            // The next leader remembers nothing.
            Err(server::Death) => leader = leader.succeeded(),
        }
        server.check(happenings);
    }
    server.check(happenings);
    let told = format!("{happenings:?}\n{server:?}");
    assert!(server.is_quiet(), "it never came to rest: {told}");
    assert!(server.objects.values().all(|it| it.stored == server.definition.storage), "{told}");
    assert_eq!(server.definition.stored, [server.definition.storage.clone()], "{told}");
    assert_eq!(server.book.as_ref().map(|it| it.phase), Some(Phase::Done), "{told}");
    assert_eq!(server.needless, 0, "an object that was surely fresh was written: {told}");
    server.moment
}

#[test]
fn every_object_is_carried_and_the_definition_says_so() {
    let moments = live(&[]);
    assert!(moments > 20, "the run has {moments} moments");
}

#[test]
fn whatever_happens_at_any_moment_nothing_is_lost_and_nothing_is_left() {
    let moments = live(&[]);
    for at in 0..moments + 3 {
        for happening in Happening::ALL {
            live(&[(at, happening)]);
        }
    }
}

/// Two things at two moments: all of them, or one of so many.
fn two_things(one_of: usize) {
    let moments = live(&[]);
    let mut count: usize = 0;
    for first in 0..=moments {
        for second in first..moments + 8 {
            for one in Happening::ALL {
                for other in Happening::ALL {
                    count += 1;
                    if count.is_multiple_of(one_of) {
                        live(&[(first, one), (second, other)]);
                    }
                }
            }
        }
    }
}

#[test]
fn whatever_two_things_happen_nothing_is_lost_and_nothing_is_left() {
    // No divisor of how many there are at a moment, so that all come to their turn.
    two_things(37);
}

#[test]
#[ignore = "minutes; make convergence-long tells it"]
fn whatever_two_things_happen_at_any_two_moments_nothing_is_lost_and_nothing_is_left() {
    two_things(1);
}
