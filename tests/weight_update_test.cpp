// Models over a caller's tensors, and new weights for an engine: the same bits as from a folder.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/caller_tensors.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

const EngineOptions kOptions{.workers = 2, .threads = 1, .max_context = 96, .all_logits = true};

// Memory whose addresses the host cannot follow.
class FarSpace : public MemorySpace {
 public:
  static std::byte* far(const void* near) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<size_t>(near) ^ kFar);
  }
  static const std::byte* near(const std::byte* address) {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<size_t>(address) ^ kFar);
  }
  std::byte* allocate(size_t) override { return nullptr; }
  void release(std::byte*) override {}
  void write(std::byte*, const void*, size_t) override {}
  void read(void* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, near(from), bytes);
    ++reads;
  }
  i64 available() const override { return -1; }

  int reads = 0;

 private:
  static constexpr size_t kFar = size_t{1} << 62;
};

// The tensors of a checkpoint, in memory that a test may write.
struct Held {
  std::string config;
  std::map<std::string, std::vector<std::byte>> bytes;
  std::vector<CallerTensor> tensors;

  Held(const Held&) = delete;  // its tensors lie in its bytes
  explicit Held(const std::string& folder, bool reversed = false)
      : config(read_file(std::filesystem::path(folder) / "config.json")) {
    const Checkpoint checkpoint(folder);
    for (const std::string& name : checkpoint.names()) {
      const TensorView view = checkpoint.weight(name);
      bytes[name].assign(view.data.begin(), view.data.end());
      tensors.push_back({.name = name, .dtype = view.dtype, .shape = view.shape, .data = bytes[name].data()});
    }
    if (reversed) reverse();
  }

  // Other numbers: the elements of each tensor in the opposite order.
  void reverse() {
    for (const CallerTensor& tensor : tensors) {
      std::vector<std::byte>& memory = bytes[tensor.name];
      std::ranges::reverse(memory);
      const size_t size = size_t(size_of(tensor.dtype));
      for (size_t at = 0; at < memory.size(); at += size)
        std::reverse(memory.begin() + ptrdiff_t(at), memory.begin() + ptrdiff_t(at + size));
    }
  }

  CallerTensor& tensor(const std::string& name) {
    return *std::ranges::find(tensors, name, &CallerTensor::name);
  }
  std::shared_ptr<CallerTensors> given() const { return std::make_shared<CallerTensors>(tensors, "given"); }
  std::unique_ptr<TensorModel> model() const { return open_model(config, given()); }
};

std::vector<float> logits(Engine& engine, const Golden& golden) {
  return logits_of(engine, golden.tokens, 64);
}

std::vector<float> logits(const Held& held, const Golden& golden) {
  Engine engine(held.model(), kOptions);
  return logits(engine, golden);
}

void update(Engine& engine, const TensorModel& model, std::vector<CallerTensor> tensors) {
  const auto values = model.replacing(std::make_shared<CallerTensors>(std::move(tensors), "update"));
  engine.update_weights(*values);
}

class WeightUpdate : public testing::TestWithParam<const char*> {};

TEST_P(WeightUpdate, ModelOfMemoryIsThatOfItsFolder) {
  const Golden golden = load_golden(GetParam());
  Engine folder(open_model(golden.folder), kOptions);
  EXPECT_EQ(logits(Held(golden.folder), golden), logits(folder, golden));
}

TEST_P(WeightUpdate, NewWeightsAreThoseOfAModelThatBeginsWithThem) {
  const Golden golden = load_golden(GetParam());
  Held old(golden.folder);
  const Held other(golden.folder, true);
  const std::shared_ptr<const TensorModel> model = old.model();
  const std::vector<float> before = logits(old, golden), after = logits(other, golden);
  ASSERT_NE(before, after);
  Engine engine(model, kOptions);
  update(engine, *model, other.tensors);
  EXPECT_EQ(logits(engine, golden), after) << "all at once";
  // Each tensor by itself, whatever else is packed into the same panels. A tied head comes with its embedding.
  for (const CallerTensor& tensor : old.tensors) {
    std::vector<CallerTensor> part{tensor};
    if (tensor.name == "lm_head.weight") part = {tensor, old.tensor("model.embed_tokens.weight")};
    update(engine, *model, part);
  }
  EXPECT_EQ(logits(engine, golden), before) << "one by one";
}

