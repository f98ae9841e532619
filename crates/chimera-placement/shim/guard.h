// Guarded: no exception leaves what Rust calls. It becomes a message.
#pragma once

#include <rocksdb/status.h>

#include <exception>

namespace chimera_placement {

// A message of two parts, for Rust to free with FreeMessage; a constant one when there is no memory left for it.
char* NewMessage(const char* text, const char* more = "") noexcept;
void FreeMessage(char* message) noexcept;

// Runs `work`, which returns a status. Null when that is fine.
template <typename Work>
char* Guarded(Work work) noexcept {
  try {
    const rocksdb::Status status = work();
    return status.ok() ? nullptr : NewMessage(status.ToString().c_str());
  } catch (const std::exception& error) {
    return NewMessage("an exception: ", error.what());
  } catch (...) {
    return NewMessage("an exception without a name");
  }
}

}  // namespace chimera_placement
