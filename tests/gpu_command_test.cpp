// The program on a GPU, as people use it: which executor runs, what it prints meanwhile, and what `diff` says
// about bodies that are wrong only on the device. The GPU is the build's emulated one; if the test was copied
// to another machine (HEDDLE_TREE, HEDDLE_PROGRAM), it is that machine's GPU.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/ir/executor/artefact.h"
#include "tests/support/command.h"
#include "tests/support/rounds.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

const std::string kTree = [] {
  const char* carried = std::getenv("HEDDLE_TREE");
  return std::string(carried ? carried : HEDDLE_SOURCE_DIR);
}();
bool is_carried() {
  return std::getenv("HEDDLE_TREE") != nullptr;
}
const std::string kModel = kTree + "/tests/goldens/models/llama3-tiny";
const std::string kExact = kTree + "/tests/goldens/models/llama2-tiny";  // fp32
const std::string kStory = kTree + "/models/storyteller";

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (is_carried()) return;
#ifdef HEDDLE_EMULATED_GPU
    set("LD_LIBRARY_PATH", HEDDLE_EMULATED_GPU);
    set("HEDDLE_NVRTC", HEDDLE_EMULATED_GPU);
    set("HEDDLE_CACHE", HEDDLE_EMULATED_CACHE);
#else
    GTEST_SKIP() << "there is no emulated GPU in this build";
#endif
  }
  void TearDown() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }
  // Sets a variable until the test ends.
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  std::vector<std::string> set_;
};

// Tests that hold only on the emulated GPU.
class OnEmulatedGpu : public OnGpu {
 protected:
  void SetUp() override {
    if (is_carried()) GTEST_SKIP() << "of the emulated GPU alone";
    OnGpu::SetUp();
  }
};

TEST_F(OnEmulatedGpu, IsTheDefault) {
  expect_in(output({"env"}), "default     megakernel\n");
  const std::vector<std::string> sum = {
      "generate", kStory, "--prompt", "27 + 45 =", "--verbose", "--workers", "4"};
  const Outcome gpu = run_program({.args = sum});
  EXPECT_EQ(gpu.out, " 72.\n");
  expect_in(gpu.err, "[executor: megakernel on emulated GPU]");
  std::vector<std::string> named = sum;
  named.insert(named.end(), {"--executor", "threads"});
  const Outcome cpu = run_program({.args = named});
  EXPECT_EQ(cpu.out, " 72.\n");
  expect_in(cpu.err, "[executor: threads on ");
  set("HEDDLE_NVRTC", "/nowhere");
  const Outcome without = run_program({.args = {"generate", kStory, "--prompt", "27 + 45 ="}});
  EXPECT_EQ(without.out, " 72.\n");
  expect_in(without.err, "; not megakernel: ");  // a GPU that cannot be used is reported without a request
}

TEST_F(OnEmulatedGpu, IsChosenByItsNumber) {
  const std::string env = in_long_lines(output({"env"}));
  expect_in(env, "gpu         cuda:0: emulated GPU (sm_90a), 16 SMs");
  expect_in(env, "gpu         cuda:1: small emulated GPU (sm_90a), 8 SMs");
  const auto generate = [](const std::string& device, const std::string& executor) {
    return run_program({.args = {"generate", kStory, "--prompt", "27 + 45 =", "--verbose", "--workers", "4",
                                 "--device", device, "--executor", executor}});
  };
  const Outcome second = generate("1", "megakernel");
  EXPECT_EQ(second.out, " 72.\n");
  expect_in(second.err, "[executor: megakernel on small emulated GPU, cuda:1]");
  const std::string on_second = "[executor: megakernel on small emulated GPU, cuda:1]";
  expect_in(generate("cuda:1", "megakernel").err, on_second);
  expect_in(generate("cuda:1", "auto").err, on_second);
  expect_in(generate("cuda", "auto").err, "[executor: megakernel on emulated GPU]");
  expect_in(generate("cpu", "auto").err, "[executor: threads on ");
  for (const std::string device : {"2", "cuda:2"}) {
    const Outcome outcome = generate(device, "auto");
    EXPECT_EQ(outcome.code, 2);
    expect_in(outcome.err, "there is no device 2; this machine has 2 (0 emulated GPU, 1 small emulated GPU)");
  }
  expect_in(generate("-1", "auto").err, "'-1' is no device");
  expect_in(generate("1", "threads").err, "[cpu] there is no device 1; the CPU is device 0");
  expect_in(output({"diff", kModel, "--a", "threads", "--b", "megakernel", "--tokens", "5", "--workers", "4",
                    "--device", "1"}),
            "threads and megakernel agree within");
}

