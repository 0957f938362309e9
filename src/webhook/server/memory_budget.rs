//! The memory budget for request bodies and responses: a maximum for all requests together.
//!
//! Small bodies are exempt: there is at most one per connection, and large bodies of a hostile
//! client must not keep them out.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

const UNIT_BYTES: usize = 1024;

/// The memory budget of the server.
#[derive(Clone)]
pub(super) struct MemoryBudget {
    exempt_bytes: usize,
    units: Arc<Semaphore>,
}

/// The share of the budget that one request holds, returned on drop.
pub(super) struct BudgetGuard {
    budget: MemoryBudget,
    permit: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    /// A budget of `bytes`; each request has `exempt_bytes` in addition.
    pub(super) fn new(bytes: usize, exempt_bytes: usize) -> Self {
        let units = bytes.div_euclid(UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        Self { exempt_bytes, units: Arc::new(Semaphore::new(units)) }
    }

    /// A guard that holds nothing yet.
    pub(super) fn guard(&self) -> BudgetGuard {
        BudgetGuard { budget: self.clone(), permit: None }
    }

    fn units_for(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.exempt_bytes).div_ceil(UNIT_BYTES)
    }
}

impl BudgetGuard {
    fn units(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Grows the share to `bytes` in total, and waits until that much is free.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), AcquireError> {
        let more = self.budget.units_for(bytes).saturating_sub(self.units());
        if more == 0 {
            return Ok(());
        }
        // More than the semaphore can count is more than the budget: it waits until its timeout.
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.budget.units).acquire_many_owned(more).await?;
        self.merge(permit);
        Ok(())
    }

    /// Resizes the share to a response of `bytes`. The response exists already and cannot wait: if
    /// it is smaller than the request, the surplus is returned; if it is larger, it takes what is
    /// free.
    pub(super) fn resize(&mut self, bytes: usize) {
        let needed = self.budget.units_for(bytes);
        let surplus = self.units().saturating_sub(needed);
        drop(self.permit.as_mut().and_then(|guard| guard.split(surplus)));
        let missing = needed.saturating_sub(self.units());
        let more = missing.min(self.budget.units.available_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.budget.units).try_acquire_many_owned(more) {
            self.merge(permit);
        }
    }

    fn merge(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(guard) => guard.merge(permit),
            None => self.permit = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn small_bodies_are_exempt_and_large_bodies_wait_for_budget() {
        let budget = MemoryBudget::new(4 * UNIT_BYTES, UNIT_BYTES);
        let mut first = budget.guard();
        assert!(first.grow(UNIT_BYTES).now_or_never().is_some());
        assert_eq!(budget.units.available_permits(), 4);
        assert!(first.grow(5 * UNIT_BYTES).now_or_never().is_some());
        assert_eq!(budget.units.available_permits(), 0);
        let mut second = budget.guard();
        assert!(second.grow(UNIT_BYTES).now_or_never().is_some());
        assert!(second.grow(UNIT_BYTES + 1).now_or_never().is_none());
        first.resize(2 * UNIT_BYTES);
        assert_eq!(budget.units.available_permits(), 3);
        assert!(second.grow(UNIT_BYTES + 1).now_or_never().is_some());
        drop((first, second));
        assert_eq!(budget.units.available_permits(), 4);
    }

    #[tokio::test]
    async fn larger_response_takes_the_free_budget_without_waiting() {
        let budget = MemoryBudget::new(4 * UNIT_BYTES, UNIT_BYTES);
        let mut guard = budget.guard();
        guard.resize(UNIT_BYTES);
        assert_eq!(budget.units.available_permits(), 4);
        guard.resize(3 * UNIT_BYTES);
        assert_eq!(budget.units.available_permits(), 2);
        guard.resize(90 * UNIT_BYTES);
        assert_eq!(budget.units.available_permits(), 0);
        drop(guard);
        assert_eq!(budget.units.available_permits(), 4);
    }

    #[tokio::test]
    async fn budget_that_is_held_is_not_acquired_again() {
        let budget = MemoryBudget::new(4 * UNIT_BYTES, 0);
        let mut guard = budget.guard();
        for bytes in [1, UNIT_BYTES, UNIT_BYTES + 1, 4 * UNIT_BYTES, 3 * UNIT_BYTES] {
            assert!(guard.grow(bytes).now_or_never().is_some(), "{bytes}");
        }
        assert_eq!(budget.units.available_permits(), 0);
    }
}
