// Where a server listens, and how long and how much its clients may send.
#pragma once

#include <chrono>
#include <string>

#include "heddle/serve/request_reader.h"

namespace heddle {

struct ServerOptions {
  std::string host = "127.0.0.1";
  i32 port = 8000;  // 0: any free one
  HttpLimits limits = {};
  size_t connections = 1024;  // at once; more are refused with 503
  // A connection is closed that is idle for so long, sends no whole request in that time, or takes nothing of its response.
  std::chrono::milliseconds idle{75'000}, sending{30'000}, stalled{30'000};
  int kernel_bytes = 256 << 10;  // that the system keeps for a client that reads slowly
};

}  // namespace heddle