TEST_F(OnEmulatedGpu, IsChosenAmongAllThatCanBeUsed) {
  const auto generate = [](std::vector<std::string> more) {
    std::vector<std::string> args = {"generate",  kStory, "--prompt",     "27 + 45 =", "--verbose",
                                     "--workers", "4",    "--max-tokens", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return run_program({.args = args}).err;
  };
  const std::string first = "[executor: megakernel on emulated GPU]";
  const std::string second = "[executor: megakernel on small emulated GPU, cuda:1]";
  set("EMULATED_GPU_FREE", "1,4");
  const std::string env = in_long_lines(output({"env"}));
  for (const char* words :
       {"4.3 GB (1.1 GB free)", "4.3 GB (4.3 GB free)", "default     megakernel on cuda:1\n"})
    expect_in(env, words);
  expect_in(generate({}), second);
  expect_in(generate({"--device", "0"}), first);
  set("EMULATED_GPU_FREE", "3,3");
  expect_in(output({"env"}), "default     megakernel\n");
  ::unsetenv("EMULATED_GPU_FREE");

  set("EMULATED_GPU_OLD", "0");
  const std::string one_old = in_long_lines(output({"env"}));
  expect_in(one_old, "a block; cannot be used: it has compute capability 7.0; heddle needs 8.0 or newer\n");
  expect_in(one_old, "gpu         cuda:1: small emulated GPU (sm_90a)");
  expect_in(generate({}), second);
  expect_in(generate({"--device", "0"}),
            "[cuda] device 0 (emulated GPU) has compute capability 7.0; heddle needs");
  set("EMULATED_GPU_OLD", "01");
  const std::string all_old = in_long_lines(output({"env"}));
  expect_in(all_old,
            "gpu         none: GPU 0 has compute capability 7.0; heddle needs 8.0 or newer; GPU 1 has");
  expect_in(all_old, "default     threads\n");
}

TEST_F(OnGpu, TextIsPrintedWhileALaunchRunsAndEndsWhenAsked) {
  Scratch scratch;
  const std::string file = scratch.path("text");
  const auto begun = [&] { return std::filesystem::exists(file) && std::filesystem::file_size(file) > 20; };
  const Outcome outcome =
      run_program({.args = {"generate", kStory, "--prompt", "Once upon a time", "--workers", "4",
                            "--max-tokens", "500", "--ignore-eos", "--temperature", "0"},
                   .output = file,
                   .signal = SIGINT,
                   .when = begun});
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  expect_in(outcome.err, "interrupted");  // by itself between launches, or 0.8 s later
  const std::string text = read_file(file);
  EXPECT_TRUE(text.starts_with(", a boy named Hassan")) << text;
  EXPECT_LT(text.size(), 600u);
}

TEST_F(OnGpu, BitsAreTheSameForAnyNumberOfWorkers) {
  Scratch scratch;
  std::string first;
  for (const std::string workers : {"16", "15", "8", "3"}) {
    const std::string file = scratch.path("logits");
    output({"logits", kModel, "--tokens", "5,6,7,8,9", "--workers", workers, "--executor", "megakernel",
            "--out", file});
    if (first.empty()) first = read_file(file);
    EXPECT_EQ(read_file(file), first) << workers << " workers";
  }
}

TEST_F(OnEmulatedGpu, HoldsSoManyWorkers) {
  const Scratch scratch;
  const Outcome many = run_program(
      {.args = {"logits", kModel, "--tokens", "5", "--workers", "17", "--out", scratch.path("logits")}});
  EXPECT_EQ(many.code, 2);
  expect_in(many.err, "the program has 17 workers; 16 CTAs");
}

TEST_F(OnGpu, DiffComparesThreadsWithTheMegakernel) {
  for (const std::string model : {"llama3-tiny", "mixtral-bf16"})
    for (const std::string tokens : {"5", "5,6,7"})
      expect_in(output({"diff", fmt::format("{}/tests/goldens/models/{}", kTree, model), "--a", "threads",
                        "--b", "megakernel", "--tokens", tokens, "--workers", "4"}),
                "threads and megakernel agree within");
}

TEST_F(OnGpu, SchedulesAreMeasured) {
  const std::string text = output({"schedule", kModel, "--compare", "--measure", "--workers", "4",
                                   "--position", "3", "--steps", "3", "--rounds", "1"});
  expect_in(text, "measured with megakernel on ");
  expect_in(text,
            std::string(is_carried() ? "" : "megakernel on emulated GPU") + ": the same tokens and logits");
  expect_in(text, "\nzigzag ");
}

TEST_F(OnGpu, CallsOfLaunchesAreTraced) {
  Scratch scratch;
  const std::string file = scratch.path("run.perfetto-trace");
  const std::string text = output({"profile", kModel, "--executor", "launches", "--workers", "3",
                                   "--position", "3", "--steps", "2", "--out", file});
  expect_in(text, "2 of them, 3 workers on 3 units");
  expect_in(text, "\nattention ");
  expect_in(read_file(file), "layers.1.attention");
  // Steps of many rows have whole kernels, if the device has tensor maps.
  const std::string prompt = output(
      {"profile", kModel, "--executor", "launches", "--workers", "3", "--prefill", "70", "--out", file});
  const std::string why = "tiles; no whole kernel because rms_norm is its prologue";
  expect_in(prompt, "1 call of rms_norm linear: " + why);
  expect_in(prompt, is_carried() ? "linear_kernel.sm90 ("
                                 : "no whole kernel because it is for compute capability 9.0");
  expect_in(read_file(file), why);
}

// Programs compiled ahead of time, then run where there is neither compiler nor cache.
class AheadOfTime : public OnEmulatedGpu {
 protected:
  void compile(std::vector<std::string> flags, const std::string& to, const std::string& workers = "4") {
    flags.insert(flags.begin(), {"compile", kStory, "--arch", "sm_90a", "--workers", workers, "--out", to});
    const Outcome outcome = run_program({.args = flags, .seconds = 1500});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void take_compiler_away() {
    set("HEDDLE_NVRTC", "/nowhere");
    set("HEDDLE_CACHE", scratch.path("empty"));
  }
  Outcome run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"generate", kStory, "--prompt", "27 + 45 =", "--program", file});
    return run_program({.args = flags});
  }
  // The artefact is as compiled, except for what `change` does to it.
  void expect_refused(const std::function<void(Artefact&)>& change, const std::string& words,
                      const std::vector<std::string>& flags = {}) {
    Artefact artefact = load_artefact(file);
    change(artefact);
    save_artefact(artefact, file);
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    expect_in(outcome.err, words);
  }

  Scratch scratch;
  const std::string file = scratch.path("story.heddle");
};

