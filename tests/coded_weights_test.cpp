// Weights that a checkpoint stores in codes: kept as such they give the bits of their expansion, in half the memory.
#include "heddle/engine/coded_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/caller_tensors.h"
#include "heddle/ops/linear/linear.h"
#include "tests/support/case_runner.h"
#include "tests/support/golden.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

const std::string kGoldenModels = HEDDLE_SOURCE_DIR "/tests/goldens/models/";

// The rows and columns of a matrix that share a scale; 0: all.
struct Block {
  const char* name;
  i64 rows, cols;
};
constexpr Block kBlocks[] = {{"blocks", 16, 32}, {"odd_blocks", 5, 7}, {"rows", 1, 0}, {"tensors", 0, 0}};

// A golden model whose projections are stored in fp8.
class Fp8Copy {
 public:
  Fp8Copy(const std::string& golden, const Block& block) : golden_(load_golden(golden)), block_(block) {
    scratch_.link_model(kGoldenModels + golden, "model");
    edit_json(folder() + "/config.json", [&](Json& json) {
      Json quantised = Json::object({{"quant_method", "fp8"}});
      if (block.cols > 0) quantised["weight_block_size"] = Json::array({block.rows, block.cols});
      json["quantization_config"] = std::move(quantised);
    });
    change([&](EditableTensors& tensors) {
      EditableTensors scales;
      for (auto& [name, tensor] : tensors)
        if (name.find("_proj.weight") != name.npos) scales[name + "_scale_inv"] = code(tensor);
      tensors.merge(scales);
    });
  }

