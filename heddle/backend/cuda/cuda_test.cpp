// Tests what the backend says of itself to code that knows it by the registry alone.
#include <algorithm>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/cubin_cache.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::cuda {
namespace {

TEST(CudaBackend, NamesItsArchitectures) {
  const Backend& backend = backend_for_arch("sm_90a");
  EXPECT_STREQ(backend.name, "cuda");
  ASSERT_NE(backend.compiler, nullptr);
  EXPECT_EQ(fmt::format("{}", fmt::join(backend.compiler->archs, ", ")), known_arch_names());
  for (const DeviceKind& kind : backend.kinds) EXPECT_EQ(&backend_for_arch(kind.arch), &backend) << kind.name;
  try {
    backend_for_arch("sm_1");
    FAIL() << "sm_1 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("sm_1 is no architecture"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sm_80, sm_89, sm_90a"), std::string::npos) << error.what();
  }
}

TEST(CudaBackend, ShowsItsCache) {
  const CodeCache cache = backend_for_arch("sm_90a").compiler->cache();
  EXPECT_EQ(cache.folder, CubinCache::of_process().folder());
  EXPECT_EQ(cache.limit_bytes, CubinCache::kLimitBytes);
}

}  // namespace
}  // namespace heddle::cuda
