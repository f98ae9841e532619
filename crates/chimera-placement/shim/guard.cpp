#include "guard.h"

#include <cstring>
#include <new>

namespace chimera_placement {

namespace {

char no_memory[] = "no memory is left, not even to say for what";

}  // namespace

char* NewMessage(const char* text, const char* more) noexcept {
  const size_t length = std::strlen(text);
  const size_t more_length = std::strlen(more) + 1;
  auto* message = new (std::nothrow) char[length + more_length];
  if (message == nullptr) {
    return no_memory;
  }
  std::memcpy(message, text, length);
  std::memcpy(message + length, more, more_length);
  return message;
}

void FreeMessage(char* message) noexcept {
  if (message != no_memory) {
    delete[] message;
  }
}

}  // namespace chimera_placement
