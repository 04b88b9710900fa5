#include "heddle/serve/server.h"

#include <csignal>
#include <exception>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "heddle/base/thread.h"
#include "heddle/serve/connection.h"

namespace heddle {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorOf = boost::system::error_code;

struct Server::State : ConnectionOwner {
  State(const ServerOptions& given, HttpHandler& handler) : options(given), shared{options, handler, *this} {}

  void listen();
  void accept();
  void take(tcp::socket socket);
  void wait_for_signal(std::function<void()> call);
  void tick(const std::shared_ptr<asio::steady_timer>& timer, std::chrono::milliseconds period,
            std::function<void()> call);
  void closed(const std::shared_ptr<Connection>& connection) override;
  bool is_closing() const override { return refuses; }

  const ServerOptions options;
  const ConnectionTerms shared;
  asio::io_context io;
  tcp::acceptor acceptor{io};
  asio::signal_set signals{io};
  asio::steady_timer pause{io};
  std::set<std::shared_ptr<Connection>> open;
  std::atomic<size_t> count = 0;
  std::atomic<bool> refuses = false;
  std::optional<Thread> thread;
};

void Server::State::listen() {
  const auto wrong = [this](const std::string& what) {
    fail(ErrorCode::kIo, "[serve] {}:{} cannot be listened at: {}; --host and --port give another address",
         options.host, options.port, what);
  };
  ErrorOf error;
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) wrong("the host is no address such as 127.0.0.1, 0.0.0.0 or ::1");
  const tcp::endpoint endpoint(address, u16(options.port));
  try {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& failure) {
    wrong(failure.code().message());
  }
}

void Server::State::accept() {
  acceptor.async_accept([this](const ErrorOf& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || refuses) return;
    if (!error) {
      take(std::move(socket));
      return accept();
    }
    // No file descriptor is left, perhaps; one is soon.
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](const ErrorOf& ended) {
      if (!ended) accept();
    });
  });
}

void Server::State::take(tcp::socket socket) {
  ErrorOf ignored;
  if (open.size() >= options.connections) {
    static constexpr char kFull[] =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: "
        "close\r\n\r\n";
    std::ignore = socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kFull, sizeof kFull - 1), ignored);
    return;
  }
  std::ignore = socket.set_option(tcp::no_delay(true), ignored);
  std::ignore = socket.set_option(tcp::socket::send_buffer_size(options.kernel_bytes), ignored);
  const auto connection = std::make_shared<Connection>(std::move(socket), shared);
  open.insert(connection);
  count = open.size();
  connection->start();
}

void Server::State::closed(const std::shared_ptr<Connection>& connection) {
  open.erase(connection);
  count = open.size();
}

void Server::State::wait_for_signal(std::function<void()> call) {
  signals.async_wait([this, call = std::move(call)](const ErrorOf& error, int) mutable {
    if (error) return;
    call();
    wait_for_signal(std::move(call));
  });
}

void Server::State::tick(const std::shared_ptr<asio::steady_timer>& timer, std::chrono::milliseconds period,
                         std::function<void()> call) {
  timer->expires_after(period);
  timer->async_wait([this, timer, period, call = std::move(call)](const ErrorOf& error) mutable {
    if (error) return;
    call();
    tick(timer, period, std::move(call));
  });
}

Server::Server(const ServerOptions& options, HttpHandler& handler)
    : state_(std::make_unique<State>(options, handler)) {
  state_->listen();
  state_->accept();
  auto started = Thread::try_start([io = &state_->io] {
    const auto guard = asio::make_work_guard(*io);
    while (!io->stopped()) try {
        io->run();
      } catch (const std::exception&) {  // memory ran out: one client loses its response
      }
  });
  if (!started) fail(ErrorCode::kUnsupported, "[serve] {}", threads_refused(1, 0, started.message()));
  state_->thread = std::move(started).value();
}

Server::~Server() {
  asio::post(state_->io, [state = state_.get()] {
    const auto all = std::exchange(state->open, {});
    for (const auto& connection : all) connection->close();
    state->io.stop();
  });
  state_->thread.reset();  // joins it
}

i32 Server::port() const {
  return state_->acceptor.local_endpoint().port();
}

size_t Server::connections() const {
  return state_->count;
}

void Server::on_signal(std::function<void()> call) {
  asio::post(state_->io, [state = state_.get(), call = std::move(call)]() mutable {
    state->signals.add(SIGINT);
    state->signals.add(SIGTERM);
    state->wait_for_signal(std::move(call));
  });
}

void Server::every(std::chrono::milliseconds period, std::function<void()> call) {
  asio::post(state_->io, [state = state_.get(), period, call = std::move(call)]() mutable {
    state->tick(std::make_shared<asio::steady_timer>(state->io), period, std::move(call));
  });
}

void Server::refuse_new() {
  state_->refuses = true;
  asio::post(state_->io, [state = state_.get()] {
    ErrorOf ignored;
    std::ignore = state->acceptor.close(ignored);
    const auto all = state->open;
    for (const auto& connection : all) connection->close_if_idle();
  });
}

}  // namespace heddle
