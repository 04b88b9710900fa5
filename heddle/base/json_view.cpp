#include "heddle/base/json_view.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr size_t kShownBytes = 60;  // limit of one value in a message

// Shows a value in a message. Containers appear by kind and size, because printing them may take megabytes.
std::string shown(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  std::string text = value.dump(-1, true);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "…";
  return text;
}

}  // namespace

JsonView JsonView::at(std::string_view key) const& {
  if (!is_object()) fail(ErrorCode::kIo, fmt::format("an object with '{}' is expected", key));
  const JsonMember* found = value_->find_member(key);
  if (!found) fail(ErrorCode::kIo, fmt::format("it has no '{}'", key));
  return JsonView(found->value, *this, found->name, 0);
}

std::optional<JsonView> JsonView::find(std::string_view key) const& {
  if (!is_object()) fail(ErrorCode::kIo, "an object is expected");
  const JsonMember* found = value_->find_member(key);
  if (!found || found->value.is_null()) return std::nullopt;
  return JsonView(found->value, *this, found->name, 0);
}

const std::string& JsonView::as_string() const {
  if (!is_string()) fail(ErrorCode::kIo, "a string is expected");
  return value_->as_string();
}

bool JsonView::as_bool() const {
  if (!is_bool()) fail(ErrorCode::kIo, "true or false is expected");
  return value_->as_bool();
}

bool JsonView::is_int(int64_t low, int64_t high) const {
  const std::optional<int64_t> number = value_->to_int();
  return number && *number >= low && *number <= high;
}

int64_t JsonView::as_int(int64_t low, int64_t high) const {
  const std::optional<int64_t> number = value_->to_int();
  if (number && *number >= low && *number <= high) return *number;
  fail(ErrorCode::kIo, fmt::format("a whole number from {} to {} is expected", low, high));
}

double JsonView::as_number() const {
  if (!value_->is_number()) fail(ErrorCode::kIo, "a number is expected");
  return value_->as_number();
}

void JsonView::check_one_of(std::initializer_list<std::string_view> names) const {
  if (is_string() && std::ranges::find(names, as_string()) != names.end()) return;
  fail(ErrorCode::kIo, fmt::format("one of {} is expected", fmt::join(names, ", ")));
}

void JsonView::for_each_item(const std::function<void(const JsonView&)>& visit) const {
  if (!is_array()) fail(ErrorCode::kIo, "an array is expected");
  for (size_t i = 0; i < size(); ++i) visit(JsonView(value_->items()[i], *this, {}, i));
}

void JsonView::for_each_member(const std::function<void(const std::string&, const JsonView&)>& visit) const {
  if (!is_object()) fail(ErrorCode::kIo, "an object is expected");
  for (const auto& [name, value] : value_->members()) visit(name, JsonView(value, *this, name, 0));
}

std::string JsonView::path() const {
  if (!parent_) return {};
  const std::string before = parent_->path();
  if (key_.empty()) return fmt::format("{}[{}]", before, index_);
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

std::string_view JsonView::file() const {
  return parent_ ? parent_->file() : key_;
}

void JsonView::fail(ErrorCode code, std::string_view what) const {
  const std::string where = path();
  heddle::fail(code, "[{}] {} is {}: {}", file(), where.empty() ? "the file" : where, shown(*value_), what);
}

}  // namespace heddle
