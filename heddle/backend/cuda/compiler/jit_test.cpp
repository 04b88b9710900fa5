#include "heddle/backend/cuda/compiler/jit.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/cubin_cache.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/compiler/test_kernels.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// A cache of its own for each test, so that nothing comes from an earlier run.
class Jit : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string folder = testing::TempDir() + "heddle_jit_XXXXXX";
};

constexpr const char* kScale = R"(
#include "heddle/base/types.h"
extern "C" __global__ void scale(float* x, heddle::u32 n) {
  if (threadIdx.x < n) x[threadIdx.x] *= FACTOR;
}
)";

std::vector<Compiled> compile_all(const std::vector<CompileRequest>& requests, const CubinCache& cache) {
  std::vector<Compiled> compiled;
  for (Result<Compiled>& result : try_compile(requests, 4, cache))
    compiled.push_back(std::move(result).or_throw(ErrorCode::kCompile));
  return compiled;
}

TEST_F(Jit, CompilesForEveryArchitectureInParallelAndInOrder) {
  std::vector<CompileRequest> requests;
  for (const Arch& arch : known_archs())
    requests.push_back({std::string("scale ") + arch.name, kScale, arch.name, {"-DFACTOR=2"}});
  const CubinCache cache(folder), other_cache(folder + "/other");
  const std::vector<Compiled> first = compile_all(requests, cache), again = compile_all(requests, cache),
                              other = compile_all(requests, other_cache);
  ASSERT_EQ(first.size(), requests.size());
  for (size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(requests[i].arch);
    EXPECT_EQ(first[i].cubin.substr(1, 3), "ELF");
    EXPECT_FALSE(first[i].from_cache);
    ASSERT_EQ(first[i].kernels.size(), 1u);
    EXPECT_EQ(first[i].kernels[0].name, "scale");
    EXPECT_GT(first[i].kernels[0].registers, 0);
    EXPECT_NE(first[i].log.find(requests[i].arch), std::string::npos);  // each has its own
    EXPECT_FALSE(other[i].from_cache);
    EXPECT_EQ(other[i].cubin, first[i].cubin) << "the same text makes the same bytes";
    EXPECT_TRUE(again[i].from_cache);
    EXPECT_EQ(again[i].cubin, first[i].cubin);
    EXPECT_EQ(again[i].kernels[0].registers, first[i].kernels[0].registers);
  }
  EXPECT_EQ(cache.usage().entries, requests.size());
}

TEST_F(Jit, CompilesTheKernelsThatTestsLaunch) {
  std::vector<CompileRequest> requests;
  for (const Arch& arch : known_archs()) requests.push_back(test_kernels(arch.name));
  for (const Compiled& compiled : compile_all(requests, CubinCache(folder)))
    EXPECT_EQ(compiled.kernels.size(), 6u);
}

TEST_F(Jit, SourceOptionsAndArchitectureMakeAnotherProgram) {
  const CubinCache cache(folder);
  const CompileRequest base{"scale", kScale, "sm_80", {"-DFACTOR=2"}};
  CompileRequest source = base, options = base, arch = base;
  source.source += ' ';
  options.options = {"-DFACTOR=3"};
  arch.arch = "sm_89";
  for (const CompileRequest& request : {base, source, options, arch})
    EXPECT_FALSE(compile_all({request}, cache)[0].from_cache);
  CompileRequest name = base;
  name.name = "another";
  EXPECT_TRUE(compile_all({name}, cache)[0].from_cache);
}

TEST_F(Jit, AnErrorNamesRequestArchitectureOptionsAndShowsTheLog) {
  const CubinCache cache(folder);
  const CompileRequest good{"good", kScale, "sm_80", {"-DFACTOR=2"}};
  const CompileRequest bad{
      "linear, 16 rows", "#include \"heddle/base/types.h\"\nheddle::nothing x;", "sm_90a", {"-DA=1"}};
  const std::vector<Result<Compiled>> results = try_compile(std::vector{good, bad}, 2, cache);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  for (const char* part : {"[linear, 16 rows]", "sm_90a", "-DA=1", "(2)", "nothing"})
    EXPECT_NE(results[1].message().find(part), std::string::npos)
        << part << " is not in " << results[1].message();
  try {
    compile(bad);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompile);
    EXPECT_EQ(error.what(), results[1].message());
  }
}

// The compiler must refuse what could not run on the GPU. If it took anything, a text that compiles would prove
// nothing.
TEST_F(Jit, RefusesStandardHeadersExceptionsAndUnknownOptions) {
  const CubinCache cache(folder);
  const auto refused = [&](const std::string& source, std::vector<std::string> options) {
    const CompileRequest request{"fault", source, "sm_90a", std::move(options)};
    EXPECT_FALSE(try_compile(std::span(&request, 1), 1, cache)[0]) << source;
  };
  refused("#include <vector>", {});
  refused("void f() { throw 1; }", {});
  refused("#include \"heddle/base/error.h\"", {});
  refused("int x;", {"--no-such-option"});
}

// The body of an op made at run time says where it stands in its user's file, which changes as that file does.
TEST(CodeName, ForgetsWhereASourceStands) {
  const auto name = [](const std::string& source) { return code_name({"x", source, "sm_90a", {}}); };
  EXPECT_EQ(name("#line 7 \"a.py\"\nint x;"), name("#line 9 \"b.py\"\nint x;"));
  EXPECT_EQ(name("int x;\n#line 7 \"a.py\""), name("int x;\n"));
  EXPECT_NE(name("#line 7 \"a.py\"\nint x;"), name("#line 7 \"a.py\"\nint y;"));
  EXPECT_NE(name("int a;\nint b;"), name("int a;int b;"));
}

TEST(KernelUse, ReadsEveryKernelOfALog) {
  const std::vector<KernelUse> kernels = parse_kernel_use(
      "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
      "ptxas info    : Function properties for k2\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n"
      "ptxas info    : Compiling entry function 'k1' for 'sm_90a'\n"
      "ptxas info    : Function properties for k1\n"
      "ptxas         .     16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 256 bytes cumulative stack size, 400 bytes smem\n"
      "ptxas info    : Function properties for _Z1fPfi\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].name, "k2");
  EXPECT_EQ(kernels[0].registers, 8);
  EXPECT_EQ(kernels[0].shared_bytes, 0);
  EXPECT_EQ(kernels[1].registers, 255);
  EXPECT_EQ(kernels[1].shared_bytes, 400);
  EXPECT_EQ(kernels[1].stack_bytes, 256);
  EXPECT_EQ(kernels[1].spill_store_bytes, 24);
  EXPECT_EQ(kernels[1].spill_load_bytes, 32);
  EXPECT_EQ(kernels[2].registers, 0);
  EXPECT_EQ(kernels[2].spill_store_bytes, 4);
}

}  // namespace
}  // namespace heddle::cuda
