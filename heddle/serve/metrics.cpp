#include "heddle/serve/metrics.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle {
namespace {

void write(std::string& text, const char* name, const char* kind, const char* help, double value) {
  text +=
      fmt::format("# HELP heddle_{0} {1}\n# TYPE heddle_{0} {2}\nheddle_{0} {3}\n", name, help, kind, value);
}

}  // namespace

void Histogram::add(double seconds) {
  const size_t at = size_t(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin());
  ++counts_[at];
  nanoseconds_ += u64(std::max(seconds, 0.0) * 1e9);
}

void Histogram::write(std::string& text, const char* name, const char* help) const {
  text += fmt::format("# HELP heddle_{0} {1}\n# TYPE heddle_{0} histogram\n", name, help);
  u64 sum = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    sum += counts_[i];
    const std::string bound = i < kBounds.size() ? fmt::format("{}", kBounds[i]) : "+Inf";
    text += fmt::format("heddle_{}_bucket{{le=\"{}\"}} {}\n", name, bound, sum);
  }
  text += fmt::format("heddle_{0}_sum {1}\nheddle_{0}_count {2}\n", name, double(nanoseconds_) / 1e9, sum);
}

std::string Metrics::text(const ServiceStats& stats, i32 pages, size_t connections) const {
  std::string made;
  const auto gauge = [&](const char* name, const char* help, double value) {
    write(made, name, "gauge", help, value);
  };
  const auto counter = [&](const char* name, const char* help, u64 value) {
    write(made, name, "counter", help, double(value));
  };
  gauge("answers_running", "Answers that have a sequence", double(stats.running));
  gauge("answers_waiting", "Answers that wait for a sequence or for pages", double(stats.waiting));
  gauge("requests_answering", "Requests whose response has not ended", double(answering));
  gauge("requests_stalled", "Requests whose client reads more slowly than the model writes", double(stalled));
  gauge("connections", "Open connections", double(connections));
  gauge("kv_pages", "Pages of the KV cache", pages);
  gauge("kv_pages_used", "Pages that sequences hold", pages - stats.free_pages);
  counter("requests_total", "Requests that came", requests);
  counter("requests_refused_total", "Requests that were refused: status 400 to 499", refused);
  counter("requests_failed_total", "Requests that failed: status 500 or more, or an error in a stream",
          failed);
  counter("requests_left_total", "Requests whose client left before the answer ended", left);
  counter("prompt_tokens_total", "Tokens of prompts of answered requests", prompt_tokens);
  counter("answer_tokens_total", "Tokens of answers", answer_tokens);
  counter("shared_tokens_total", "Tokens of prompts whose pages were there already",
          stats.batch.shared_tokens);
  counter("steps_total", "Steps of the engine", stats.batch.steps);
  counter("launches_total", "Launches, of one step or many", stats.batch.launches);
  counter("put_off_total", "Times that an answer gave its pages back", stats.batch.put_off);
  first_token.write(made, "first_token_seconds", "From a request to its first token");
  between_tokens.write(made, "between_tokens_seconds", "Between tokens of an answer");
  whole.write(made, "request_seconds", "From a request to the end of its answer");
  return made;
}

}  // namespace heddle
