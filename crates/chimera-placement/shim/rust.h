// What the shim calls in Rust. None of these functions throws.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// A `Heap`, shared and counted.
struct ChimeraHeap;
// A `Tier`, shared and counted.
struct ChimeraTier;

// Where an object lies; as `Place`.
enum ChimeraPlace : uint8_t {
  kChimeraDram = 0,
  kChimeraPmem = 1,
  kChimeraOverflow = 2,
};

void* chimera_heap_allocate(const ChimeraHeap* heap, size_t size);
void* chimera_heap_allocate_in(const ChimeraHeap* heap, size_t size, bool in_pmem);
void chimera_heap_free(const ChimeraHeap* heap, void* object);
size_t chimera_heap_usable_bytes(const ChimeraHeap* heap, void* object);
ChimeraPlace chimera_heap_place(const ChimeraHeap* heap, void* object);
// Whether the heap keeps `size` more bytes in persistent memory, where `pmem` of `total` bytes are.
bool chimera_heap_takes(const ChimeraHeap* heap, uint64_t pmem, uint64_t total, uint64_t size);
bool chimera_heap_has_model(const ChimeraHeap* heap);
void chimera_heap_read(const ChimeraHeap* heap, const void* address, size_t length);
void chimera_heap_stored(const ChimeraHeap* heap, const void* address, size_t length);
// Takes another reference, or gives one up.
void chimera_heap_retain(const ChimeraHeap* heap);
void chimera_heap_release(const ChimeraHeap* heap);

// Takes a block of `length` bytes that `fill` writes; false when there is no room or `fill` fails. `fill` is called once at most.
bool chimera_tier_insert(const ChimeraTier* tier, const char* key, size_t key_length,
                         size_t length, bool (*fill)(void* context, char* block, size_t length),
                         void* context);
// Hands the bytes of a block to `work`; false when there is no such block.
bool chimera_tier_lookup(const ChimeraTier* tier, const char* key, size_t key_length, bool take,
                         void (*work)(void* context, const char* block, size_t length),
                         void* context);
void chimera_tier_erase(const ChimeraTier* tier, const char* key, size_t key_length);
size_t chimera_tier_capacity(const ChimeraTier* tier);
void chimera_tier_set_capacity(const ChimeraTier* tier, size_t capacity);
void chimera_tier_retain(const ChimeraTier* tier);
void chimera_tier_release(const ChimeraTier* tier);

}  // extern "C"
