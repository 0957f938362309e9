//! The room for bodies: so many bytes for all requests together, and no more.
//! Comes in: how big a body has become. Goes out: the room it holds, given back once dropped.
//! May touch: nothing outside. Small bodies need none: there are never more of them than
//! connections, and a stranger with big ones must not keep them out.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

const UNIT: usize = 1024;

/// All the room there is.
#[derive(Clone)]
pub(super) struct Room {
    free_bytes: usize,
    units: Arc<Semaphore>,
}

/// The room that one request holds.
pub(super) struct Held {
    room: Room,
    permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for `bytes`; each request has `free_bytes` besides.
    pub(super) fn new(bytes: usize, free_bytes: usize) -> Self {
        let units = bytes.div_euclid(UNIT).min(Semaphore::MAX_PERMITS);
        Self { free_bytes, units: Arc::new(Semaphore::new(units)) }
    }

    /// Nothing held yet.
    pub(super) fn nothing(&self) -> Held {
        Held { room: self.clone(), permit: None }
    }

    fn units_for(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.free_bytes).div_ceil(UNIT)
    }
}

impl Held {
    fn units(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Holds room for `bytes` in all, and waits until there is so much.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), AcquireError> {
        let more = self.room.units_for(bytes).saturating_sub(self.units());
        if more == 0 {
            return Ok(());
        }
        // More than the counter can say is more than there is: it waits, and its time runs out.
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room.units).acquire_many_owned(more).await?;
        self.merge(permit);
        Ok(())
    }

    /// Holds room for an answer of `bytes` instead. It is made already and cannot wait: if it is
    /// smaller than its question, the rest is given back; if it is bigger, it takes what is left.
    pub(super) fn settle(&mut self, bytes: usize) {
        let needed = self.room.units_for(bytes);
        let surplus = self.units().saturating_sub(needed);
        drop(self.permit.as_mut().and_then(|held| held.split(surplus)));
        let missing = needed.saturating_sub(self.units());
        let more = missing.min(self.room.units.available_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.room.units).try_acquire_many_owned(more) {
            self.merge(permit);
        }
    }

    fn merge(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn small_bodies_need_no_room_and_big_ones_wait_for_it() {
        let room = Room::new(4 * UNIT, UNIT);
        let mut first = room.nothing();
        assert!(first.grow(UNIT).now_or_never().is_some());
        assert_eq!(room.units.available_permits(), 4);
        assert!(first.grow(5 * UNIT).now_or_never().is_some());
        assert_eq!(room.units.available_permits(), 0);
        let mut second = room.nothing();
        assert!(second.grow(UNIT).now_or_never().is_some());
        assert!(second.grow(UNIT + 1).now_or_never().is_none());
        first.settle(2 * UNIT);
        assert_eq!(room.units.available_permits(), 3);
        assert!(second.grow(UNIT + 1).now_or_never().is_some());
        drop((first, second));
        assert_eq!(room.units.available_permits(), 4);
    }

    #[tokio::test]
    async fn an_answer_that_has_grown_takes_what_is_left_and_does_not_wait() {
        let room = Room::new(4 * UNIT, UNIT);
        let mut held = room.nothing();
        held.settle(UNIT);
        assert_eq!(room.units.available_permits(), 4);
        held.settle(3 * UNIT);
        assert_eq!(room.units.available_permits(), 2);
        held.settle(90 * UNIT);
        assert_eq!(room.units.available_permits(), 0);
        drop(held);
        assert_eq!(room.units.available_permits(), 4);
    }

    #[tokio::test]
    async fn room_that_is_held_is_not_asked_for_again() {
        let room = Room::new(4 * UNIT, 0);
        let mut held = room.nothing();
        for bytes in [1, UNIT, UNIT + 1, 4 * UNIT, 3 * UNIT] {
            assert!(held.grow(bytes).now_or_never().is_some(), "{bytes}");
        }
        assert_eq!(room.units.available_permits(), 0);
    }
}
