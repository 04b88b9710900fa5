#include "tests/support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

// A test that was copied to another machine finds them at HEDDLE_GOLDENS.
const std::string kFolder = [] {
  const char* carried = std::getenv("HEDDLE_GOLDENS");
  return carried ? std::string(carried) : std::string(HEDDLE_SOURCE_DIR) + "/tests/goldens/models";
}();

constexpr size_t kGoldenTokens = 73;  // as make_models.py has it

const std::string kMixtures = std::filesystem::path(kFolder).parent_path() / "mixtures";

template <class T>
std::vector<T> values(const TensorFile& file, const std::string& name) {
  const TensorView view = file.view(name);
  std::vector<T> result(view.data.size() / sizeof(T));
  std::memcpy(result.data(), view.data.data(), view.data.size());
  return result;
}

}  // namespace

std::vector<std::string> golden_names() {
  return names_in(kFolder);
}
std::vector<std::string> mixture_names() {
  return names_in(kMixtures);
}

MixtureGolden load_mixture(const std::string& name, int length) {
  const TensorFile file(kMixtures + "/" + name + "/golden.safetensors");
  const std::string of = "_" + std::to_string(length);
  const auto of_bf16 = [&](const char* text) {
    return double(values<float>(file, std::string("bf16_max_abs") + text)[0]);
  };
  return {.tokens = values<i32>(file, "tokens" + of),
          .routes = values<u8>(file, "routes" + of),
          .firm = values<u8>(file, "firm" + of),
          .taken = file.view("routes" + of).shape.back(),
          .positions = values<i32>(file, "positions" + of),
          .logits = values<float>(file, "logits" + of),
          .bf16_error = std::max(of_bf16("_17"), of_bf16("_300"))};
}

std::unique_ptr<Model> open_mixture(const std::string& name) {
  return open_model(kMixtures + "/" + name);
}

std::unique_ptr<Engine> mixture_engine(const std::string& name, EngineOptions options) {
  return std::make_unique<Engine>(open_mixture(name), std::move(options));
}

Golden load_golden(const std::string& name) {
  Golden golden{.folder = kFolder + "/" + name};
  const TensorFile file(golden.folder + "/golden.safetensors");
  golden.tokens = values<i32>(file, "tokens");
  golden.logits = values<float>(file, "logits");
  golden.prompt = values<i32>(file, "prompt");
  golden.greedy = values<i32>(file, "greedy");
  golden.margins = values<float>(file, "greedy_margin");
  golden.bf16_error = double(values<float>(file, "bf16_max_abs")[0]);
  return golden;
}

std::unique_ptr<Engine> golden_engine(const std::string& name, EngineOptions options) {
  auto model = open_model(kFolder + "/" + name);
  // Texts beyond the first length of longrope have other frequencies, and only where such a context is asked for.
  if (options.max_context == 0 && model->info().default_positions() < i32(kGoldenTokens))
    options.max_context = model->info().max_positions;
  return std::make_unique<Engine>(std::move(model), std::move(options));
}

Planner golden_planner(const std::string& name, EngineOptions options) {
  return make_planner(open_model(kFolder + "/" + name), options);
}

std::vector<float> logits_of(Engine& engine, std::span<const i32> tokens, size_t chunk) {
  const SequenceId sequence = engine.open({});
  std::vector<float> logits;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const StepRequest request{sequence, tokens.subspan(at, std::min(chunk, tokens.size() - at)), true};
    const StepResult result = engine.step(std::span(&request, 1));
    logits.insert(logits.end(), result.logits.begin(), result.logits.end());
  }
  engine.close(sequence);
  return logits;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double(a[i]) - double(b[i]));
    largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
  }
  return largest;
}

}  // namespace heddle
