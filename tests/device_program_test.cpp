// The decode programs of full-size models for the workers of a GPU: no weights and no GPU are needed to build and
// to prove them. A small one of them runs, with stale reads.
#include <cctype>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/stopwatch.h"
#include "heddle/engine/planner.h"
#include "heddle/ir/check.h"
#include "heddle/ir/print.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

#if defined(NDEBUG) && !defined(HEDDLE_DEBUG_CHECKS) && !defined(HEDDLE_SANITIZED)
constexpr int kTries = 20;
#else
constexpr int kTries = 1;  // no bound on time
#endif
constexpr double kLimitMs = 100;
// Three seeds are three interleavings; the last one's is adversarial.
#ifdef HEDDLE_SANITIZED
constexpr u64 kFirstSeed = 3;
#else
constexpr u64 kFirstSeed = 1;
#endif

constexpr const char* kLlama1B = R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
  "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
  "rope_theta": 500000.0, "hidden_act": "silu", "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})";
constexpr const char* kLlama8B = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
  "rope_theta": 500000.0, "hidden_act": "silu", "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})";

constexpr const char* kQwen8B = R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
  "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
  "rope_theta": 1000000, "hidden_act": "silu"})";
constexpr const char* kGemma2B = R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216,
  "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
  "vocab_size": 256000, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "sliding_window": 4096,
  "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh"})";
// The shapes of DeepSeek V2 Lite, and of the 128 heads of V3, with few layers and no experts.
constexpr const char* kDeepseekLite = R"({"model_type": "deepseek_v2", "hidden_size": 2048,
  "intermediate_size": 10944, "num_hidden_layers": 12, "first_k_dense_replace": 12, "num_attention_heads": 16,
  "vocab_size": 102400, "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "q_lora_rank": null,
  "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})";
constexpr const char* kDeepseekV3 = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "intermediate_size": 18432, "num_hidden_layers": 3, "num_attention_heads": 128, "vocab_size": 129280,
  "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})";

// The shapes of Qwen3-30B-A3B and Mixtral-8x7B, with few layers.
constexpr const char* kQwen30B =
    R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
  "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true,
  "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
  "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000})";
constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
  "num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 8, "num_attention_heads": 32,
  "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
  "rope_theta": 1000000})";

// A model without weights.
class Shapes : public Model {
 public:
  explicit Shapes(const char* config)
      : definition_(define_model(Config::parse(config, "config.json"),
                                 {.has = [](const std::string&) { return true; },
                                  .dtype = [](const std::string&) { return DType::kBf16; }})) {}
  const ModelInfo& info() const override { return definition_.info; }
  ModelGraph graph(const GraphRequest& request) const override {
    Builder builder(request, definition_.info);
    definition_.build(builder);
    return builder.take();
  }
  SourceData source(const std::string& tensor) const override {
    fail(ErrorCode::kInternal, "[{}] these are shapes without weights", tensor);
  }
  std::string fingerprint() const override { return ""; }
  void forget(const std::string&) const override {}

 private:
  Definition definition_;
};

struct Built {
  Program program;
  Placement placement;
};

Built build(const std::shared_ptr<const Model>& model, const Target& target, i32 rows,
            const CompileOptions& options = {}) {
  const Planner planner(model, target, {.pages_per_sequence = 128, .num_pages = 128 * rows}, options);
  return {planner.program(rows, rows), planner.placement()};
}

std::map<EdgeKind, int> edges_of(const Program& program) {
  std::map<EdgeKind, int> count;
  for (const auto& stream : program.workers)
    for (const Instruction& instruction : stream)
      for (int i = 0; i < kMaxWaits; ++i)
        if (instruction.waits[i].counter != kNoCounter) ++count[instruction.wait_kind(i)];
  return count;
}

struct Shape {
  const char* name;
  const char* config;
  i32 workers;
  double check_ms = kLimitMs;  // at most
};

// Cells of what experts share are many: up to 15 ms a layer of Qwen3, 6 of Mixtral (EPYC, 25 November 2026).
constexpr double kMixtureMs = 300;
constexpr double kManyRowsMs = 2500;

class DecodePrograms : public testing::TestWithParam<Shape> {};

