#include "heddle/backend/cuda/program/known_args.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/backend/cuda/device/params.h"

namespace heddle::cuda {
namespace {

constexpr i64 kWordBytes = 16;
constexpr i64 kLargestForm = 128;
constexpr i64 kDivisors[] = {8, 64};  // elements of a word, and of a slab

// Statements that hold for one record of arguments.
struct Facts {
  Knowledge knowledge = Knowledge::kSizes;
  bool knows_rows = true;
  std::vector<std::string> all;

  void add(const Field& field, const std::byte* args) {
    // The order of a matrix belongs to its type.
    if (field.is_attribute() && field.is_whole() && knowledge == Knowledge::kTypes) return;
    if (field.is_attribute())
      return field.with_attribute(args, [&](auto value) { add_attribute(field.member, value); });
    if (field.is_tensor()) return add_tensor(field.member, field.tensor(args), field.dims_of(args));
    const Weight& weight = field.weight(args);
    add_tensor(field.name + ".data", weight.data, field.dims);
    set(field.name + ".panel_rows", weight.panel_rows);
    set(field.name + ".interleave", weight.interleave);
    add_coding(field.name + ".coding", weight.coding);
    if (knowledge == Knowledge::kTypes) return;
    add_number(field.name + ".panel_cols", weight.panel_cols);
    add_number(field.name + ".matrices", weight.matrices);
  }

 private:
  void add_attribute(const std::string& name, auto value) { add_number(name, value); }
  void add_attribute(const std::string& name, bool value) { set(name, value); }
  void add_attribute(const std::string& name, float value) {
    if (std::isfinite(value) && (knowledge == Knowledge::kSizes || value == 0))
      all.push_back(fmt::format("a.{} = {:a}f;", name, value));
  }
  // Says whether kernels know a dimension. Those that they do not know make no other kernel: pages and bytes of the
  // step record, which say how long sequences may be, and rows of the step, where they are many.
  bool is_known(const FieldDim& dim) const {
    if (dim.name == "M" || dim.name == "T") return knows_rows;
    return dim.scale > 1 || (dim.name != "P" && dim.name != ".");
  }
  // The code and whether rows have one scale belong to the type of a weight.
  void add_coding(const std::string& name, const Coding& coding) {
    all.push_back(fmt::format("a.{}.code = heddle::Code({});", name, int(coding.code)));
    set(name + ".group", coding.group);
  }
  void assume(const std::string& condition) {
    all.push_back(fmt::format("if (!({})) __builtin_unreachable();", condition));
  }
  void set(const std::string& name, i64 value) { all.push_back(fmt::format("a.{} = {};", name, value)); }
  void add_number(const std::string& name, i64 value) {
    const bool is_form = value >= 0 && value <= kLargestForm && (value & (value - 1)) == 0;
    if (knowledge == Knowledge::kSizes || is_form) return set(name, value);
    for (const i64 divisor : kDivisors)
      if (value % divisor == 0) assume(fmt::format("a.{} % {} == 0", name, divisor));
  }
  void add_tensor(const std::string& name, const Tensor& value, const std::vector<FieldDim>& dims) {
    set(name + ".buffer", value.exists() ? 0 : i64(kNoBuffer));
    // The rank of an absent tensor too: a question that the compiler cannot answer keeps code that never runs.
    if (!value.exists()) {
      all.push_back(fmt::format("a.{}.data = nullptr;", name));
      return set(name + ".rank", 0);
    }
    all.push_back(fmt::format("a.{}.dtype = heddle::DType({});", name, int(value.dtype)));
    set(name + ".rank", value.rank);
    if (knowledge == Knowledge::kTypes) return;
    for (int d = 0; d < value.rank; ++d) {
      if (is_known(dims[size_t(d)])) add_number(fmt::format("{}.size[{}]", name, d), value.size[d]);
      add_number(fmt::format("{}.stride[{}]", name, d), value.stride[d]);
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
  for (const Field& field : op.fields) facts.add(field, args);
  return {fmt::format("{}", fmt::join(facts.all, "\n"))};
}

KnownArgs known_args(const Program& program, size_t index, Knowledge knowledge) {
  if (knowledge == Knowledge::kNothing) return {};
  std::vector<std::vector<std::string>> known;  // by part
  for (const Call& call : program.calls) {
    if (call.opcode != index) continue;
    const Node node = program.node_of(call);
    const bool first = known.empty();
    known.resize(node.parts.size());
    for (size_t i = 0; i < node.parts.size(); ++i) {
      Facts facts;
      facts.knowledge = knowledge;
      facts.knows_rows = program.shape.rows <= kStreamRows;
      for (const Field& field : node.parts[i].op->fields) facts.add(field, node.parts[i].args.data());
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
