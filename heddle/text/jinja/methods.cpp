#include "heddle/text/jinja/methods.h"

#include <algorithm>
#include <span>

#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/method_tables.h"

namespace heddle::jinja {
namespace {

// Methods that Python has and templates have not: they make bytes, or need more than this file's tables.
constexpr std::string_view kOtherStringMethods[] = {"encode", "format", "format_map"};
constexpr std::string_view kOtherIntegerMethods[] = {"from_bytes", "to_bytes"};
constexpr std::string_view kOtherFloatMethods[] = {"fromhex"};
constexpr std::string_view kOtherViewMethods[] = {"isdisjoint", "mapping"};
// Methods that Jinja's sandbox forbids, because they change their object.
constexpr std::string_view kChangesOfLists[] = {"append", "clear",  "extend",  "insert",
                                                "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kChangesOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};

using Names = std::span<const std::string_view>;

bool is_list(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().flavor == Sequence::kList;
}

Names changes_of(const Value& value) {
  if (value.is(Kind::kDict)) return kChangesOfDicts;
  return is_list(value) ? Names(kChangesOfLists) : Names();
}

Names others_of(const Value& value) {
  if (value.is(Kind::kString)) return kOtherStringMethods;
  if (value.is(Kind::kFloat)) return kOtherFloatMethods;
  if (value.is_whole()) return kOtherIntegerMethods;
  return value.is(Kind::kSequence) && value.as_sequence().is_view() ? Names(kOtherViewMethods) : Names();
}

Method find_method(const Value& value, std::string_view name) {
  static const MethodTable strings = [] {
    MethodTable table = string_methods();
    table.insert(character_methods().begin(), character_methods().end());
    return table;
  }();
  const MethodTable* table = nullptr;
  if (value.is(Kind::kString)) table = &strings;
  if (value.is(Kind::kDict)) table = &dict_methods();
  if (value.is(Kind::kLoop)) table = &loop_methods();
  if (value.is(Kind::kCycler) && !value.as_cycler().is_joiner) table = &cycler_methods();
  if (value.is(Kind::kFloat)) table = &float_methods();
  if (value.is_whole()) table = &integer_methods();
  if (value.is(Kind::kSequence) &&
      (value.as_sequence().is_list() || value.as_sequence().flavor == Sequence::kRange))
    table = &sequence_methods();
  if (is_list(value) && name == "copy") table = &list_methods();
  if (!table) return nullptr;
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

bool is_in(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Methods of a safe text give safe texts.
Value made_safe(const Value& result) {
  if (result.is(Kind::kString)) return result.marked_safe();
  if (!result.is(Kind::kSequence)) return result;
  std::vector<Value> parts;
  for (const Value& part : result.as_sequence().items) parts.push_back(part.marked_safe());
  return make_sequence(std::move(parts), result.as_sequence().flavor);
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  return find_method(value, name) || is_in(others_of(value), name) || is_in(changes_of(value), name);
}

Value call_method(Budget& budget, const Callable& method, Arguments& arguments) {
  const Value& self = method.self;
  const Method found = find_method(self, method.name);
  if (!found && is_in(changes_of(self), method.name)) {
    fail(ErrorCode::kInvalidArgument,
         "the method '{}' would change {}; a template makes a new value, with + or a filter", method.name,
         describe(self));
  }
  if (!found) {
    fail(ErrorCode::kUnsupported, "the method '{}' of {} is not supported", method.name, describe(self));
  }
  if (self.is(Kind::kString)) budget.spend(self.as_string().size());
  Value result = found(budget, self, arguments);
  arguments.finish();
  return self.is_safe() ? made_safe(result) : result;
}

}  // namespace heddle::jinja
