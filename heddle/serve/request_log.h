// A line for each request, on stderr: no prompts, answers or keys are in it.
#pragma once

#include <chrono>
#include <string>

#include "heddle/base/types.h"

namespace heddle {

enum class LogForm { kNone, kText, kJson };

struct RequestRecord {
  std::string method, path;
  std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();
  int status = 0;
  std::string ended = {};  // an answer's finish reasons, "left", or "failed"
  size_t prompt_tokens = 0, answer_tokens = 0;
  double first_token = 0;  // seconds; 0: there was none
  std::string error = {};  // what the request was refused with, by its code or field
};

// Any thread calls it.
void write_log(LogForm form, const RequestRecord& record);

}  // namespace heddle
