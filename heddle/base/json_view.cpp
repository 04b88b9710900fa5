#include "heddle/base/json_view.h"

#include <nlohmann/json.hpp>

namespace heddle {
namespace {

constexpr size_t kShownBytes = 60;  // of a value in a message

// A value as a message shows it; containers by kind and size, since dumping them may cost megabytes.
std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "…";
  return text;
}

}  // namespace

bool JsonView::is_bool() const {
  return value_->is_boolean();
}
bool JsonView::is_string() const {
  return value_->is_string();
}
bool JsonView::is_array() const {
  return value_->is_array();
}
bool JsonView::is_object() const {
  return value_->is_object();
}

JsonView JsonView::at(std::string_view key) const& {
  if (!is_object()) fail(ErrorCode::kIo, fmt::format("an object with '{}' is expected", key));
  const auto found = value_->find(key);
  if (found == value_->end()) fail(ErrorCode::kIo, fmt::format("it has no '{}'", key));
  return JsonView(*found, *this, found.key(), 0);
}

std::optional<JsonView> JsonView::find(std::string_view key) const& {
  if (!is_object()) fail(ErrorCode::kIo, "an object is expected");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonView(*found, *this, found.key(), 0);
}

const std::string& JsonView::as_string() const {
  if (!is_string()) fail(ErrorCode::kIo, "a string is expected");
  return value_->get_ref<const std::string&>();
}

bool JsonView::as_bool() const {
  if (!value_->is_boolean()) fail(ErrorCode::kIo, "true or false is expected");
  return value_->get<bool>();
}

int64_t JsonView::as_int(int64_t low, int64_t high) const {
  const bool too_big = value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(INT64_MAX);
  if (value_->is_number_integer() && !too_big) {
    const int64_t number = value_->get<int64_t>();
    if (number >= low && number <= high) return number;
  }
  fail(ErrorCode::kIo, fmt::format("a whole number from {} to {} is expected", low, high));
}

double JsonView::as_number() const {
  if (!value_->is_number()) fail(ErrorCode::kIo, "a number is expected");
  return value_->get<double>();
}

size_t JsonView::size() const {
  return value_->size();
}

void JsonView::for_each_item(const std::function<void(const JsonView&)>& visit) const {
  if (!is_array()) fail(ErrorCode::kIo, "an array is expected");
  for (size_t i = 0; i < value_->size(); ++i) visit(JsonView((*value_)[i], *this, {}, i));
}

void JsonView::for_each_member(const std::function<void(const std::string&, const JsonView&)>& visit) const {
  if (!is_object()) fail(ErrorCode::kIo, "an object is expected");
  for (auto member = value_->begin(); member != value_->end(); ++member) {
    visit(member.key(), JsonView(*member, *this, member.key(), 0));
  }
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

JsonDocument::JsonDocument(std::string_view text, std::string file) : file_(std::move(file)) {
  try {
    value_ = std::make_unique<nlohmann::json>(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kIo, "[{}] is not JSON: {}; is the file complete?", file_, error.what());
  }
}

JsonDocument::~JsonDocument() = default;

}  // namespace heddle
