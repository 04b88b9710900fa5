#include "heddle/model/hf/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/hf/caller_tensors.h"
#include "heddle/model/hf/safetensors.h"

namespace heddle {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Writes a file of f32 tensors of shape [n].
  void write(const std::string& file, const std::vector<std::string>& names) const {
    std::vector<TensorView> tensors;
    for (const auto& name : names)
      tensors.push_back({name, DType::kF32, {int64_t(values.size())}, std::as_bytes(std::span(values)), ""});
    write_safetensors(folder + "/" + file, tensors);
  }
  void write_index(const std::string& text) const {
    write_file(folder + "/model.safetensors.index.json", text);
  }

  std::string folder = testing::TempDir() + "heddle_checkpoint_test";
  std::vector<float> values = {1.0f, 2.0f, 3.0f};
};

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_FAILS(action, part) \
  EXPECT_NE(message([&] { action; }).find(part), std::string::npos) << message([&] { action; })

// Memory of a device that nobody may read.
class Unread : public MemorySpace {
 public:
  std::byte* allocate(size_t) override { return nullptr; }
  void release(std::byte*) override {}
  void write(std::byte*, const void*, size_t) override {}
  void read(void*, const std::byte*, size_t) override { FAIL() << "a tensor was read"; }
  i64 available() const override { return 0; }
};

TEST(CheckpointOfMemory, OneMemoryIsTheSameWithoutALookAtIt) {
  Unread space;
  const std::byte memory[12] = {};
  const auto tensor = [&](const char* name) {
    return CallerTensor{.name = name, .shape = {3}, .data = memory, .space = &space};
  };
  const std::vector<CallerTensor> tied = {tensor("head"), tensor("embedding")};
  const Checkpoint given(std::make_shared<CallerTensors>(tied, "given"), "{}");
  EXPECT_TRUE(given.same("head", "embedding"));
}

TEST_F(CheckpointTest, FingerprintTellsCheckpointsApart) {
  const auto fingerprint = [&] { return Checkpoint(folder).fingerprint(); };
  write_file(folder + "/config.json", "{}");
  write("model.safetensors", {"a", "b"});
  const std::string first = fingerprint();
  EXPECT_EQ(fingerprint(), first);
  write_file(folder + "/config.json", "{ }");
  EXPECT_NE(fingerprint(), first) << "another configuration";
  write_file(folder + "/config.json", "{}");
  values[2] = 4.0f;
  write("model.safetensors", {"a", "b"});
  EXPECT_NE(fingerprint(), first) << "other values";
  values[2] = 3.0f;
  write("model.safetensors", {"a", "c"});
  EXPECT_NE(fingerprint(), first) << "other names";
  std::filesystem::remove(folder + "/model.safetensors");
  write("x.safetensors", {"a"});
  write("y.safetensors", {"b"});
  write_index(R"({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}})");
  EXPECT_EQ(fingerprint(), first) << "in how many files it lies says nothing";
}

TEST_F(CheckpointTest, ReadsOneFile) {
  write("model.safetensors", {"a", "b"});
  Checkpoint checkpoint(folder);
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(checkpoint.bytes(), 24u);
  EXPECT_EQ(checkpoint.weight("a").data.size(), 12u);
  checkpoint.forget("a");
  EXPECT_EQ(reinterpret_cast<const float*>(checkpoint.weight("a").data.data())[2], 3.0f);
}

TEST_F(CheckpointTest, ReadsShards) {
  write("one.safetensors", {"a"});
  write("two.safetensors", {"b", "c"});
  write_index(R"({"metadata":{"total_size":36},"weight_map":
      {"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"}})");
  Checkpoint checkpoint(folder);
  EXPECT_EQ(checkpoint.names().size(), 3u);
  EXPECT_NE(checkpoint.weight("a").file.find("one.safetensors"), std::string::npos);
  EXPECT_NE(checkpoint.weight("c").file.find("two.safetensors"), std::string::npos);
}

TEST_F(CheckpointTest, RefusesFoldersWithoutWeights) {
  EXPECT_FAILS(Checkpoint(folder + "/none"), "is not a folder");
  EXPECT_FAILS(Checkpoint{folder}, "holds no weights: neither model.safetensors nor");
  write_file(folder + "/model.safetensors", "");
  EXPECT_FAILS(Checkpoint{folder}, "0 bytes");
}

