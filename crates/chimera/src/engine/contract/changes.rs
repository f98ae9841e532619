//! [`Changes`]: the one place in each change of an index where an add-on is told of it.

use std::sync::Arc;

use crate::ordered::Order;
use crate::types::change::{KeyChange, TellChange};

/// The one place where an add-on is told of changes of the index.
pub(crate) struct Changes {
    order: Option<Arc<Order>>,
    told: Option<Arc<dyn TellChange>>,
}

impl Changes {
    /// Tells `order` and `told`, if they are there.
    pub(super) fn new(order: Option<Arc<Order>>, told: Option<Arc<dyn TellChange>>) -> Self {
        Self { order, told }
    }

    /// The order of all keys, where the store has one.
    pub(crate) fn order(&self) -> Option<&Arc<Order>> {
        self.order.as_ref()
    }

    /// Tells that the index changes for `key`, whose lock the caller holds: before it changes where the key is new, and
    /// after it has changed otherwise.
    ///
    /// # Cost
    /// Two loads and branches where nobody is to be told.
    #[inline(always)]
    pub(crate) fn tell(&self, key: &[u8], change: KeyChange) {
        match (&self.order, change) {
            (Some(order), KeyChange::Inserted) => order.changed(key, true),
            (Some(order), KeyChange::Removed) => order.changed(key, false),
            _ => (),
        }
        if let Some(told) = &self.told {
            told.changed(key, change);
        }
    }
}
