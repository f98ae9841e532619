//! What the C++ shim calls: `shim/rust.h` and `shim/factories.cpp` declare the same functions.
//!
//! A heap, a tier or an arena is handed over as the pointer of an [`Arc`]. The shim takes and gives up references of its own. None
//! of these functions panics: a panic would end the process.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::Arena;
use crate::heap::{Heap, Place, Share};
use crate::region::RegionOptions;
use crate::tier::Tier;

/// The heap behind a pointer.
///
/// # Safety
/// The pointer came from an `Arc<Heap>` of which the caller holds a reference for as long as the result is used.
unsafe fn heap_of<'a>(heap: *const Heap) -> &'a Heap {
    // SAFETY: the contract is the caller's.
    unsafe { &*heap }
}

/// The tier behind a pointer.
///
/// # Safety
/// As [`heap_of`], of an `Arc<Tier>`.
unsafe fn tier_of<'a>(tier: *const Tier) -> &'a Tier {
    // SAFETY: the contract is the caller's.
    unsafe { &*tier }
}

/// Bytes of the shim.
///
/// # Safety
/// `length` bytes at `bytes` may be read for as long as the result is used.
unsafe fn bytes_of<'a>(bytes: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the contract is the caller's, and without bytes the pointer may be null.
    unsafe { std::slice::from_raw_parts(bytes.cast(), length) }
}