TEST_F(CheckpointTest, RefusesBadIndexes) {
  write("one.safetensors", {"a"});
  auto refused = [&](const char* text, const char* part) {
    write_index(text);
    EXPECT_FAILS(Checkpoint{folder}, part);
  };
  refused("", "not valid JSON");
  refused("{}", "weight_map");
  refused(R"({"weight_map":[]})", "weight_map");
  refused(R"({"weight_map":{"a":7}})", "without folders");
  refused(R"({"weight_map":{"a":"../one.safetensors"}})", "without folders");
  refused(R"({"weight_map":{"a":"/etc/passwd"}})", "without folders");
  refused(R"({"weight_map":{"a":".."}})", "without folders");
  refused(R"({"weight_map":{"a":"one.safetensors\u0000"}})", "without folders");
  refused(R"({"weight_map":{"a":"gone.safetensors","b":"one.safetensors"}})",
          "gone.safetensors] is missing; model.safetensors.index.json names it, and 1 of its 2 files");
}

TEST_F(CheckpointTest, AnIndexThatIsStaleMattersOnlyForTensorsThatAreAskedFor) {
  write("one.safetensors", {"a", "b", "d", "e"});
  write("two.safetensors", {"c", "d", "e"});
  write_index(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors","d":"two.safetensors",
                                "gone":"one.safetensors"}})");
  const Checkpoint checkpoint(folder);
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(checkpoint.weight("b").data.size(), 12u) << "which the index does not name";
  EXPECT_FALSE(checkpoint.is_listed("b"));
  EXPECT_TRUE(checkpoint.is_listed("a"));
  EXPECT_NE(checkpoint.weight("d").file.find("two"), std::string::npos);
  EXPECT_FALSE(checkpoint.has("gone"));
  EXPECT_FAILS(checkpoint.weight("gone"), "one.safetensors] has no tensor \"gone\", which the index says");
  EXPECT_FAILS(checkpoint.weight("e"), "both hold the tensor \"e\"");
}

TEST_F(CheckpointTest, ShardsWithoutTheirIndexAreNamed) {
  for (const auto& [file, index] :
       {std::pair{"model-00002-of-00002.safetensors",
                  "holds model-00002-of-00002.safetensors but no model.safetensors.index.json"},
        {"pytorch_model-00001-of-00003.bin", "no pytorch_model.bin.index.json"}}) {
    write_file(folder + "/" + file, "");
    EXPECT_FAILS(Checkpoint{folder}, index);
    std::filesystem::remove(folder + "/" + file);
  }
}

TEST_F(CheckpointTest, RoundsDoubles) {
  const std::string header = R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
  const std::vector<double> doubles = {0.1, -1e300};
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(doubles.data()), 16);
  write_file(folder + "/model.safetensors", bytes);
  Checkpoint checkpoint(folder);
  EXPECT_TRUE(checkpoint.is_rounded("a"));
  for (int i = 0; i < 2; ++i) {  // again after it was forgotten
    const TensorView view = checkpoint.weight("a");
    EXPECT_EQ(view.dtype, DType::kF32);
    EXPECT_EQ(view.shape, std::vector<int64_t>{2});
    const auto* rounded = reinterpret_cast<const float*>(view.data.data());
    EXPECT_EQ(rounded[0], 0.1f);
    EXPECT_TRUE(std::isinf(rounded[1]));
    checkpoint.forget("a");
  }
}

TEST_F(CheckpointTest, ExpandsMxfp4Exactly) {
  std::vector<uint8_t> blocks(2 * 16), scales = {127, 124};
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = uint8_t(i % 16 * 0x11);  // both codes are i % 16
  const auto bytes = [](const std::vector<uint8_t>& v) { return std::as_bytes(std::span(v)); };
  write_safetensors(folder + "/model.safetensors",
                    {{"w_blocks", DType::kU8, {1, 2, 1, 16}, bytes(blocks), ""},
                     {"w_scales", DType::kU8, {1, 2, 1}, bytes(scales), ""},
                     {"v_blocks", DType::kU8, {1, 16}, bytes(blocks).first(16), ""}});
  Checkpoint checkpoint(folder);
  const TensorView view = checkpoint.weight("w_blocks");
  EXPECT_EQ(view.dtype, DType::kBf16);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{1, 2, 32}));
  const std::vector<double> codes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (size_t i = 0; i < 64; ++i) {
    const double value = codes[i / 2 % 8] * (i / 2 % 16 < 8 ? 1 : -1) * (i < 32 ? 1 : 0.125);
    EXPECT_EQ(load_number(DType::kBf16, view.data.data() + 2 * i), value) << i;
  }
  EXPECT_FAILS(checkpoint.weight("v_blocks"), "\"v_blocks\" holds U8");
}

