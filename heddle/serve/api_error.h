// The refusal of a request, and its form in a response.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/serve/http.h"

namespace heddle {

class Json;

struct ErrorPlace {
  std::string param = {};  // the field that is wrong
  std::string code = {};   // a word for programs, such as context_length_exceeded
  int retry_after = 0;     // seconds
  std::string allow = {};  // the methods that a path takes, with 405
};

class ApiError : public Error {
 public:
  ApiError(int status, const std::string& message, ErrorPlace place = {})
      : Error(ErrorCode::kInvalidArgument, message), status_(status), place_(std::move(place)) {}

  int status() const { return status_; }
  const ErrorPlace& place() const { return place_; }

 private:
  int status_;
  ErrorPlace place_;
};

enum class ErrorForm { kOpenAi, kAnthropic };

// Makes an ApiError of any exception: a mistake of the caller is 400, a full queue 429, all else 500.
ApiError api_error_of(const std::exception_ptr& error);
Json json_of(const ApiError& error, ErrorForm form);
Json text_or_null(const std::string& text);  // null where it is empty
HttpResponse response_of(const ApiError& error, ErrorForm form = ErrorForm::kOpenAi);

}  // namespace heddle
