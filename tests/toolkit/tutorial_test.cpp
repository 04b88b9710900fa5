// The code of docs/kernels.md compiles, as one file, and keeps all in registers. In the frame that a call has it is compiled by
// python/tests/test_own_kernel.py.
#include <string>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/base/file.h"

namespace heddle::cuda {
namespace {

std::string code_of_page(const std::string& page) {
  const std::string begin = "```cpp\n", end = "```\n";
  std::string code;
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    code += page.substr(at, page.find(end, at) - at);
  }
  return code;
}

TEST(Tutorial, ItsCodeCompiles) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  // The lines around the page's code are those that heddle writes for an op's kernel.
  const std::string code =
      "#include \"heddle/ir/tensor.h\"\n"
      "namespace heddle {\nstruct Args {\n  Tensor left, right, y;\n};\n}\n" +
      code_of_page(read_file(HEDDLE_SOURCE_DIR "/docs/kernels.md")) +
      "extern \"C\" __global__ void __launch_bounds__(128) sums_of_rows(const __grid_constant__ Args args) "
      "{\n"
      "  Kernel<int>::run(args, nullptr, nullptr);\n}\n";
  for (const char* arch : {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    const Compiled compiled = compile({"docs/kernels.md", code, arch, {}});
    ASSERT_EQ(compiled.kernels.size(), 1u) << compiled.log;
    EXPECT_EQ(compiled.kernels[0].spill_store_bytes, 0) << compiled.log;
    EXPECT_EQ(compiled.kernels[0].stack_bytes, 0) << "all places are constants, or computed in registers";
  }
}

}  // namespace
}  // namespace heddle::cuda
