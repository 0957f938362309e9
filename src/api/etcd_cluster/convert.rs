//! EtcdCluster between its versions. The hub is v1; each older version turns into it and back.
//! Comes in: a part of an object. Goes out: the same part in the other version.
//! May touch: the types of this kind. Every struct is taken apart by name, without `..`: a new
//! field does not compile until somebody has decided what becomes of it. What is bound to `_` has
//! no words in the older version and is kept by the engine.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod alpha;
mod beta;
