// Speaks HTTP/1.1 with any number of clients, on one thread that never waits for one of them. What requests mean is the
// handler's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "heddle/serve/server_options.h"

namespace heddle {

class Server {
 public:
  // Listens from here on. `handler` outlives the server. Throws Error(kIo) where the address cannot be had.
  Server(const ServerOptions& options, HttpHandler& handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // closes all connections

  i32 port() const;
  size_t connections() const;
  // The server's thread calls it for SIGINT and SIGTERM, which do nothing else from now on.
  void on_signal(std::function<void()> call);
  // The server's thread calls it each period.
  void every(std::chrono::milliseconds period, std::function<void()> call);
  // Accepts no more clients, and closes a connection once its response has ended.
  void refuse_new();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
