// Reads the requests of one connection from the bytes that come over it, in whatever pieces.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "heddle/serve/http.h"

namespace heddle {

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 4 << 20;
};

class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  void push(std::string_view bytes);
  // The next request, once it is whole. Throws ApiError where the bytes are none or exceed a limit; nothing can be read
  // after that.
  std::optional<HttpRequest> next();
  // True once for a request whose client waits for "100 Continue" before it sends the body.
  bool wants_continue();
  bool has_begun() const;  // a part of a request is there
  size_t unread() const;   // bytes that next() has not read

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