INSTANTIATE_TEST_SUITE_P(Models, WeightUpdate,
                         testing::Values("llama2-tiny", "llama-bias", "llama-f16", "gpt2-tiny", "gemma-bf16",
                                         "gpt_neox-tiny", "mixtral-bf16", "deepseek_v3-tiny"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

struct Loaded {
  Golden golden = load_golden("llama2-tiny");
  Held held{golden.folder};
  std::shared_ptr<const TensorModel> model = held.model();
  Engine engine{model, kOptions};
  std::vector<float> before = logits(engine, golden);

  void expect_refused(std::vector<CallerTensor> tensors, const std::string& said) {
    try {
      update(engine, *model, std::move(tensors));
      ADD_FAILURE() << "was not refused: " << said;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
    EXPECT_EQ(logits(engine, golden), before) << said;
  }
};

constexpr const char* kNorm = "model.norm.weight";
constexpr const char* kDown = "model.layers.0.mlp.down_proj.weight";

TEST(WeightUpdates, RefusedOnesChangeNothing) {
  Loaded loaded;
  const Held other(loaded.golden.folder, true);
  const auto with = [&](const auto& change) {
    std::vector<CallerTensor> tensors = other.tensors;
    change(*std::ranges::find(tensors, kDown, &CallerTensor::name));
    return tensors;
  };
  loaded.expect_refused(with([](CallerTensor& tensor) { tensor.name = "model.layers.0.mlp.down.weight"; }),
                        "reads no tensor \"model.layers.0.mlp.down.weight\"; did you mean");
  loaded.expect_refused(with([](CallerTensor& tensor) { std::swap(tensor.shape[0], tensor.shape[1]); }),
                        "as it was loaded");
  loaded.expect_refused(with([](CallerTensor& tensor) { tensor.dtype = DType::kBf16; }), "is bf16 [");
  loaded.expect_refused(with([](CallerTensor& tensor) { tensor.name = kNorm; }), "is given twice");
  Held broken(loaded.golden.folder, true);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(broken.bytes.at(kDown).data() + 4 * 70, &nan, sizeof nan);
  loaded.expect_refused(broken.tensors, "is nan; weights must be finite");
}

TEST(WeightUpdates, TensorsMayLieAnyhow) {
  Loaded loaded;
  // Columns in rows, a part of a wider tensor, an odd address, and memory that is not the host's.
  Held held(loaded.golden.folder);
  CallerTensor& turned = held.tensor(kDown);
  const int64_t rows = turned.shape[0], cols = turned.shape[1];
  std::vector<float> memory(size_t(rows * cols)), wide(size_t(3 * rows));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      std::memcpy(&memory[size_t(c * rows + r)], turned.data + 4 * (r * cols + c), 4);
  turned.data = reinterpret_cast<const std::byte*>(memory.data()), turned.strides = {1, rows};
  CallerTensor& every_third = held.tensor(kNorm);
  for (int64_t i = 0; i < every_third.shape[0]; ++i)
    std::memcpy(&wide[size_t(3 * i)], every_third.data + 4 * i, 4);
  every_third.data = reinterpret_cast<const std::byte*>(wide.data()), every_third.strides = {3};
  CallerTensor& odd = held.tensor("model.layers.0.input_layernorm.weight");
  std::vector<std::byte>& bytes = held.bytes.at(odd.name);
  bytes.insert(bytes.begin(), std::byte{});
  odd.data = bytes.data() + 1;
  FarSpace space;
  for (const char* name : {"model.layers.1.mlp.up_proj.weight", kDown}) {
    CallerTensor& far = held.tensor(name);
    far.data = FarSpace::far(far.data), far.space = &space;
  }
  EXPECT_EQ(logits(held, loaded.golden), loaded.before);
  EXPECT_GT(space.reads, 0);
  update(loaded.engine, *loaded.model, Held(loaded.golden.folder, true).tensors);
  ASSERT_NE(logits(loaded.engine, loaded.golden), loaded.before);
  update(loaded.engine, *loaded.model, held.tensors);
  EXPECT_EQ(logits(loaded.engine, loaded.golden), loaded.before);
}

TEST(WeightUpdates, MemoryIsReadWhileTheEngineIsMadeAndNotAfter) {
  const Golden golden = load_golden("llama2-tiny");
  const Held held(golden.folder);
  const auto given = held.given();
  Engine engine(open_model(held.config, given), kOptions);
  given->close();
  EXPECT_EQ(logits(engine, golden).size(), golden.logits.size());
  EXPECT_THROW((void)given->bytes(kNorm), Error);
}

TEST(WeightUpdates, KeysAndValuesOfOldWeightsAreNotFound) {
  Loaded loaded;
  const std::span<const i32> prompt = loaded.golden.tokens;
  ASSERT_GT(loaded.engine.known(prompt), 0);
  const SequenceId open = loaded.engine.open({});
  EXPECT_THROW(update(loaded.engine, *loaded.model, loaded.held.tensors), Error) << "it has old keys";
  EXPECT_GT(loaded.engine.known(prompt), 0);
  loaded.engine.close(open);
  update(loaded.engine, *loaded.model, loaded.held.tensors);
  EXPECT_EQ(loaded.engine.known(prompt), 0);
  EXPECT_EQ(logits(loaded.engine, loaded.golden), loaded.before);
  EXPECT_GT(loaded.engine.known(prompt), 0) << "of the new weights";
}

// Fails at a tensor once weights change.
class Failing : public WeightValues {
 public:
  explicit Failing(const WeightValues& of) : of_(of) {}
  SourceData source(const std::string& tensor) const override {
    if (changing && tensor == kNorm) fail(ErrorCode::kDevice, "[test] the device is gone");
    return of_.source(tensor);
  }
  void forget(const std::string& tensor) const override { of_.forget(tensor); }
  bool changing = false;

 private:
  const WeightValues& of_;
};

TEST(WeightUpdates, HalfAnUpdateIsNotAnswered) {
  Loaded loaded;
  const auto values = loaded.model->replacing(loaded.held.given());
  Failing failing(*values);
  EXPECT_THROW(loaded.engine.update_weights(failing, [&] { failing.changing = true; }), Error);
  EXPECT_THROW(logits(loaded.engine, loaded.golden), Error);
  Engine& engine = loaded.engine;
  engine.close(0);  // which the failed step left open
  update(engine, *loaded.model, {loaded.held.tensor(kNorm)});
  EXPECT_THROW(logits(engine, loaded.golden), Error) << "a part of the weights";
  engine.close(0);
  update(engine, *loaded.model, loaded.held.tensors);
  EXPECT_EQ(logits(engine, loaded.golden), loaded.before);
}

}  // namespace
}  // namespace heddle
