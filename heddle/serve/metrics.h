// Counts of a server, as Prometheus reads them. Any thread counts.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "heddle/session/service.h"

namespace heddle {

// Counts of seconds.
class Histogram {
 public:
  void add(double seconds);
  void write(std::string& text, const char* name, const char* help) const;

 private:
  static constexpr std::array kBounds{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                      0.5,   1.0,   2.0,   5.0,  10.0, 30.0, 60.0};
  std::array<std::atomic<u64>, kBounds.size() + 1> counts_{};
  std::atomic<u64> nanoseconds_ = 0;
};

struct Metrics {
  std::atomic<u64> requests = 0, refused = 0, failed = 0,
                   left = 0;  // left: the client did, before its answer ended
  std::atomic<u64> prompt_tokens = 0, answer_tokens = 0;
  std::atomic<i64> answering = 0, stalled = 0;  // requests; stalled: their clients read slowly
  Histogram first_token, between_tokens, whole;

  std::string text(const ServiceStats& stats, i32 pages, size_t connections) const;
};

}  // namespace heddle
