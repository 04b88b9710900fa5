#include "heddle/engine/coded_weights.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {

std::string bytes_text(i64 bytes) {
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", double(bytes) * 1e-9);
  return fmt::format("{:.1f} MB", double(bytes) * 1e-6);
}

CodedWeights::CodedWeights(const ModelGraph& model) {
  for (const Buffer& buffer : model.graph.buffers()) {
    if (buffer.kind != BufferKind::kWeight) continue;
    const WeightSpec& spec = model.weights.at(buffer.name);
    const auto add = [&](Kind& kind) { kind.matrices += 1, kind.bytes += buffer.bytes; };
    if (spec.coding.code != Code::kNone) add(kept[name(spec.coding.code)]);
    if (!spec.expanded.empty()) add(expanded[spec.expanded]);
  }
}

std::string CodedWeights::text() const {
  std::vector<std::string> kinds;
  for (const auto& [code, kind] : kept)
    kinds.push_back(fmt::format("{} in {}", bytes_text(kind.bytes), code));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string CodedWeights::note() const {
  std::vector<std::string> reasons;
  for (const auto& [reason, kind] : expanded)
    reasons.push_back(
        fmt::format("{} matrices, {} in memory, because {}", kind.matrices, bytes_text(kind.bytes), reason));
  if (reasons.empty()) return "";
  return fmt::format("[weights] codes of the checkpoint are expanded to floats: {}",
                     fmt::join(reasons, "; "));
}

}  // namespace heddle
