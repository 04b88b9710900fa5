#include "tests/support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heddle/model/build/family.h"
#include "heddle/model/hf/safetensors.h"

namespace heddle {
namespace {

// A test that was copied to another machine finds them at HEDDLE_GOLDENS.
const std::string kFolder = [] {
  const char* carried = std::getenv("HEDDLE_GOLDENS");
  return carried ? std::string(carried) : std::string(HEDDLE_SOURCE_DIR) + "/tests/goldens/models";
}();

template <class T>
std::vector<T> values(const Safetensors& file, const std::string& name) {
  const TensorView view = file.view(name);
  std::vector<T> result(view.data.size() / sizeof(T));
  std::memcpy(result.data(), view.data.data(), view.data.size());
  return result;
}

}  // namespace

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Golden load_golden(const std::string& name) {
  Golden golden{.folder = kFolder + "/" + name};
  const Safetensors file(golden.folder + "/golden.safetensors");
  golden.tokens = values<i32>(file, "tokens");
  golden.logits = values<float>(file, "logits");
  golden.prompt = values<i32>(file, "prompt");
  golden.greedy = values<i32>(file, "greedy");
  golden.margins = values<float>(file, "greedy_margin");
  golden.bf16_error = double(values<float>(file, "bf16_max_abs")[0]);
  return golden;
}

std::unique_ptr<Engine> golden_engine(const std::string& name, EngineOptions options) {
  return std::make_unique<Engine>(open_model(kFolder + "/" + name), std::move(options));
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