  std::string folder() const { return scratch_.path("model"); }
  void change(const std::function<void(EditableTensors&)>& change) const {
    edit_tensors(folder() + "/model.safetensors", change);
  }
  Engine engine(const std::string& executor, const std::string& weights) const {
    return {open_model(folder()),
            {.executor = executor, .workers = 3, .max_sequences = 1, .weights = weights, .all_logits = true}};
  }
  // The logits of a text at once, and of its beginning token by token.
  std::vector<float> logits(Engine& engine) const {
    std::vector<float> all = logits_of(engine, std::span(golden_.tokens).first(9), 9);
    const std::vector<float> single = logits_of(engine, std::span(golden_.tokens).first(2), 1);
    all.insert(all.end(), single.begin(), single.end());
    return all;
  }
  std::vector<float> logits(const std::string& executor, const std::string& weights) const {
    Engine made = engine(executor, weights);
    return logits(made);
  }
  CodedWeights coded(const std::string& weights) const {
    EngineOptions options{.workers = 3, .weights = weights};
    return CodedWeights(make_planner(open_model(folder()), options).graph(1, 1));
  }
  std::string refusal() const {
    try {
      engine("threads", "codes");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  // Makes codes of a matrix, and returns their scales.
  EditableTensor code(EditableTensor& matrix) const {
    const i64 rows = matrix.shape[0], cols = matrix.shape[1];
    const i64 high = block_.rows > 0 ? block_.rows : rows, wide = block_.cols > 0 ? block_.cols : cols;
    const i64 down = (rows + high - 1) / high, across = (cols + wide - 1) / wide;
    EditableTensor scales{DType::kF32, {down, across}, std::vector<std::byte>(size_t(down * across) * 4)};
    EditableTensor codes{DType::kF8E4M3, matrix.shape, std::vector<std::byte>(size_t(rows * cols))};
    for (i64 at = 0; at < rows * cols; ++at) {
      const i64 place = at / cols / high * across + at % cols / wide;
      const float scale = 0.0031f + 0.0013f * float(place % 7);
      store_number(DType::kF32, scales.data.data(), place, double(scale));
      store_number(DType::kF8E4M3, &codes.data[size_t(at)],
                   load_number(matrix.dtype, matrix.data.data(), at) / double(scale));
    }
    matrix = std::move(codes);
    return scales;
  }

  Scratch scratch_;
  Golden golden_;
  Block block_;
};

class CodedWeightsOf : public testing::TestWithParam<std::pair<const char*, Block>> {};

TEST_P(CodedWeightsOf, GiveTheBitsOfTheirExpansion) {
  const auto& [golden, block] = GetParam();
  const Fp8Copy copy(golden, block);
  const std::vector<float> wanted = copy.logits("threads", "floats");
  EXPECT_EQ(copy.logits("threads", "codes"), wanted);
  EXPECT_EQ(copy.logits("threads", ""), wanted);
  EXPECT_EQ(copy.logits("reference", "codes"), copy.logits("reference", "floats"));
}

std::vector<std::pair<const char*, Block>> kinds() {
  std::vector<std::pair<const char*, Block>> all;
  for (const Block& block : kBlocks) all.emplace_back("llama-v4", block);
  for (const char* golden : {"qwen3_moe-bf16", "deepseek_v3-bf16", "mixtral-bf16"})
    all.emplace_back(golden, kBlocks[0]);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, CodedWeightsOf, testing::ValuesIn(kinds()), [](const auto& param) {
  std::string name = fmt::format("{}_{}", param.param.first, param.param.second.name);
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(CodedWeights, TakeHalfTheMemory) {
  const Fp8Copy copy("llama-v4", kBlocks[2]);
  const CodedWeights codes = copy.coded("codes"), floats = copy.coded("floats");
  ASSERT_TRUE(codes.kept.contains("f8e4m3"));
  EXPECT_TRUE(codes.expanded.empty() && codes.note().empty()) << codes.note();
  EXPECT_TRUE(floats.kept.empty() && floats.text().empty()) << floats.text();
  ASSERT_EQ(floats.expanded.size(), 1);
  const CodedWeights::Kind &kept = codes.kept.at("f8e4m3"), &expanded = floats.expanded.begin()->second;
  EXPECT_EQ(kept.matrices, expanded.matrices);
  // A byte for each element of whole panels of 16 rows, and a scale of four bytes for each row.
  i64 bytes = 0;
  EngineOptions options{.workers = 3, .weights = "codes"};
  const ModelGraph graph = make_planner(open_model(copy.folder()), options).graph(1, 1);
  for (const auto& [name, spec] : graph.weights)
    if (spec.coding.code != Code::kNone) bytes += i64(spec.rows() + 15) / 16 * 16 * (spec.cols + 4);
  EXPECT_EQ(kept.bytes, bytes);
  EXPECT_LT(double(kept.bytes), 0.55 * double(expanded.bytes));
  const Engine with_codes = copy.engine("threads", "codes"), with_floats = copy.engine("threads", "floats");
  EXPECT_EQ(i64(with_floats.weight_bytes() - with_codes.weight_bytes()), expanded.bytes - kept.bytes);
}

TEST(CodedWeights, SayWhatIsExpandedAndWhy) {
  const Fp8Copy copy("llama-v4", kBlocks[0]);
  EXPECT_EQ(copy.engine("threads", "codes").weights_note(), "");
  const std::string note = copy.engine("threads", "floats").weights_note();
  EXPECT_NE(note.find("expanded to floats"), std::string::npos) << note;
  EXPECT_NE(note.find("because the option weights is floats"), std::string::npos) << note;
  // A part that is no code makes floats of the whole matrix, with the same values.
  const std::vector<float> before = copy.logits("threads", "codes");
  copy.change([](EditableTensors& tensors) {
    const std::string name = "model.layers.0.self_attn.k_proj.weight";
    EditableTensor &codes = tensors.at(name), floats{DType::kBf16, codes.shape, {}};
    const EditableTensor& scales = tensors.at(name + "_scale_inv");
    const i64 cols = codes.shape[1], across = scales.shape[1];
    floats.data.resize(codes.data.size() * 2);
    for (i64 at = 0; at < i64(codes.data.size()); ++at) {
      const double scale =
          load_number(DType::kF32, scales.data.data(), at / cols / 16 * across + at % cols / 32);
      store_number(DType::kBf16, floats.data.data(), at,
                   double(float(load_number(DType::kF8E4M3, codes.data.data(), at)) * float(scale)));
    }
    codes = std::move(floats);
    tensors.erase(name + "_scale_inv");
  });
  Engine engine = copy.engine("threads", "codes");
  EXPECT_NE(engine.weights_note().find("1 matrices"), std::string::npos) << engine.weights_note();
  EXPECT_NE(engine.weights_note().find("its parts are stored in different ways"), std::string::npos);
  EXPECT_EQ(copy.logits(engine), before);
}

TEST(CodedWeights, BadCodesAndScalesAreNamed) {
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const auto refusal = [&](const std::function<void(EditableTensors&)>& change) {
    const Fp8Copy copy("llama-v4", kBlocks[0]);
    copy.change(change);
    return copy.refusal();
  };
  const auto expect = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal([&](EditableTensors& t) { t.at(name).data[3] = std::byte{0x7f}; }),
         {name.c_str(), "element (0, 3) is nan: its code is nan", "weights must be finite"});
  for (const float scale : {NAN, INFINITY})
    expect(refusal([&](EditableTensors& t) {
             store_number(DType::kF32, t.at(name + "_scale_inv").data.data(), 1, double(scale));
           }),
           {name.c_str(), "element (0, 32) is ", "weights must be finite"});
  expect(refusal([&](EditableTensors& t) { t.erase(name + "_scale_inv"); }),
         {name.c_str(), "holds F8_E4M3 without scales that fit", "_scale_inv"});
  expect(refusal([&](EditableTensors& t) { t.at(name + "_scale_inv").shape = {1, 9}; }), {"_scale_inv"});
  expect(refusal([&](EditableTensors& t) {
           EditableTensor& scales = t.at(name + "_scale_inv");
           scales.shape = {scales.shape[0] + 1, scales.shape[1]};
           scales.data.resize(size_t(scales.shape[0] * scales.shape[1]) * 4);
         }),
         {name.c_str(), "holds F8_E4M3 without scales that fit"});
}

// New values are floats, which do not fit; nothing changes then.
TEST(CodedWeights, TakeNoNewValues) {
  const Fp8Copy copy("llama-v4", kBlocks[0]);
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const std::shared_ptr<TensorModel> model = open_model(copy.folder());
  const std::vector<u16> zeros(40 * 77);
  const auto update = [&](const std::string& weights) {
    Engine engine(model, {.workers = 3, .max_sequences = 1, .weights = weights, .all_logits = true});
    const std::vector<float> before = copy.logits(engine);
    const auto values = model->replacing(std::make_shared<CallerTensors>(
        std::vector<CallerTensor>{{.name = name,
                                   .dtype = DType::kBf16,
                                   .shape = {40, 77},
                                   .data = reinterpret_cast<const std::byte*>(zeros.data())}},
        "given"));
    std::string refusal;
    try {
      engine.update_weights(*values);
    } catch (const Error& error) {
      refusal = error.what();
      EXPECT_EQ(copy.logits(engine), before);
    }
    return refusal;
  };
  EXPECT_EQ(update("codes").find("[" + name + "] stays in memory as codes"), 0) << update("codes");
}

// The largest and the smallest finite products, and subnormal codes and values.
TEST(CodedWeights, ExtremesGiveTheBitsOfTheirExpansion) {
  const Fp8Copy copy("llama-v4", kBlocks[0]);
  copy.change([](EditableTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      if (tensor.dtype != DType::kF8E4M3 || name.find("up_proj") == name.npos) continue;
      for (size_t i = 0; i < tensor.data.size(); ++i) {
        const auto code = std::byte(i * 37 % 256);
        tensor.data[i] = (code & std::byte{0x7f}) == std::byte{0x7f} ? std::byte{1} : code;
      }
      EditableTensor& scales = tensors.at(name + "_scale_inv");
      constexpr float kScales[] = {0.0f, 1e-38f, 3e-42f, 0.007f, -1e-3f, 0x1p-125f};
      for (size_t i = 0; i < scales.data.size() / 4; ++i)
        store_number(DType::kF32, scales.data.data(), i64(i), double(kScales[i % std::size(kScales)]));
    }
  });
  const std::vector<float> wanted = copy.logits("threads", "floats");
  EXPECT_TRUE(std::isfinite(wanted.back()));
  EXPECT_EQ(copy.logits("threads", "codes"), wanted);
  EXPECT_EQ(copy.logits("reference", "codes"), copy.logits("reference", "floats"));
}

// Integers of 4 bits in groups of columns, as compressed-tensors packs them, next to the same values in bf16.
class PackedCopy {
 public:
  PackedCopy(i64 group, bool zeros, DType scale_type = DType::kBf16)
      : golden_(load_golden("llama3-tiny")), group_(group), zeros_(zeros), scale_type_(scale_type) {
    for (const char* name : {"packed", "plain"}) scratch_.link_model(kGoldenModels + "llama3-tiny", name);
    edit_json(folder() + "/config.json", [&](Json& json) {
      Json weights = Json::object({{"num_bits", 4}, {"type", "int"}, {"symmetric", !zeros}});
      weights["strategy"] = group > 0 ? "group" : "channel";
      if (group > 0) weights["group_size"] = group;
      json["quantization_config"] = Json::object(
          {{"quant_method", "compressed-tensors"},
           {"format", "pack-quantized"},
           {"config_groups", Json::object({{"group_0", Json::object({{"weights", weights}})}})}});
    });
    edit_tensors(scratch_.path("plain") + "/model.safetensors", [&](EditableTensors& plain) {
      edit_tensors(folder() + "/model.safetensors", [&](EditableTensors& packed) {
        for (auto& [name, tensor] : plain)
          if (name.find("_proj.weight") != name.npos) pack(name, tensor, packed);
      });
    });
  }
  std::string folder() const { return scratch_.path("packed"); }
  std::vector<float> logits(const std::string& folder, const std::string& weights,
                            std::string* note = nullptr) const {
    Engine engine(open_model(folder),
                  {.workers = 3, .max_sequences = 1, .weights = weights, .all_logits = true});
    if (note) *note = engine.weights_note();
    return logits_of(engine, std::span(golden_.tokens).first(9), 5);
  }
  std::vector<float> plain() const { return logits(scratch_.path("plain"), ""); }

 private:
  void pack(const std::string& name, EditableTensor& tensor, EditableTensors& packed) const {
    const i64 rows = tensor.shape[0], cols = tensor.shape[1], words = (cols + 7) / 8;
    const i64 wide = group_ > 0 ? group_ : cols, groups = (cols + wide - 1) / wide;
    const auto empty = [](DType type, i64 high, i64 across) {
      return EditableTensor{
          type, {high, across}, std::vector<std::byte>(size_t(high * across * size_of(type)))};
    };
    EditableTensor codes = empty(DType::kI32, rows, words), scales = empty(scale_type_, rows, groups),
                   zeros = empty(DType::kI32, (rows + 7) / 8, groups);
    const auto put = [](EditableTensor& to, i64 word, i64 place, int code) {
      to.data[size_t(word * 4 + place / 2)] |= std::byte((code + 8) << (4 * (place % 2)));
    };
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < cols; ++c) {
        const i64 at = r * groups + c / wide;
        store_number(scale_type_, scales.data.data(), at, 0.03 + 0.011 * double(at % 5));
        const double scale = load_number(scale_type_, scales.data.data(), at);
        const int zero = zeros_ ? int(at % 16) - 8 : 0;
        if (c % wide == 0 && zeros_) put(zeros, r / 8 * groups + c / wide, r % 8, zero);
        const double value = load_number(DType::kBf16, tensor.data.data(), r * cols + c);
        const int code = std::clamp(int(std::lround(value / scale)) + zero, -8, 7);
        put(codes, r * words + c / 8, c % 8, code);
        store_number(DType::kBf16, tensor.data.data(), r * cols + c,
                     double(float(code - zero) * float(scale)));
      }
    EditableTensor shape{DType::kI64, {2}, std::vector<std::byte>(16)};
    store_number(DType::kI64, shape.data.data(), 0, double(rows));
    store_number(DType::kI64, shape.data.data(), 1, double(cols));
    packed.erase(name);
    packed[name + "_packed"] = codes, packed[name + "_scale"] = scales, packed[name + "_shape"] = shape;
    if (zeros_) packed[name + "_zero_point"] = zeros;
  }

  Scratch scratch_;
  Golden golden_;
  i64 group_;
  bool zeros_;
  DType scale_type_;
};

// 77 columns are an odd number: they are expanded.
TEST(PackedWeights, GiveTheBitsOfTheirValues) {
  for (const i64 group : {0, 4, 32, 128}) {
    const PackedCopy copy(group, false);
    std::string note;
    const std::vector<float> wanted = copy.plain();
    EXPECT_EQ(copy.logits(copy.folder(), "codes", &note), wanted) << group;
    EXPECT_NE(note.find("because its rows have an odd number of columns"), std::string::npos) << note;
    EXPECT_EQ(copy.logits(copy.folder(), "floats", &note), wanted) << group;
    EXPECT_NE(note.find("because the option weights is floats"), std::string::npos) << note;
  }
}

TEST(PackedWeights, WithZeroPointsOrOtherScalesAreExpanded) {
  std::string note;
  const PackedCopy zeros(32, true);
  EXPECT_EQ(zeros.logits(zeros.folder(), "codes", &note), zeros.plain());
  EXPECT_NE(note.find("because its integers have zero points"), std::string::npos) << note;
}

TEST(PackedWeights, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const std::function<void(Json&)>& config,
                          const std::function<void(EditableTensors&)>& tensors) {
    const PackedCopy copy(32, false);
    edit_json(copy.folder() + "/config.json", config);
    edit_tensors(copy.folder() + "/model.safetensors", tensors);
    try {
      copy.logits(copy.folder(), "codes");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto keep = [](auto&) {};
  const auto weights = [](Json& json) -> Json& {
    return json["quantization_config"]["config_groups"]["group_0"]["weights"];
  };
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  };
  expect(refusal([&](Json& json) { weights(json)["num_bits"] = 3; }, keep), "num_bits = 3");
  expect(refusal([&](Json& json) { weights(json)["num_bits"] = 8; }, keep), "a shape that do not fit");
  expect(refusal([&](Json& json) { weights(json)["actorder"] = "group"; }, keep), "actorder");
  expect(refusal([&](Json& json) { weights(json)["group_size"] = 0; }, keep), "group_size");
  expect(refusal([&](Json& json) { weights(json)["group_size"] = 16; }, keep), "a shape that do not fit");
  for (const char* part : {"_scale", "_shape"})
    expect(refusal(keep, [&](EditableTensors& t) { t.erase(name + part); }), name + "_packed");
  expect(refusal(keep, [&](EditableTensors& t) { t.at(name + "_shape").data[8] = std::byte{1}; }),
         name + "_packed");
  expect(refusal(keep,
                 [&](EditableTensors& t) {
                   t.at(name + "_scale").shape = {1, t.at(name + "_scale").shape[0] * 3};
                 }),
         name + "_packed");
}

class CodedWeightsOn : public testing::TestWithParam<const char*> {};

// A GPU expands by default, and keeps codes where it is told to. Few rows are multiplied with codes as they are, and sums with scales:
// values are not rounded to bf16 then.
TEST_P(CodedWeightsOn, MultiplyAsFloatsDo) {
  if (std::string why = get_executor(GetParam()).unavailable(); !why.empty())
    GTEST_SKIP() << GetParam() << ": " << why;
  const Fp8Copy copy("llama-v4", kBlocks[0]);
  Engine expanded = copy.engine(GetParam(), ""), kept = copy.engine(GetParam(), "codes");
  EXPECT_NE(expanded.weights_note(), "");
  EXPECT_EQ(kept.weights_note(), "");
  const std::vector<float> wanted = copy.logits(expanded), found = copy.logits(kept);
  ASSERT_EQ(found.size(), wanted.size());
  float most = 0;
  for (const float logit : wanted) most = std::max(most, std::abs(logit));
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], most / 64) << i;
}

