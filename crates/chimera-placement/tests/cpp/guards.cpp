// No exception leaves what Rust calls: each call is made with a first, a second, a third allocation that fails, and so on until
// none fails any more. Each of these in a process of its own, because RocksDB is not made to go on after an exception.
//
//   guards DATABASE
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "database.h"

namespace {

// Allocations of this thread until one fails; negative for none.
thread_local long until_failure = -1;

void* Take(std::size_t size) {
  if (until_failure >= 0 && until_failure-- == 0) {
    return nullptr;
  }
  return std::malloc(size == 0 ? 1 : size);
}

void* TakeOrThrow(std::size_t size) {
  void* memory = Take(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

void Fail(const char* what, const char* text) {
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

enum Outcome { kMessage, kNothingFailed, kLeft, kWrong };

// Calls with one allocation that fails.
template <typename Call>
Outcome FailAllocation(int number, Call call) {
  char* message = nullptr;
  until_failure = number;
  try {
    message = call();
  } catch (...) {
    return kLeft;
  }
  const bool has_failed = until_failure < 0;
  until_failure = -1;
  if (!has_failed) {
    return message == nullptr ? kNothingFailed : kWrong;
  }
  // Where RocksDB does without what it did not get, there is no message.
  chimera_message_free(message);
  return kMessage;
}

// Calls until no allocation fails; says how many did.
template <typename Call>
int FailEachAllocation(const char* what, Call call) {
  for (int number = 0;; ++number) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(FailAllocation(number, call));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
      Fail(what, "it did not end by itself");
    }
    switch (WEXITSTATUS(status)) {
      case kMessage:
        break;
      case kNothingFailed:
        return number;
      default:
        Fail(what, "an exception left, or it failed without a reason");
    }
  }
}

// Calls, and nothing fails.
void Succeed(const char* what, char* message) {
  if (message != nullptr) {
    Fail(what, message);
  }
}

ChimeraDatabase* Open(const char* path) {
  ChimeraOptions options = {};
  options.path = path;
  options.cache_bytes = 1 << 20;
  options.write_buffer_bytes = 1 << 20;
  options.block_bytes = 4096;
  options.create_if_missing = true;
  options.keeps_statistics = true;
  ChimeraDatabase* database = nullptr;
  Succeed("open", chimera_database_open(&options, &database));
  return database;
}

void Fill(ChimeraDatabase* database) {
  for (int number = 0; number < 1000; ++number) {
    const std::string key = std::to_string(number);
    Succeed("put", chimera_database_put(database, key.data(), key.size(), key.data(), key.size()));
  }
  Succeed("flush", chimera_database_flush(database));
}

int Iterate(ChimeraDatabase* database) {
  ChimeraIterator* iterator = nullptr;
  const auto make = [&] { return chimera_iterator_new(database, &iterator); };
  int failures = FailEachAllocation("new", make);
  Succeed("new", make());
  const auto first = [&] { return chimera_iterator_seek_to_first(iterator); };
  const auto last = [&] { return chimera_iterator_seek_to_last(iterator); };
  const auto seek = [&] { return chimera_iterator_seek(iterator, "5", 1); };
  const auto prior = [&] { return chimera_iterator_seek_for_prev(iterator, "5", 1); };
  failures += FailEachAllocation("first", first) + FailEachAllocation("last", last);
  failures += FailEachAllocation("seek", seek) + FailEachAllocation("prior", prior);
  Succeed("seek", seek());
  failures += FailEachAllocation("next", [&] { return chimera_iterator_next(iterator); });
  failures += FailEachAllocation("prev", [&] { return chimera_iterator_prev(iterator); });
  ChimeraRecord record = {};
  const auto read = [&] { return chimera_iterator_record(iterator, &record); };
  failures += FailEachAllocation("record", read);
  Succeed("record", read());
  if (!record.is_there || std::string(record.key, record.key_length) != "5") {
    Fail("record", "another key");
  }
  chimera_iterator_free(iterator);
  return failures;
}

}  // namespace

void* operator new(std::size_t size) { return TakeOrThrow(size); }
void* operator new[](std::size_t size) { return TakeOrThrow(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Take(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

int main(int count, char** arguments) {
  if (count != 2) {
    Fail("usage", "guards DATABASE");
  }
  ChimeraDatabase* database = Open(arguments[1]);
  Fill(database);
  ChimeraCounts counts = {};
  int failures =
      FailEachAllocation("counts", [&] { return chimera_database_counts(database, &counts); });
  failures += Iterate(database);
  bool found = false;
  failures += FailEachAllocation("get", [&] {
    return chimera_database_get(database, "7", 1, [](void*, const char*, size_t) {}, nullptr,
                                &found);
  });
  if (failures == 0) {
    Fail("all", "no allocation failed");
  }
  chimera_database_close(database);
  std::printf("%d allocations failed\nOK\n", failures);
  return 0;
}
