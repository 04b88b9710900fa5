#include "heddle/serve/request_log.h"

#include <cstdio>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "heddle/base/json.h"

namespace heddle {
namespace {

// A client chooses the path, and may put anything into it.
std::string printable(const std::string& text) {
  std::string made;
  for (const char c : text.substr(0, 100)) made += c >= ' ' && c < 127 ? c : '?';
  return made;
}

std::string text_of(const RequestRecord& record, double seconds) {
  std::string line = fmt::format("{:%H:%M:%S} {} {} {} in {:.3f} s", fmt::localtime(std::time(nullptr)),
                                 record.status, printable(record.method), printable(record.path), seconds);
  if (!record.ended.empty())
    line += fmt::format(": {} + {} tokens, {}", record.prompt_tokens, record.answer_tokens, record.ended);
  if (!record.error.empty()) line += " (" + record.error + ")";
  return line;
}

std::string json_of(const RequestRecord& record, double seconds) {
  Json made = Json::object({{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                            {"method", printable(record.method)},
                            {"path", printable(record.path)},
                            {"status", record.status},
                            {"seconds", seconds}});
  if (!record.ended.empty()) {
    made["prompt_tokens"] = record.prompt_tokens;
    made["answer_tokens"] = record.answer_tokens;
    made["first_token_seconds"] = record.first_token;
    made["ended"] = record.ended;
  }
  if (!record.error.empty()) made["error"] = record.error;
  return made.dump();
}

}  // namespace

void write_log(LogForm form, const RequestRecord& record) {
  if (form == LogForm::kNone) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - record.came).count();
  const std::string line =
      (form == LogForm::kJson ? json_of(record, seconds) : text_of(record, seconds)) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace heddle