// Scales of all, of rows, and of blocks of 4 x 3, whose last ones are cut.
TEST_F(CheckpointTest, ExpandsFp8WithItsScales) {
  const std::vector<float> scales = {0.3f, 7.0f, 0.011f, 1.0f, 5.5f, 0.25f, 3.1f};
  std::vector<uint8_t> codes(7 * 5);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = uint8_t(i * 7 % 0x7f + (i % 2 == 0 ? 0 : 0x80));
  using Shape = std::vector<int64_t>;
  const auto write_scales = [&](const Shape& shape, const std::string& end) {
    size_t count = 1;
    for (const int64_t dim : shape) count *= size_t(dim);
    write_safetensors(folder + "/model.safetensors",
                      {{"w", DType::kF8E4M3, {7, 5}, std::as_bytes(std::span(codes)), ""},
                       {"w" + end, DType::kF32, shape, std::as_bytes(std::span(scales).first(count)), ""}});
  };
  const auto expect = [&](const Shape& shape, const std::string& end, auto scale_of) {
    write_scales(shape, end);
    Checkpoint checkpoint(folder);
    checkpoint.set_code_format({4, 3});
    EXPECT_TRUE(checkpoint.is_fp8("w"));
    EXPECT_EQ(checkpoint.scales_of("w"), "w" + end);
    const TensorView view = checkpoint.weight("w");
    EXPECT_EQ(view.dtype, DType::kBf16);
    EXPECT_EQ(view.shape, (Shape{7, 5}));
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto code = float(load_number(DType::kF8E4M3, reinterpret_cast<const std::byte*>(&codes[i])));
      EXPECT_EQ(float(load_number(DType::kBf16, view.data.data() + 2 * i)),
                round_to(DType::kBf16, code * scales[scale_of(i / 5, i % 5)]))
          << end << " " << i;
    }
  };
  // Two matrices, of which the second has the codes and the scales of the first in reverse, give what each gives alone.
  const auto expect_stack = [&](const Shape& shape) {
    std::vector<uint8_t> both(codes);
    both.insert(both.end(), codes.rbegin(), codes.rend());
    size_t count = 1;
    for (const int64_t dim : shape) count *= size_t(dim);
    std::vector<float> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = 0.1f + 0.37f * float(i);
    const Shape each(shape.begin() + 1, shape.end());
    const auto bf16_of = [&](const Shape& of_codes, std::span<const uint8_t> some, const Shape& of_scales,
                             std::span<const float> their) {
      write_safetensors(folder + "/model.safetensors",
                        {{"w", DType::kF8E4M3, of_codes, std::as_bytes(some), ""},
                         {"w_scale_inv", DType::kF32, of_scales, std::as_bytes(their), ""}});
      Checkpoint checkpoint(folder);
      checkpoint.set_code_format({4, 3});
      const TensorView view = checkpoint.weight("w");
      return std::vector<std::byte>(view.data.begin(), view.data.end());
    };
    const std::span<const uint8_t> some(both);
    const std::span<const float> their(all);
    std::vector<std::byte> one = bf16_of({7, 5}, some.first(35), each, their.first(count / 2));
    const std::vector<std::byte> two = bf16_of({7, 5}, some.last(35), each, their.last(count / 2));
    one.insert(one.end(), two.begin(), two.end());
    EXPECT_EQ(bf16_of({2, 7, 5}, some, shape, their), one) << shape_text(shape);
  };
  for (const Shape& one : {Shape{}, {1}, {1, 1}})
    expect(one, "_scale", [](size_t, size_t) { return size_t(0); });
  for (const Shape& rows : {Shape{7}, {7, 1}}) expect(rows, "_scale", [](size_t row, size_t) { return row; });
  expect({2, 2}, "_scale_inv", [](size_t row, size_t col) { return row / 4 * 2 + col / 3; });
  for (const Shape& stacked : {Shape{2}, {2, 1, 1}, {2, 7}, {2, 7, 1}, {2, 2, 2}}) expect_stack(stacked);
  write_scales({2, 3}, "_scale_inv");
  EXPECT_FAILS(Checkpoint(folder).weight("w"), "without scales that fit");
}

TEST_F(CheckpointTest, GivesFloatsOnly) {
  const std::vector<int32_t> numbers = {1};
  write_safetensors(folder + "/model.safetensors",
                    {{"a", DType::kI32, {1}, std::as_bytes(std::span(numbers)), ""}});
  Checkpoint checkpoint(folder);
  EXPECT_FAILS(checkpoint.weight("b"), "has no tensor \"b\"");
  EXPECT_FAILS(checkpoint.weight("a"), "\"a\" holds I32; a weight must be");
}

}  // namespace
}  // namespace heddle
