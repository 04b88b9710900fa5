#include "heddle/model/hf/gguf_names.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/model/hf/family_config.h"
#include "heddle/model/hf/gguf_config.h"

namespace heddle {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

constexpr Name kOuter[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Name kInner[] = {
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};
constexpr Name kMixtralNames[] = {{"ffn_gate_inp", "block_sparse_moe.gate"}};
// The tensors of all experts in one, and the name of each.
constexpr Name kStacks[] = {{"ffn_gate_exps", "mlp.experts.{}.gate_proj"},
                            {"ffn_up_exps", "mlp.experts.{}.up_proj"},
                            {"ffn_down_exps", "mlp.experts.{}.down_proj"}};
constexpr Name kMixtralStacks[] = {{"ffn_gate_exps", "block_sparse_moe.experts.{}.w1"},
                                   {"ffn_up_exps", "block_sparse_moe.experts.{}.w3"},
                                   {"ffn_down_exps", "block_sparse_moe.experts.{}.w2"}};
// Read with the configuration.
constexpr std::string_view kFactors[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                         "rope_factors_short.weight"};

std::optional<std::string_view> find_name(std::span<const Name> names, std::string_view stem) {
  const auto found = std::ranges::find(names, stem, &Name::first);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

class Namer {
 public:
  explicit Namer(const Gguf& file)
      : file_(file),
        architecture_(gguf_architecture(file)),
        is_mixtral_(architecture_.name == "llama" && find_own(file, "expert_count")),
        heads_(heads("attention.head_count", 1)),
        kv_heads_(heads("attention.head_count_kv", heads_)) {}

  void add(const std::string& name, const Gguf::Place& place) {
    GgufPart part{.place = place, .shape = place.tensor->shape, .size = place.tensor->size};
    part.plus_one = architecture_.adds_one && name.ends_with("norm.weight");
    // "blk.7.attn_q.weight"
    const size_t end = name.rfind('.');
    const std::string_view whole = name, last = end == name.npos ? std::string_view() : whole.substr(end);
    const bool inside = whole.starts_with("blk.");
    const size_t begin = inside ? whole.find('.', 4) : whole.npos;
    if (!inside || begin == whole.npos || begin >= end) {
      const auto outer = find_name(kOuter, whole.substr(0, whole.size() - last.size()));
      return take(outer ? fmt::format("{}{}", *outer, last) : name, std::move(part));
    }
    const std::string_view layer = whole.substr(4, begin - 4),
                           stem = whole.substr(begin + 1, end - begin - 1);
    const std::string front = fmt::format("model.layers.{}.", layer);
    if (const auto stack = find_name(is_mixtral_ ? std::span<const Name>(kMixtralStacks) : kStacks, stem))
      return add_experts(front, *stack, last, name, part);
    if (architecture_.turns_heads && (stem == "attn_q" || stem == "attn_k"))
      part.turned_heads = turned(name, stem == "attn_q" ? heads_ : kv_heads_, part);
    // A vector in the file, a matrix of one row in transformers.
    if (stem == "ffn_gate_inp_shexp" && part.shape.size() == 1) part.shape.insert(part.shape.begin(), 1);
    std::optional<std::string_view> inner = find_name(architecture_.names, stem);
    if (!inner && is_mixtral_) inner = find_name(kMixtralNames, stem);
    if (!inner) inner = find_name(kInner, stem);
    take(inner ? fmt::format("{}{}{}", front, *inner, last) : name, std::move(part));
  }

  std::map<std::string, GgufPart> take_all() && { return std::move(parts_); }

 private:
  int64_t heads(std::string_view key, int64_t otherwise) const {
    const GgufValue* found = find_own(file_, key);
    if (!found) return otherwise;
    const std::vector<int64_t> values = found->ints();  // the configuration wants the same in all layers
    return values.empty() ? otherwise : values.front();
  }

  int64_t turned(const std::string& name, int64_t heads, const GgufPart& part) const {
    const int64_t rows = part.shape.empty() ? 0 : part.shape.front();
    if (heads < 1 || rows % heads != 0 || rows / heads % 2 != 0)
      fail(ErrorCode::kIo, "[{}] tensor {} has {} rows; must be an even number for each of {} heads",
           file_.path(), name, rows, heads);
    return heads;
  }

  void add_experts(const std::string& front, std::string_view form, std::string_view last,
                   const std::string& name, const GgufPart& stack) {
    if (stack.shape.size() != 3 || stack.shape[0] > kMaxExperts)
      fail(ErrorCode::kIo, "[{}] tensor {} has the shape [{}]; must be experts, at most {}, rows and columns",
           file_.path(), name, fmt::join(stack.shape, ", "), kMaxExperts);
    const int64_t experts = stack.shape[0];
    for (int64_t e = 0; e < experts && stack.size > 0; ++e) {
      GgufPart part = stack;
      part.shape.erase(part.shape.begin());
      part.size = stack.size / size_t(experts), part.begin = size_t(e) * part.size;
      take(front + fmt::format(fmt::runtime(form), e) + std::string(last), std::move(part));
    }
  }

  void take(const std::string& name, GgufPart part) {
    if (!parts_.emplace(name, std::move(part)).second)
      fail(ErrorCode::kIo, "[{}] has two tensors for {}", file_.path(), name);
  }

  const Gguf& file_;
  const GgufArchitecture& architecture_;
  bool is_mixtral_;
  int64_t heads_, kv_heads_;
  std::map<std::string, GgufPart> parts_;
};

}  // namespace

std::map<std::string, GgufPart> gguf_parts(const Gguf& file) {
  Namer namer(file);
  for (const auto& [name, place] : file.tensors())
    if (std::ranges::find(kFactors, name) == std::end(kFactors)) namer.add(name, place);
  return std::move(namer).take_all();
}

}  // namespace heddle
