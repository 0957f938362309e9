//! What each chore and each step is called, and the moments at which whoever does it may die.
//! Comes in: a plan. Goes out: words. May touch: nothing; pure.
//! Stories let the operator die at each moment of each deed, so every deed must be named here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Chore, Plan, Step};

/// A moment of a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing was done yet.
    Before,
    /// It was done, and nobody knows.
    After,
    /// The pass is over, and the status does not tell of it yet.
    Untold,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::Untold];

    /// The one word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Untold => "untold",
        }
    }
}

impl Chore {
    /// The words of all of them.
    pub const WORDS: [&'static str; 12] = [
        "RecordFounders",
        "RecordAbandoned",
        "Scrap",
        "RecordBegun",
        "RecordFormed",
        "MakeFounder",
        "Adopt",
        "MakePod",
        "RecordPod",
        "LetGo",
        "ClearPod",
        "Sleep",
    ];

    /// The one word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::RecordFounders(_) => "RecordFounders",
            Self::RecordAbandoned => "RecordAbandoned",
            Self::Scrap(_) => "Scrap",
            Self::RecordBegun => "RecordBegun",
            Self::RecordFormed(_) => "RecordFormed",
            Self::MakeFounder(_) => "MakeFounder",
            Self::Adopt(_) => "Adopt",
            Self::MakePod { .. } => "MakePod",
            Self::RecordPod(_) => "RecordPod",
            Self::LetGo(_) => "LetGo",
            Self::ClearPod(_) => "ClearPod",
            Self::Sleep(_) => "Sleep",
        }
    }
}

impl Step {
    /// The words of all of them that do something.
    pub const WORDS: [&'static str; 21] = [
        "MakeJoiner",
        "AddLearner",
        "Promote",
        "Retire",
        "MoveLeader",
        "Remove",
        "Restart",
        "TakeBack",
        "FillLog",
        "AllowDowngrade",
        "ForbidDowngrade",
        "Readdress",
        "MakeUsers",
        "EnableAuth",
        "DisableAuth",
        "Compact",
        "Defragment",
        "EndUpkeep",
        "Disarm",
        "DeletePod",
        "Forget",
    ];

    /// The one word for it, if it does something.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self::Wait => None,
            Self::MakeJoiner(_) => Some("MakeJoiner"),
            Self::AddLearner(_) => Some("AddLearner"),
            Self::Promote(_) => Some("Promote"),
            Self::Retire(_) => Some("Retire"),
            Self::MoveLeader(_) => Some("MoveLeader"),
            Self::Remove(_) => Some("Remove"),
            Self::Restart(_) => Some("Restart"),
            Self::TakeBack(_) => Some("TakeBack"),
            Self::FillLog => Some("FillLog"),
            Self::AllowDowngrade => Some("AllowDowngrade"),
            Self::ForbidDowngrade => Some("ForbidDowngrade"),
            Self::Readdress(..) => Some("Readdress"),
            Self::MakeUsers => Some("MakeUsers"),
            Self::EnableAuth => Some("EnableAuth"),
            Self::DisableAuth => Some("DisableAuth"),
            Self::Compact(_) => Some("Compact"),
            Self::Defragment(_) => Some("Defragment"),
            Self::EndUpkeep => Some("EndUpkeep"),
            Self::Disarm(_) => Some("Disarm"),
            Self::DeletePod(_) => Some("DeletePod"),
            Self::Forget(_) => Some("Forget"),
        }
    }
}

impl Plan {
    /// Everything that it does, in words and in order.
    pub fn deeds(&self) -> impl Iterator<Item = &'static str> {
        self.chores.iter().map(Chore::word).chain(self.step.word())
    }
}
