#include "heddle/serve/fields.h"

#include <fmt/format.h>

#include "heddle/serve/api_error.h"

namespace heddle {
namespace {

constexpr std::string_view kBody = "request";

void named(std::string_view name, const std::function<void()>& read) {
  try {
    read();
  } catch (const ApiError& error) {
    if (!error.place().param.empty()) throw;
    throw ApiError(error.status(), error.what(), {.param = std::string(name), .code = error.place().code});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    throw ApiError(400, error.what(), {.param = std::string(name)});
  }
}

}  // namespace

Fields::Fields(const Json& body) : body_(body), root_(body, kBody) {
  if (!body.is_object())
    throw ApiError(400, fmt::format("[{}] the body is {}; a JSON object is expected", kBody, brief(body)));
}

bool Fields::take(std::string_view name, const Read& read) {
  taken_.emplace(name);
  bool found = false;
  named(name, [&] {
    if (const auto value = root_.find(name)) found = true, read(*value);
  });
  return found;
}

void Fields::need(std::string_view name, const Read& read) {
  if (!take(name, read))
    throw ApiError(400, fmt::format("[{}] it has no '{}', which is needed", kBody, name),
                   {.param = std::string(name)});
}

void Fields::take_others(const std::function<bool(const std::string& name, const JsonView& value)>& read) {
  root_.for_each_member([&](const std::string& name, const JsonView& value) {
    if (taken_.contains(name) || value.is_null()) return;
    named(name, [&] {
      if (read(name, value)) taken_.insert(name);
    });
  });
}

void Fields::refuse(std::initializer_list<FieldNotDone> fields) const {
  for (const auto& [name, neutral] : fields) {
    const Json* found = taken_.contains(name) ? nullptr : body_.find(name);
    if (found && !found->is_null() && *found != parse_json(neutral, name))
      throw ApiError(400,
                     fmt::format("[{}] {} is {}; heddle does not do that yet, only {}", kBody, name,
                                 brief(*found), neutral),
                     {.param = name, .code = "unsupported_field"});
  }
}

}  // namespace heddle
