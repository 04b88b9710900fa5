#include "heddle/engine/memory_need.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

TEST(MemoryNeed, RefusesWithTheNumbers) {
  const MemoryNeed need{.weights = 3'000'000'000,
                        .kv_pages = 500'000'000,
                        .programs = 1'000'000,
                        .available = 3'400'000'000,
                        .sequences = 2,
                        .context = 4096};
  try {
    require_fit(need);
    ADD_FAILURE() << "it does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "[memory] 3.50 GB are needed and 3.40 GB are free: weights 3.00 GB, KV cache 500.0 MB (2 sequences "
        "of "
        "4096 positions), programs 1.0 MB; a smaller --max-context, fewer sequences or a "
        "smaller model need less");
  }
  MemoryNeed fits = need;
  fits.available = need.total();
  require_fit(fits);
  fits.available = -1;  // unknown
  require_fit(fits);
}

TEST(MemoryNeed, SaysWhatAWindowSees) {
  const MemoryNeed need{.sequences = 1, .context = 4096, .window = 512};
  EXPECT_NE(need.text().find("(1 sequence of 4096 positions, of which 512 are seen)"), std::string::npos)
      << need.text();
}

TEST(MemoryNeed, TheSystemSaysWhatIsFree) {
  const i64 free = available_memory();
  EXPECT_GT(free, i64{64} << 20);
  EXPECT_LT(free, i64{1} << 50);
}

}  // namespace
}  // namespace heddle