fn or_null(object: Option<NonNull<u8>>) -> *mut c_void {
    object.map_or(ptr::null_mut(), |object| object.as_ptr().cast())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_allocate(heap: *const Heap, size: usize) -> *mut c_void {
    // SAFETY: the shim holds a reference to the heap.
    or_null(unsafe { heap_of(heap) }.allocate(size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_allocate_in(
    heap: *const Heap,
    size: usize,
    in_pmem: bool,
) -> *mut c_void {
    // SAFETY: the shim holds a reference to the heap.
    or_null(unsafe { heap_of(heap) }.allocate_in(size, in_pmem))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_free(heap: *const Heap, object: *mut c_void) {
    let Some(object) = NonNull::new(object.cast()) else { return };
    // SAFETY: the shim holds a reference to the heap.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: RocksDB and the memtables free each object of this heap once.
    unsafe { heap.free(object) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_usable_bytes(heap: *const Heap, object: *mut c_void) -> usize {
    let Some(object) = NonNull::new(object.cast()) else { return 0 };
    // SAFETY: the shim holds a reference to the heap.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: RocksDB asks for live objects of this heap.
    unsafe { heap.usable_bytes(object) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_place(heap: *const Heap, object: *mut c_void) -> Place {
    let Some(object) = NonNull::new(object.cast()) else { return Place::Dram };
    // SAFETY: the shim holds a reference to the heap.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: the shim asks for the block that is just being inserted, which is a live object of this heap.
    unsafe { heap.place(object) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_takes(
    heap: *const Heap,
    pmem: u64,
    total: u64,
    size: u64,
) -> bool {
    // SAFETY: the shim holds a reference to the heap.
    unsafe { heap_of(heap) }.share().takes(pmem, total, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_has_model(heap: *const Heap) -> bool {
    // SAFETY: the shim holds a reference to the heap.
    unsafe { heap_of(heap) }.model().is_some()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_read(heap: *const Heap, address: *const c_void, length: usize) {
    // SAFETY: the shim holds a reference to the heap.
    unsafe { heap_of(heap) }.read(address.cast(), length);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_stored(heap: *const Heap, address: *const c_void, length: usize) {
    // SAFETY: the shim holds a reference to the heap.
    unsafe { heap_of(heap) }.stored(address.cast(), length);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_retain(heap: *const Heap) {
    // SAFETY: the pointer came from an `Arc` of which the caller holds a reference.
    unsafe { Arc::increment_strong_count(heap) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_release(heap: *const Heap) {
    // SAFETY: the caller gives up a reference that it took.
    unsafe { Arc::decrement_strong_count(heap) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_insert(
    tier: *const Tier,
    key: *const c_char,
    key_length: usize,
    length: usize,
    fill: extern "C" fn(*mut c_void, *mut c_char, usize) -> bool,
    context: *mut c_void,
) -> bool {
    // SAFETY: the shim lends the key for the time of the call.
    let key = unsafe { bytes_of(key, key_length) };
    // SAFETY: the shim holds a reference to the tier.
    let tier = unsafe { tier_of(tier) };
    // A key names the same bytes for good: RocksDB gives each file a name of its own.
    if tier.renew(key) {
        return true;
    }
    let mut fill = |bytes: &mut [u8]| fill(context, bytes.as_mut_ptr().cast(), bytes.len());
    tier.insert_with(key, length, &mut fill)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_lookup(
    tier: *const Tier,
    key: *const c_char,
    key_length: usize,
    take: bool,
    work: extern "C" fn(*mut c_void, *const c_char, usize),
    context: *mut c_void,
) -> bool {
    // SAFETY: the shim lends the key for the time of the call.
    let key = unsafe { bytes_of(key, key_length) };
    // SAFETY: the shim holds a reference to the tier.
    let tier = unsafe { tier_of(tier) };
    tier.lookup(key, take, |block| work(context, block.as_ptr().cast(), block.len())).is_some()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_erase(tier: *const Tier, key: *const c_char, key_length: usize) {
    // SAFETY: the shim lends the key for the time of the call.
    let key = unsafe { bytes_of(key, key_length) };
    // SAFETY: the shim holds a reference to the tier.
    unsafe { tier_of(tier) }.erase(key);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_capacity(tier: *const Tier) -> usize {
    // SAFETY: the shim holds a reference to the tier.
    unsafe { tier_of(tier) }.capacity()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_set_capacity(tier: *const Tier, capacity: usize) {
    // SAFETY: the shim holds a reference to the tier.
    unsafe { tier_of(tier) }.set_capacity(capacity);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_retain(tier: *const Tier) {
    // SAFETY: the pointer came from an `Arc` of which the caller holds a reference.
    unsafe { Arc::increment_strong_count(tier) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_release(tier: *const Tier) {
    // SAFETY: the caller gives up a reference that it took.
    unsafe { Arc::decrement_strong_count(tier) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_arena_open(
    directory: *const c_char,
    length: usize,
    bytes: u64,
    require_dax: bool,
    message: *mut c_char,
    message_length: usize,
) -> *const Arena {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the caller lends the path for the time of the call.
    let directory = unsafe { bytes_of(directory, length) };
    let directory = PathBuf::from(std::ffi::OsStr::from_bytes(directory));
    match Arena::open(&RegionOptions { directory, bytes, require_dax }) {
        Ok(arena) => Arc::into_raw(Arc::new(arena)),
        Err(error) => {
            let text = error.to_string();
            let length = text.len().min(message_length.saturating_sub(1));
            // SAFETY: the caller lends `message_length` bytes, of which the last one stays zero as it is.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), message.cast(), length) };
            ptr::null()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_arena_release(arena: *const Arena) {
    // SAFETY: the caller gives up a reference that it took.
    unsafe { Arc::decrement_strong_count(arena) };
}

/// Another reference to an arena.
///
/// # Safety
/// The pointer came from an `Arc<Arena>` of which the caller holds a reference.
unsafe fn share_arena(arena: *const Arena) -> Arc<Arena> {
    // SAFETY: the contract is the caller's.
    unsafe { Arc::increment_strong_count(arena) };
    // SAFETY: the reference that was just taken is handed over.
    unsafe { Arc::from_raw(arena) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_heap_new(arena: *const Arena, percent: u8) -> *const Heap {
    // SAFETY: the caller holds a reference to the arena.
    let arena = unsafe { share_arena(arena) };
    let share = Share::percent(percent).unwrap_or(Share::ALL);
    Arc::into_raw(Arc::new(Heap::new(arena, share, None)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chimera_tier_new(
    arena: *const Arena,
    capacity: u64,
    compresses: bool,
) -> *const Tier {
    // SAFETY: the caller holds a reference to the arena.
    let arena = unsafe { share_arena(arena) };
    let heap = Arc::new(Heap::new(arena, Share::ALL, None));
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    Arc::into_raw(Arc::new(Tier::new(heap, capacity, compresses)))
}
