#include "heddle/serve/api_error.h"

#include <utility>

#include "heddle/base/json_view.h"
#include "heddle/session/service.h"

namespace heddle {
namespace {

const char* type_of(int status, ErrorForm form) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return form == ErrorForm::kAnthropic ? "request_too_large" : "invalid_request_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return form == ErrorForm::kAnthropic ? "overloaded_error" : "server_error";
    default:
      break;
  }
  if (status < 500) return "invalid_request_error";
  return form == ErrorForm::kAnthropic ? "api_error" : "server_error";
}

}  // namespace

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

ApiError api_error_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& known) {
    return known;
  } catch (const QueueFull& full) {
    return ApiError(429, full.what(), {.code = "queue_full", .retry_after = 1});
  } catch (const Error& known) {
    return ApiError(known.code() == ErrorCode::kInvalidArgument ? 400 : 500, known.what());
  } catch (const std::exception& other) {
    return ApiError(500, other.what());
  }
}

Json json_of(const ApiError& error, ErrorForm form) {
  Json told = Json::object({{"message", error.what()}, {"type", type_of(error.status(), form)}});
  if (form == ErrorForm::kAnthropic) return Json::object({{"type", "error"}, {"error", std::move(told)}});
  told["param"] = text_or_null(error.place().param);
  told["code"] = text_or_null(error.place().code);
  return Json::object({{"error", std::move(told)}});
}

HttpResponse response_of(const ApiError& error, ErrorForm form) {
  return {.status = error.status(),
          .body = json_of(error, form).dump(),
          .retry_after = error.place().retry_after,
          .allow = error.place().allow};
}

}  // namespace heddle
