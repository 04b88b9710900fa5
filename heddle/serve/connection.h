// One client of a Server. All but the calls of Reply run on the server's thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "heddle/serve/api_error.h"
#include "heddle/serve/server_options.h"

namespace heddle {

class Connection;

class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void closed(const std::shared_ptr<Connection>& connection) = 0;
  virtual bool is_closing() const = 0;  // each connection after its response
};

struct ConnectionTerms {
  const ServerOptions& options;
  HttpHandler& handler;
  ConnectionOwner& owner;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  Connection(Socket socket, const ConnectionTerms& terms);

  void start();
  void close();
  void close_if_idle();

 private:
  class Answer;
  using Failure = boost::system::error_code;

  void read();
  void took(const Failure& error, size_t bytes);
  void go_on();
  void answer(HttpRequest request);
  void refuse(const ApiError& error);
  void put(std::string bytes);
  void write();
  void sent(const Failure& error, size_t bytes);
  void finish();
  void close_gently();
  void limit(std::chrono::milliseconds time);
  void ran_out();

  Socket socket_;
  const ConnectionTerms terms_;
  RequestReader reader_;
  boost::asio::steady_timer timer_;
  std::array<char, 16384> in_;
  std::shared_ptr<Answer> answer_;  // to the request that is being answered
  std::deque<std::string> out_;
  size_t written_ = 0;  // bytes of out_.front()
  bool reading_ = false, is_reading_request_ = false, lingers_ = false, closes_ = false, is_closed_ = false;
};

}  // namespace heddle