TEST_F(AheadOfTime, ProgramsNeedNoCompiler) {
  compile({}, file);
  compile({}, scratch.path("again"));
  EXPECT_TRUE(read_file(scratch.path("again")) == read_file(file)) << "the same bytes each time";
  take_compiler_away();
  expect_in(output({"env"}), "nvrtc       none");
  for (const std::string executor : {"megakernel", "launches"}) {
    const Outcome outcome = run({"--executor", executor, "--verbose"});
    EXPECT_EQ(outcome.out, " 72.\n") << outcome.err;
    expect_in(outcome.err, "[executor: " + executor + " on emulated GPU]");
  }
  EXPECT_EQ(run({}).out, " 72.\n") << "the executor is the program's";
  EXPECT_EQ(run({"--executor", "threads"}).out, " 72.\n") << "a CPU runs programs of a GPU too";
  EXPECT_FALSE(std::filesystem::exists(scratch.path("empty"))) << "something was compiled";
}

TEST_F(AheadOfTime, ProgramsOfAnotherDeviceAreRefused) {
  compile({}, file);
  expect_refused(
      [](Artefact& artefact) {
        artefact.device = {"h200", "megakernel", "sm_90a", 132};
      },
      "is for 132 multiprocessors and has 4 workers; this device (emulated GPU) has 16");
  expect_refused(
      [](Artefact& artefact) {
        artefact.device = {"a100", "megakernel", "sm_80", 108};
      },
      "is for a100: sm_80, 108 multiprocessors; this device is emulated GPU: sm_90a, 16 multi");
  expect_refused(
      [](Artefact& artefact) {
        artefact.device = {"", "megakernel", "sm_90a", 0}, artefact.code.clear();
      },
      "is not among the 0 pieces of code that were compiled ahead of time");
  expect_refused(
      [](Artefact& artefact) {
        artefact.device = {"", "megakernel", "sm_90a", 16};
      },
      "is for 16 multiprocessors and has 4 workers; this device (small emulated GPU) has 8",
      {"--device", "1"});
  ::unsetenv("LD_LIBRARY_PATH");
  expect_refused([](Artefact&) {}, "there is no GPU that can be used here: ");
}

