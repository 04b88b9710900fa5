// Methods of dicts, lists, loops and cyclers.
#include <algorithm>

#include "heddle/text/jinja/method_tables.h"

namespace heddle::jinja {
namespace {

Value get_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& key = arguments.at(0, "");
  const Value* fallback = arguments.find(1, "");
  if (const Value* found = self.as_dict().find(budget, key)) return *found;
  return fallback ? *fallback : Value::none();
}

template <Sequence::Flavor kFlavor>
Value view_method(Budget& budget, const Value& self, Arguments&) {
  std::vector<Value> view;
  for (const auto& [key, value] : self.as_dict().items) {
    budget.spend(2 * Budget::kItem);
    if (kFlavor == Sequence::kItems) {
      view.push_back(make_sequence({key, value}, Sequence::kTuple));
    } else {
      view.push_back(kFlavor == Sequence::kKeys ? key : value);
    }
  }
  return make_sequence(std::move(view), kFlavor);
}

Value fromkeys_method(Budget& budget, const Value&, Arguments& arguments) {
  const Value* given = arguments.find(1, "");
  const Value value = given ? *given : Value::none();
  Dict::Items items;
  for (const Value& key : items_of(budget, arguments.at(0, ""))) set_item(budget, items, key, value);
  return make_dict(std::move(items));
}

template <bool kCount>
Value search_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& wanted = arguments.at(0, "");
  const auto& items = self.as_sequence().items;
  const auto size = int64_t(items.size());
  const auto place = [&](size_t at, int64_t fallback) {
    const int64_t given = kCount ? fallback : arguments.integer(at, "", fallback);
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t begin = place(1, 0), end = std::max(place(2, size), begin);
  const auto same = [&](const Value& item) { return equal(budget, item, wanted); };
  if (kCount) return Value(int64_t(std::ranges::count_if(items, same)));
  const auto found = std::find_if(items.begin() + begin, items.begin() + end, same);
  require(found != items.begin() + end, "the value that 'index' looks for is not there");
  return Value(int64_t(found - items.begin()));
}

Value copy_method(Budget&, const Value& self, Arguments&) {
  return self;
}

Value cycle_method(Budget&, const Value& self, Arguments& arguments) {
  std::vector<Value> values;
  while (arguments.has_positional()) values.push_back(arguments.take_first("a value"));
  require(!values.empty(), "'cycle' takes the values that alternate");
  return values[size_t(self.as_loop().index0) % values.size()];
}

Value changed_method(Budget& budget, const Value& self, Arguments& arguments) {
  std::vector<Value> values;
  while (arguments.has_positional()) values.push_back(arguments.take_first("a value"));
  Value now = make_sequence(std::move(values), Sequence::kTuple);
  Loop& loop = self.as_loop();
  const bool same = loop.last_changed && equal(budget, *loop.last_changed, now);
  if (!same) loop.last_changed = std::move(now);
  return Value(!same);
}

Value next_method(Budget&, const Value& self, Arguments&) {
  Cycler& cycler = self.as_cycler();
  const size_t at = std::exchange(cycler.at, (cycler.at + 1) % cycler.items.size());
  return cycler.items[at];
}

Value reset_method(Budget&, const Value& self, Arguments&) {
  self.as_cycler().at = 0;
  return Value::none();
}

}  // namespace

const MethodTable& dict_methods() {
  static const MethodTable all = {{"copy", copy_method},
                                  {"fromkeys", fromkeys_method},
                                  {"get", get_method},
                                  {"items", view_method<Sequence::kItems>},
                                  {"keys", view_method<Sequence::kKeys>},
                                  {"values", view_method<Sequence::kValues>}};
  return all;
}

const MethodTable& sequence_methods() {
  static const MethodTable all = {{"count", search_method<true>}, {"index", search_method<false>}};
  return all;
}

const MethodTable& list_methods() {
  static const MethodTable all = {{"copy", copy_method}};
  return all;
}

const MethodTable& loop_methods() {
  static const MethodTable all = {{"changed", changed_method}, {"cycle", cycle_method}};
  return all;
}

const MethodTable& cycler_methods() {
  static const MethodTable all = {{"next", next_method}, {"reset", reset_method}};
  return all;
}

}  // namespace heddle::jinja
