//! What the stories have in common.