struct WrongBody {
  const char *header, *from, *to;  // a line of a header, and its replacement on the device
  const char* node;                // the first wrong node
  const char* tokens = "5,6,7";    // with one row, columns pass through registers
};

constexpr WrongBody kWrong[] = {
    {"embedding/embedding.cuh", "in.load(i) * a.scale", "in.load(i) * a.scale * 1.5f", "embedding"},
    {"rope/rope_table.cuh", "cosine * a.scale, sine", "cosine * a.scale, 0.5f * sine", "rope.table"},
    {"rms_norm/rms_norm.sm80.cuh", "squares / float(columns)", "squares / float(columns + 99)",
     "layers.0.qkv"},
    {"rope/rope_rows.cuh", "x.second * angle.first + x.first", "x.second * angle.first - x.first",
     "layers.0.qkv"},
    {"kv_append/kv_append.sm80.cuh", "from(inside).store(i, value)", "from(inside).store(i, value * 0.5f)",
     "layers.0.qkv"},
    {"linear/linear.cuh", "return fragment.row(m).load(i)", "return fragment.row(0).load(i)", "layers.0.qkv"},
    {"attention/attention.cuh", "in.load(i) * a.scale", "in.load(i) * a.scale * 2", "layers.0.attention"},
    {"attention/attention_merge.sm80.cuh", "value[i] * scale, value[i + 1]", "value[i + 1] * scale, value[i]",
     "layers.0.o"},
    {"add/add.cuh", "x + operand", "x - operand", "layers.0.o"},
    {"activation/gated_activation.cuh", "x.first) * x.second", "x.second) * x.first", "layers.0.gate_up"},
    {"gather_rows/gather_rows.cuh", "block.row(a.x, wanted[row])", "block.row(a.x, wanted[row] - 1)",
     "wanted"},
    {"rope/rope_rows.cuh", "{x.first * angle.first", "{-x.first * angle.first", "layers.0.qkv", "5"},
    {"kv_append/kv_append.sm80.cuh", "set_here(i % head_dim, value)", "set_here(i % head_dim, value * 0.5f)",
     "layers.0.qkv", "5"},
    {"linear/linear.sm80.cuh", "chain.columns(block, t[0], columns, ahead)",
     "columns.value[0] *= 2, chain.columns(block, t[0], columns, ahead)", "layers.0.qkv", "5"},
    {"add/add.cuh", "x + operand", "x - operand", "layers.0.o", "5"},
    {"activation/gated_activation.cuh", "x.first) * x.second", "x.second) * x.first", "layers.0.gate_up",
     "5"},
};

// Makes a folder with the wrong body.
std::string plant(const WrongBody& wrong, const std::string& folder) {
  const std::string header = std::string("/heddle/ops/") + wrong.header;
  std::string text = read_file(kTree + header);
  const size_t at = text.find(wrong.from);
  EXPECT_NE(at, std::string::npos) << wrong.header << " has no " << wrong.from;
  if (at != std::string::npos) text.replace(at, std::string(wrong.from).size(), wrong.to);
  std::filesystem::create_directories(std::filesystem::path(folder + header).parent_path());
  write_file(folder + header, text);
  return folder;
}

TEST_F(OnGpu, DiffFindsTheFirstWrongOp) {
  // Without kernels that were compiled before.
  Scratch cache;
  if (!std::getenv("HEDDLE_CACHE")) set("HEDDLE_CACHE", cache.path("cache"));
  // Each needs a kernel of its own: the emulated GPU has six of them, a GPU all.
  const size_t most = is_carried() ? std::size(kWrong) : 6;
  for (const WrongBody& wrong : chosen(std::vector(std::begin(kWrong), std::end(kWrong)), most)) {
    Scratch scratch;
    set("HEDDLE_SOURCES", plant(wrong, scratch.path("sources")));
    const Outcome outcome = run_program({.args = {"diff", kExact, "--a", "threads", "--b", "megakernel",
                                                  "--tokens", wrong.tokens, "--workers", "3"}});
    EXPECT_EQ(outcome.code, 1) << wrong.header << "\n" << outcome.out << outcome.err;
    expect_in(outcome.err, fmt::format("[diff] {} is the first op out of bounds", wrong.node));
    expect_in(outcome.err, "1 device sources of ");
  }
}

}  // namespace
}  // namespace heddle
