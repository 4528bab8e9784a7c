// crash_writer DIR SEED: opens the store and works on it until it is killed. Writes the number of
// each commit to standard output, eight bytes each, once it is done.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "crash_work.h"

int main(int argc, char** argv) {
  using namespace terrace;
  if (argc != 3) return 2;
  const std::string dir = argv[1];
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  try {
    const auto store = DiskStore::Open(dir, CrashOptions(seed));
    Contents contents = ReadAll(*store);
    for (uint64_t step = store->stats().commits + 1;; ++step) {
      CrashStep(seed, step, store.get(), dir, &contents);
      if (write(STDOUT_FILENO, &step, sizeof(step)) != sizeof(step)) return 1;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "crash_writer: %s\n", e.what());
    return 1;
  }
}
