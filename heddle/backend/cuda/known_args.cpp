#include "heddle/backend/cuda/known_args.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "heddle/backend/cuda/device/params.h"

namespace heddle::cuda {
namespace {

constexpr i64 kWordBytes = 16;
constexpr i64 kLargestForm = 128;
constexpr i64 kDivisors[] = {8, 64};  // elements of a word, and of a slab

// Statements that hold for one record of arguments.
struct Facts : ArgVisitor {
  Knowledge knowledge = Knowledge::kSizes;
  bool knows_rows = true;
  std::vector<std::string> all;

  void tensor(const char* name, Tensor& value, const char* dims, Access) override {
    add_tensor(name, value, dims);
  }
  void weight(const char* name, Weight& value, const char* dims) override {
    add_tensor(fmt::format("{}.data", name), value.data, dims);
    set(fmt::format("{}.panel_rows", name), value.panel_rows);
    set(fmt::format("{}.interleave", name), value.interleave);
    if (knowledge == Knowledge::kTypes) return;
    add(fmt::format("{}.panel_cols", name), value.panel_cols);
    add(fmt::format("{}.matrices", name), value.matrices);
  }
  void attribute(const char* name, i32& value) override {
    if (knowledge != Knowledge::kTypes) add(name, value);
  }
  void attribute(const char* name, float& value) override {
    if (knowledge != Knowledge::kTypes && std::isfinite(value) &&
        (knowledge == Knowledge::kSizes || value == 0))
      all.push_back(fmt::format("a.{} = {:a}f;", name, value));
  }

 private:
  // Dimension d, of which `dims` has the names. What is not known makes no other kernel: pages and bytes of the step
  // record, that is how long sequences may be; and rows of the step, where they are many.
  bool is_known(std::string_view dims, int d) const {
    for (; d > 0 && !dims.empty(); --d) dims.remove_prefix(std::min(dims.find(',') + 1, dims.size()));
    while (dims.starts_with(' ')) dims.remove_prefix(1);
    if (dims.starts_with('M') || dims.starts_with('T')) return knows_rows;
    return !dims.starts_with('P') && !dims.starts_with('.');
  }
  void assume(const std::string& condition) {
    all.push_back(fmt::format("if (!({})) __builtin_unreachable();", condition));
  }
  void set(const std::string& name, i64 value) { all.push_back(fmt::format("a.{} = {};", name, value)); }
  void add(const std::string& name, i64 value) {
    const bool is_form = value >= 0 && value <= kLargestForm && (value & (value - 1)) == 0;
    if (knowledge == Knowledge::kSizes || is_form) return set(name, value);
    for (const i64 divisor : kDivisors)
      if (value % divisor == 0) assume(fmt::format("a.{} % {} == 0", name, divisor));
  }
  void add_tensor(const std::string& name, const Tensor& value, std::string_view dims) {
    set(name + ".buffer", value.exists() ? 0 : i64(kNoBuffer));
    if (!value.exists()) return;
    all.push_back(fmt::format("a.{}.dtype = heddle::DType({});", name, int(value.dtype)));
    set(name + ".rank", value.rank);
    if (knowledge == Knowledge::kTypes) return;
    for (int d = 0; d < value.rank; ++d) {
      if (is_known(dims, d)) add(fmt::format("{}.size[{}]", name, d), value.size[d]);
      add(fmt::format("{}.stride[{}]", name, d), value.stride[d]);
    }
    // Buffers begin at whole words.
    if (value.offset % kWordBytes == 0)
      assume(fmt::format("reinterpret_cast<u64>(a.{}.data) % {} == 0", name, kWordBytes));
  }
};

}  // namespace

KnownArgs known_args(const OpSpec& op, const std::byte* args, Knowledge knowledge) {
  if (knowledge == Knowledge::kNothing) return {};
  Facts facts;
  facts.knowledge = knowledge;
  op.visit(const_cast<std::byte*>(args), facts);
  return {fmt::format("{}", fmt::join(facts.all, "\n"))};
}

KnownArgs known_args(const Program& program, size_t index, Knowledge knowledge) {
  if (knowledge == Knowledge::kNothing) return {};
  std::vector<std::vector<std::string>> known;  // by part
  for (const Call& call : program.calls) {
    if (call.opcode != index) continue;
    Node node = program.node_of(call);
    const bool first = known.empty();
    known.resize(node.parts.size());
    for (size_t i = 0; i < node.parts.size(); ++i) {
      Facts facts;
      facts.knowledge = knowledge;
      facts.knows_rows = program.shape.rows <= kStreamRows;
      node.parts[i].op->visit(node.parts[i].args.data(), facts);
      if (first)
        known[i] = facts.all;
      else
        std::erase_if(known[i], [&](const std::string& fact) {
          return std::find(facts.all.begin(), facts.all.end(), fact) == facts.all.end();
        });
    }
  }
  KnownArgs text;
  for (const std::vector<std::string>& facts : known)
    text.push_back(fmt::format("{}", fmt::join(facts, "\n")));
  return text;
}

}  // namespace heddle::cuda