TEST_P(DecodePrograms, AreBuiltAndProved) {
  const auto& [name, config, workers, check_limit_ms] = GetParam();
  const auto model = std::make_shared<Shapes>(config);
  Built built;
  CheckReport report;
  const double build_ms = lowest_ms(kTries, kLimitMs, [&] { built = build(model, gpu_target(workers), 1); });
  const double check_ms = lowest_ms(kTries, check_limit_ms, [&] { report = check(built.program); });
  for (const Fault& fault : report.faults) ADD_FAILURE() << heddle::name(fault.kind) << ": " << fault.message;
  auto edges = edges_of(built.program);
  fmt::print(
      "{}, {} workers: {} instructions, waits: {} in an SM, {} counted; built in {:.1f} ms, proved in {:.1f} "
      "ms, "
      "bytes within {:.2f} %\n",
      name, workers, report.instructions, edges[EdgeKind::kInSm], edges[EdgeKind::kCounted], build_ms,
      check_ms, 100 * built.placement.imbalance);
  EXPECT_GT(edges[EdgeKind::kInSm], 0);
  EXPECT_GT(edges[EdgeKind::kCounted], 0);
  EXPECT_LE(built.placement.imbalance, 0.02);
  if (kTries > 1) {
    EXPECT_LE(build_ms, kLimitMs);
    EXPECT_LE(check_ms, check_limit_ms);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DecodePrograms,
    testing::Values(Shape{"Llama-3.2-1B", kLlama1B, 132}, Shape{"Llama-3.2-1B", kLlama1B, 120},
                    Shape{"Llama-3.1-8B", kLlama8B, 132}, Shape{"Llama-3.1-8B", kLlama8B, 120},
                    Shape{"Qwen3-8B", kQwen8B, 132}, Shape{"Gemma-2-2B", kGemma2B, 132},
                    Shape{"DeepSeek-V2-Lite", kDeepseekLite, 132},
                    Shape{"DeepSeek-V2-Lite", kDeepseekLite, 120}, Shape{"DeepSeek-V3", kDeepseekV3, 132},
                    Shape{"Qwen3-30B-A3B", kQwen30B, 132, kMixtureMs},
                    Shape{"Qwen3-30B-A3B", kQwen30B, 120, kMixtureMs},
                    Shape{"Mixtral-8x7B", kMixtral, 132, kMixtureMs}),
    [](const auto& test) {
      std::string name = fmt::format("{} on {}", test.param.name, test.param.workers);
      std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
      return name;
    });

// Each tile of attention may write to any row of its heads.
TEST(PrefillPrograms, OfManyRowsAreProvedSoon) {
  std::string config = kLlama8B;
  config.replace(config.find("\"num_hidden_layers\": 32"), 23, "\"num_hidden_layers\": 4");
  const Planner planner(std::make_shared<Shapes>(config.c_str()), gpu_target(132),
                        {.pages_per_sequence = 128, .num_pages = 1024}, {});
  const Program program = planner.program(2048, 256);
  CheckReport report;
  const double check_ms = lowest_ms(kTries, kManyRowsMs, [&] { report = check(program); });
  for (const Fault& fault : report.faults) ADD_FAILURE() << heddle::name(fault.kind) << ": " << fault.message;
  fmt::print(
      "2,048 rows of 256 sequences, four layers of Llama-3.1-8B: {} instructions, proved in {:.0f} ms\n",
      report.instructions, check_ms);
  if (kTries == 1) return;
  EXPECT_LE(check_ms, kManyRowsMs);
}

TEST(DecodePrograms, EverySchedulerIsFast) {
  const auto model = std::make_shared<Shapes>(kLlama8B);
  for (const Scheduler* scheduler : all_schedulers()) {
    Built built;
    const double build_ms = lowest_ms(
        kTries, kLimitMs, [&] { built = build(model, gpu_target(132), 1, {.scheduler = scheduler->name}); });
    const double check_ms =
        lowest_ms(kTries, kLimitMs, [&] { EXPECT_TRUE(check(built.program).ok()) << scheduler->name; });
    fmt::print("Llama-3.1-8B, 132 workers, {}: built in {:.1f} ms, proved in {:.1f} ms\n", scheduler->name,
               build_ms, check_ms);
    if (kTries == 1) continue;
    EXPECT_LE(build_ms, kLimitMs) << scheduler->name;
    EXPECT_LE(check_ms, kLimitMs) << scheduler->name;
  }
}

// Laid out for a GPU's workers, with homes, resident rows and both kinds of edges; f32 travels, so that the sums are
// those of the golden.
EngineOptions device_options(i32 workers, const std::string& executor) {
  EngineOptions options{.executor = executor,
                        .max_context = 96,
                        .max_sequences = 4,
                        .page_size = 16,
                        .split_unit = 8,
                        .all_logits = true};
  options.target = gpu_target(workers);
  options.target->narrow_travel = false;
  return options;
}

TEST(DevicePrograms, RunWithStaleReads) {
  for (const std::string name : {"llama2-tiny", "gpt2-tiny", "gemma2-tiny", "gemma3-tiny", "deepseek_v2-tiny",
                                 "deepseek_v3-tiny", "mixtral-tiny", "qwen3_moe-tiny", "deepseek_v3-moe"}) {
    const Golden golden = load_golden(name);
    const auto tokens = std::span(golden.tokens).first(20);
    for (const i32 workers : {7, 12})
      for (u64 seed = kFirstSeed; seed <= 3; ++seed)
        for (size_t chunk : {1, 7, 20}) {
          EngineOptions options = device_options(workers, "reference");
          options.run = {.seed = seed, .adversarial = seed == 3, .stale_reads = true};
          const auto engine = golden_engine(name, options);
          const auto logits = logits_of(*engine, tokens, chunk);
          EXPECT_LE(largest_difference(logits, std::span(golden.logits).first(logits.size())), 5e-5)
              << name << ", " << workers << " workers, seed " << seed << ", chunks of " << chunk;
        }
  }
}

TEST(DevicePrograms, RunOnThreads) {
  const Golden golden = load_golden("llama3-tiny");
  EngineOptions options = device_options(132, "threads");
  const auto all_f32 = logits_of(*golden_engine("llama3-tiny", options), golden.tokens, 1);
  options.target->narrow_travel = true;
  const auto bf16 = logits_of(*golden_engine("llama3-tiny", options), golden.tokens, 1);
  const auto expected = std::span(golden.logits).first(all_f32.size());
  EXPECT_LE(largest_difference(all_f32, expected), golden.bf16_error);
  EXPECT_LE(largest_difference(bf16, expected), 2 * golden.bf16_error);
}

// Vectors share memory: the rounded copy of a sum may lie where an input lay.
TEST(DevicePrograms, RunInSharedMemory) {
  for (const std::string name :
       {"llama2-tiny", "gemma2-tiny", "gemma3-tiny", "deepseek_v3-tiny", "qwen3_moe-tiny"})
    for (bool fuse : {true, false}) {
      const Golden golden = load_golden(name);
      EngineOptions options = device_options(12, "threads");
      options.passes.fuse_epilogues = fuse;
      const auto logits = logits_of(*golden_engine(name, options), golden.tokens, 1);
      EXPECT_LE(largest_difference(logits, golden.logits), 5e-5) << name << (fuse ? "" : ", not fused");
    }
}

// Each wait of such a program is needed: without it, the program is refused. (An in-SM wait says again what the
// order of its stream says.)
TEST(DevicePrograms, EveryWaitIsNeeded) {
  auto engine = golden_engine("llama2-tiny", device_options(20, "reference"));
  Program program = engine->program(1, 1);
  int dropped = 0, missed = 0;
  for (auto& stream : program.workers)
    for (Instruction& instruction : stream)
      for (int i = 0; i < kMaxWaits; ++i) {
        if (instruction.waits[i].counter == kNoCounter || instruction.wait_kind(i) == EdgeKind::kInSm)
          continue;
        const Wait wait = std::exchange(instruction.waits[i], Wait{});
        ++dropped;
        if (check(program).ok()) {
          ++missed;
          instruction.waits[i] = wait;
          ADD_FAILURE() << program.describe(instruction) << " does not need its "
                        << heddle::name(instruction.wait_kind(i)) << " wait for counter " << wait.counter;
        }
        instruction.waits[i] = wait;
      }
  EXPECT_GT(dropped, 200);
  fmt::print("{} waits dropped, {} not missed\n", dropped, missed);
}

}  // namespace
}  // namespace heddle
