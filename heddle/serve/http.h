// Requests and responses of HTTP/1.1, apart from any socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "heddle/base/types.h"

namespace heddle {

struct HttpRequest {
  std::string method, path;  // "POST", "/v1/models"; without a query
  std::string body;
  std::string host, origin;
  std::string key;  // from "Authorization: Bearer KEY" or "x-api-key: KEY"
  bool keeps_alive = true;
  bool is_chunkable = true;  // the client reads HTTP/1.1
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  int retry_after = 0;     // seconds; 0: not said
  std::string allow = {};  // methods that the path takes; "": not said
};

// The response to one request, whole or in pieces. Any thread may call it; once the client has left, the calls do nothing.
class Reply {
 public:
  struct Watch {                            // called by the server's thread; must not wait
    std::function<void()> on_gone = {};     // the client has left, or takes nothing any more
    std::function<void()> on_drained = {};  // all that was written has been sent
  };

  virtual ~Reply() = default;
  // The functions of `watch` live until the response has ended or the client has left. A client that has left already is told at once.
  virtual void watch(Watch watch) = 0;
  virtual void send(HttpResponse response) = 0;
  // The head of a response in pieces; its body is the first of them.
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end() = 0;
  virtual size_t unsent() const = 0;  // bytes that were written and not sent
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // On the server's thread: must not wait. What it throws is the response.
  virtual void handle(HttpRequest request, const std::shared_ptr<Reply>& reply) = 0;
};

}  // namespace heddle
