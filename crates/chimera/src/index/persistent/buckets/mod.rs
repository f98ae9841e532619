//! Buckets of a segment of a hash table, and the words that certify a segment and its entries: what the hash tables of
//! [`partitioned_hash`](super::partitioned_hash) and `extendible_hash` have in common.
//!
//! An entry is 16 bytes: the *signature* of a key, which is all 64 bits of its hash, and the *position* of its record. It
//! lies in the first free slot of the [`WINDOW_BUCKETS`] buckets from its home bucket on.
//!
//! # Rules of a slot
//! 1. A slot is empty if its position is the word of an empty slot at its place, whatever its signature. That word is never
//!    0: a slot that lost its bytes is damaged.
//! 2. A slot changes its signature only while it is empty. A removal stores the word of an empty slot to the position, then 0
//!    to the signature.
//! 3. An update changes the position, and nothing else.
//! 4. The position has a check over itself, the signature, and the place of the slot. So no slot is valid at another place.
//! 5. A slot whose signature does not begin with the prefix of its segment is *foreign*: it was split off. It is ignored,
//!    and free to be used again.
//!
//! Each change is stores to one line, the position last, so one flush and one fence make it durable as a whole.

mod batch;
mod layout;
mod slots;

pub(crate) use batch::Batch;
pub(crate) use layout::{DEPTH_MAX, Prefix};
#[cfg(all(feature = "baselines", not(loom)))]
pub(crate) use layout::{offset, position};
pub(crate) use slots::{Image, PER_BUCKET, Slot, Slots, damaged_slot};

/// Where entries are stored, flushed and fenced.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// An entry that is made, or its position when it is replaced.
        ENTRY = "hash.entry", in_place;
        /// An entry that is removed.
        REMOVE = "hash.remove", in_place;
    }
}

/// Checks and steps that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a slot.
        SLOT_CHECK = "hash.step.slot_check";
        /// That a slot which was split off is ignored.
        FOREIGN = "hash.step.foreign";
    }
}

/// Buckets in which an entry may lie, from its home on.
pub(crate) const WINDOW_BUCKETS: u32 = 4;
