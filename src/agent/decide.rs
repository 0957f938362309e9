//! How a member starts.
//!
//! etcd itself asks its flags only when it finds no log. `--initial-cluster-state=new` on a disk that
//! was emptied then founds a second cluster with the same IDs, or brings back a voter without memory,
//! and acknowledged writes are lost. So only a member that has never been anything may found or join.
//! Comes in: what the pod was told, what is on the disk, what is remembered of this pod.
//! Goes out: a verdict. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::told::Told;

/// What is on the member's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// Nothing of etcd's.
    Empty,
    /// Folders of etcd's, and no log: it began and did not come so far.
    Begun,
    /// A log.
    Log,
}

/// What becomes of this start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// etcd starts, with its `--initial-cluster-state`.
    Start(&'static str),
    /// etcd must not start.
    Refuse(Lost),
}

/// What is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lost {
    /// The disk of a member that was there before this pod.
    #[error(
        "refused to start etcd: this member has run before, and its volume is empty. It would come \
         back without its memory, or found a second cluster, and acknowledged writes could be lost. \
         The operator replaces it if the others can do without it; else put its volume back"
    )]
    Before,
    /// The disk, while this pod was running.
    #[error(
        "refused to start etcd: it has run in this pod, and its data is gone since. It would come \
         back without its memory, or found a second cluster, and acknowledged writes could be lost. \
         The operator replaces it if the others can do without it; else put its data back"
    )]
    Meanwhile,
}

const NEW: &str = "new";
const EXISTING: &str = "existing";

/// Decides one start. `ran` is whether etcd was started in this pod before.
pub(super) fn decide(told: Told, disk: Disk, ran: bool) -> Verdict {
    let first = match told {
        Told::Found => NEW,
        Told::Join | Told::Return => EXISTING,
    };
    match (disk, told, ran) {
        // With a log etcd goes by the log.
        (Disk::Log, Told::Found | Told::Join | Told::Return, _) => Verdict::Start(EXISTING),
        (Disk::Empty | Disk::Begun, Told::Return, _) => Verdict::Refuse(Lost::Before),
        (Disk::Empty, Told::Found | Told::Join, true) => Verdict::Refuse(Lost::Meanwhile),
        // With folders and no log it ended before it was anybody: names that were not known yet, peers
        // that did not answer. Who empties a disk leaves none of its folders.
        (Disk::Empty, Told::Found | Told::Join, false)
        | (Disk::Begun, Told::Found | Told::Join, _) => Verdict::Start(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_with_a_log_starts_whatever_it_was_told() {
        for told in Told::ALL {
            for ran in [true, false] {
                assert_eq!(decide(told, Disk::Log, ran), Verdict::Start("existing"), "{told}");
            }
        }
    }

    #[test]
    fn only_a_member_that_was_never_anything_founds_or_joins() {
        assert_eq!(decide(Told::Found, Disk::Empty, false), Verdict::Start("new"));
        assert_eq!(decide(Told::Join, Disk::Empty, false), Verdict::Start("existing"));
        for told in [Told::Found, Told::Join] {
            let emptied = decide(told, Disk::Empty, true);
            assert_eq!(emptied, Verdict::Refuse(Lost::Meanwhile), "{told}");
        }
        for (disk, ran) in [(Disk::Empty, true), (Disk::Empty, false), (Disk::Begun, true)] {
            assert_eq!(decide(Told::Return, disk, ran), Verdict::Refuse(Lost::Before));
        }
    }

    #[test]
    fn a_start_that_came_to_nothing_is_tried_again() {
        assert_eq!(decide(Told::Found, Disk::Begun, true), Verdict::Start("new"));
        assert_eq!(decide(Told::Join, Disk::Begun, true), Verdict::Start("existing"));
    }

    #[test]
    fn a_refusal_says_why_and_what_comes_next() {
        for lost in [Lost::Before, Lost::Meanwhile] {
            let words = lost.to_string();
            assert!(words.contains("refused to start etcd") && words.contains("The operator"));
            assert!(words.len() < 1024, "a termination message has an end");
        }
    }
}
