#include "heddle/backend/cuda/compiler/nvrtc.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

// A tree with libraries that are empty files, and an environment.
class NvrtcSearch : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(root.data()), nullptr);
    places.environment = [this](const char* name) { return variables[name]; };
    places.working_folder = root + "/here";
    places.toolkits = root + "/usr/local";
  }
  void TearDown() override { fs::remove_all(root); }

  std::string library(const std::string& folder, const std::string& name = "libnvrtc.so.13") {
    fs::create_directories(root + "/" + folder);
    write_file(root + "/" + folder + "/" + name, "");
    return root + "/" + folder + "/" + name;
  }

  std::string root = testing::TempDir() + "heddle_nvrtc_XXXXXX";
  std::map<std::string, std::string> variables;
  NvrtcPlaces places;
};

TEST_F(NvrtcSearch, TakesTheToolkitThenTheLoadersPathThenPython) {
  const std::string python = "/lib/python3.12/site-packages/nvidia/cu13/lib";
  const std::vector<std::string> expected = {
      library("home/lib64"),
      library("path/lib64"),
      library("usr/local/cuda-13.0/lib64"),
      library("usr/local/cuda-12.9/lib64", "libnvrtc.so.12"),
      "libnvrtc.so.13",
      "libnvrtc.so.12",
      library("interpreter/nvidia/cu13/lib"),
      library("interpreter/nvidia/cuda_nvrtc/lib", "libnvrtc.so.12"),
      library("chosen" + python),
      library("environment" + python),
      library("conda" + python),
      library("here/.venv" + python),
  };
  library("usr/local/cuda-13.0/lib64", "libnvrtc-builtins.so.13.0");  // no compiler
  places.packages = {root + "/nowhere", root + "/interpreter"};
  variables = {{"CUDA_HOME", root + "/home"},
               {"CUDA_PATH", root + "/path"},
               {"HEDDLE_PYTHON", root + "/chosen/bin/python"},
               {"VIRTUAL_ENV", root + "/environment"},
               {"CONDA_PREFIX", root + "/conda"}};
  EXPECT_EQ(nvrtc_candidates(places), expected);
}

TEST_F(NvrtcSearch, TheVariableStandsAlone) {
  library("usr/local/cuda/lib64");
  const std::string set = library("set");
  variables["HEDDLE_NVRTC"] = root + "/set";
  EXPECT_EQ(nvrtc_candidates(places), std::vector{set});
  variables["HEDDLE_NVRTC"] = set;
  EXPECT_EQ(nvrtc_candidates(places), std::vector{set});
  variables["HEDDLE_NVRTC"] = root + "/nowhere";
  EXPECT_EQ(nvrtc_candidates(places), std::vector{root + "/nowhere"});
}

TEST_F(NvrtcSearch, SaysWhereItLooked) {
  const std::string broken = library("broken");
  try {
    const Nvrtc nvrtc({broken, root + "/missing/libnvrtc.so.13"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    const std::string text = error.what();
    for (const std::string& part : {broken, root + "/missing/libnvrtc.so.13", std::string("HEDDLE_NVRTC"),
                                    std::string("pip install nvidia-cuda-nvrtc")})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
    EXPECT_EQ(text.find("No such file"), std::string::npos) << "said of each place: " << text;
  }
}

TEST(Nvrtc, FindsItsBuiltinsAndSaysWhatItIs) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const Nvrtc& nvrtc = Nvrtc::get();
  EXPECT_GE(nvrtc.version(), 12000);
  EXPECT_TRUE(fs::exists(nvrtc.path())) << nvrtc.path();
  const Nvrtc::Output output = nvrtc.compile(
      {"body", "#include \"a/b.h\"\n__global__ void f(int* x) { *x = kB; }", {"--gpu-architecture=sm_80"}},
      {{"a/b.h", "#include \"a/c.h\""}, {"a/c.h", "constexpr int kB = 3;"}});
  EXPECT_TRUE(output.ok) << output.log;
}

}  // namespace
}  // namespace heddle::cuda
