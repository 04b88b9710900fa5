#include "heddle/ir/registry.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>

#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/near_names.h"

namespace heddle {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, const OpSpec*, std::less<>> by_name;
  std::vector<std::unique_ptr<const OpSpec>> owned;
};

Registry& registry() {
  static Registry all;
  return all;
}

// The caller holds the mutex.
void insert(Registry& all, const OpSpec* op) {
  require(all.by_name.emplace(op->name, op).second, "[{}] is an op already; names must differ", op->name);
}

// Rows that bodies see have floats, or integers that are moved. Codes of 8 bits or fewer are decoded as operands of products alone.
void require_readable(const OpSpec& op, const Field& field) {
  if (field.is_attribute() || field.writes() || field.is_matrix()) return;
  for (const DType code : {DType::kF8E4M3, DType::kF8E5M2, DType::kI8, DType::kI4})
    require(!field.allows(code), "[{}] {} may be {}, which no body reads row by row; must be a matrix",
            op.name, field.name, name(code));
}

void require_fields(const OpSpec& op) {
  require(!op.fields.empty(), "[{}] has no fields; an op has at least one argument", op.name);
  std::set<std::string_view> names;
  size_t end = 0;
  for (const Field& field : op.fields) {
    require(!field.name.empty() && names.insert(field.name).second,
            "[{}] has two arguments of the name \"{}\"; names must differ and not be empty", op.name,
            field.name);
    require(field.offset >= end && field.offset % field.alignment() == 0,
            "[{}] {} lies at byte {}; must lie after byte {}, at a multiple of {}", op.name, field.name,
            field.offset, end, field.alignment());
    end = field.offset + field.size();
    require(field.is_attribute() || (!field.dims.empty() && field.dims.size() <= size_t(kMaxRank)),
            "[{}] {} declares dimensions \"{}\"; must have 1 to {}", op.name, field.name, field.dims_text,
            kMaxRank);
    require_readable(op, field);
    require(!field.is_attribute() || field.type != AttributeType::kChoice || !field.choices.empty(),
            "[{}] {} is a choice of nothing; must have names to choose from", op.name, field.name);
  }
  require(end <= op.args_size(), "[{}] has {} bytes of arguments; its fields end at {}", op.name,
          op.args_size(), end);
}

}  // namespace

void require_complete(const OpSpec& op) {
  require(!op.name.empty(), "[op] an op has no name; must have one");
  require_fields(op);
  std::vector<std::string> missing;
  if (!op.infer) missing.push_back("infer");
  if (!op.axes) missing.push_back("axes");
  if (!op.flops) missing.push_back("flops");
  if (!op.reference && !op.body) missing.push_back("reference (or body)");
  require(missing.empty(), "[{}] lacks {}; every op has them", op.name, fmt::join(missing, ", "));
  for (const std::string& name : {op.traits.input, op.traits.output})
    require(name.empty() || find_field(op.fields, name) != nullptr,
            "[{}] traits name the argument {}; there is none", op.name, name);
  require(!op.body || !(op.traits.main || op.traits.prologue || op.traits.epilogue),
          "[{}] has a body of its own and is a part of chains; must be one or the other", op.name);
}

const OpSpec& add_op(OpSpec op) {
  require_complete(op);
  auto owned = std::make_unique<const OpSpec>(std::move(op));
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  insert(all, owned.get());
  return *all.owned.emplace_back(std::move(owned));
}

void add_op(const OpSpec* op) {
  require_complete(*op);
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  insert(all, op);
}

std::vector<const OpSpec*> all_ops() {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  std::vector<const OpSpec*> ops;
  for (const auto& [name, op] : all.by_name) ops.push_back(op);
  return ops;
}

const OpSpec* find_op(std::string_view name) {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_name.find(name);
  return found == all.by_name.end() ? nullptr : found->second;
}

const OpSpec& get_op(std::string_view name) {
  const OpSpec* op = find_op(name);
  if (!op) {
    std::vector<std::string> known;
    for (const OpSpec* candidate : all_ops()) known.push_back(candidate->name);
    fail(ErrorCode::kInvalidArgument, "[{}] is not an op{}", name, meant_or_all(name, known));
  }
  return *op;
}

}  // namespace heddle