// Scales are powers of two here, so that no value is rounded: sums differ by their own roundings alone. Many rows have the bits of floats.
// Rows, columns and columns of a scale; a GPU has a whole kernel for the last two.
TEST_P(CodedWeightsOn, GiveTheSumsOfTheirExpansion) {
  if (std::string why = get_executor(GetParam()).unavailable(); !why.empty())
    GTEST_SKIP() << GetParam() << ": " << why;
  const OpSpec& op = get_op("linear");
  for (const Code code : {Code::kF8E4M3, Code::kI4})
    for (const auto& [type, m, n, k, group] : {std::tuple{DType::kF32, 1, 34, 2048, 128},
                                               {DType::kF32, 1, 7, 1800, 64},
                                               {DType::kBf16, 1, 21, 2050, 32},
                                               {DType::kBf16, 1, 9, 18000, 128},
                                               {DType::kBf16, 3, 33, 2304, 0},
                                               {DType::kBf16, 8, 12, 700, 32},
                                               {DType::kBf16, 70, 130, 328, 64},
                                               {DType::kBf16, 70, 136, 384, 32},
                                               {DType::kBf16, 67, 24, 8320, 128}}) {
      Weight floats = weight_input(DType::kBf16, n, k);
      floats.panel_rows = 2, floats.interleave = 8;
      std::vector<double> values;
      const auto outputs = [&](const Weight& weight) {
        Case test = make_case(Linear{.x = input(type, {m, k}), .w = weight}, 1.0);
        test.prepare = [&](std::byte* args, Values& memory) {
          const Weight& w = reinterpret_cast<const Linear*>(args)->w;
          if (!w.is_coded()) return dynamic_cast<CaseMemory&>(memory).write(w, values);
          std::byte* panels = dynamic_cast<CaseMemory&>(memory).memory.base[w.data.buffer];
          for (i32 r = 0; r < w.rows(); ++r)
            for (i32 c = 0; c < w.cols(); c += w.group_cols()) {
              const float scale = std::ldexp(1.0f, (r + c / w.group_cols()) % 5 - 6);
              std::memcpy(panels + r / 2 * w.panel_bytes() + w.scale_place(r % 2, c), &scale, sizeof scale);
            }
          values = memory.read(w);
        };
        const CaseResult result = run_case(op, test, GetParam());
        EXPECT_EQ(result.problem, "");
        return result.outputs;
      };
      Weight codes = floats;
      codes.coding = {code, static_cast<unsigned short>(group)}, codes.interleave = 128 / bits_of(code);
      const std::vector<double> found = outputs(codes), wanted = outputs(floats);
      ASSERT_EQ(found.size(), wanted.size());
      double most = 0;
      for (const double value : values) most = std::max(most, std::abs(value));
      const double bound = m > 8 ? 0 : most * k * 0x1p-17;
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], bound)
            << name(code) << " " << m << " x " << n << " x " << k << " at " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Executors, CodedWeightsOn, testing::Values("launches", "megakernel"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace heddle
