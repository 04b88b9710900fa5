#include "heddle/serve/connection.h"

#include <ctime>
#include <exception>
#include <string_view>
#include <tuple>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/beast/http/status.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace heddle {

namespace asio = boost::asio;

namespace {

// So much is read of what a client sends before it has its response.
constexpr size_t kReadAhead = 64 << 10;
// A client that still sends gets its refusal only if the connection stays open for a moment.
constexpr std::chrono::milliseconds kLinger{2000};

std::string head_of(const HttpResponse& response, bool keeps_alive, std::string_view body) {
  const auto reason = boost::beast::http::obsolete_reason(boost::beast::http::status(response.status));
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nContent-Type: {}\r\n{}"
      "X-Content-Type-Options: nosniff\r\nConnection: {}\r\n",
      response.status, std::string_view(reason.data(), reason.size()), fmt::gmtime(std::time(nullptr)),
      response.type, body, keeps_alive ? "keep-alive" : "close");
  if (response.retry_after > 0) head += fmt::format("Retry-After: {}\r\n", response.retry_after);
  if (!response.allow.empty()) head += fmt::format("Allow: {}\r\n", response.allow);
  return head + "\r\n";
}

}  // namespace

// Any thread calls it. It hands all to the server's thread, in the same order.
class Connection::Answer : public Reply, public std::enable_shared_from_this<Answer> {
 public:
  Answer(const std::shared_ptr<Connection>& connection, const HttpRequest& request)
      : connection_(connection),
        executor_(connection->socket_.get_executor()),
        is_head_(request.method == "HEAD"),
        keeps_alive_(request.keeps_alive),
        is_chunked_(request.is_chunkable) {}

  void watch(Watch watch) override {
    on_thread([watch = std::move(watch)](Answer& self, Connection* connection) mutable {
      if (!connection || self.ended_) {
        if (!connection && watch.on_gone) watch.on_gone();
        return;
      }
      self.watch_ = std::move(watch);
    });
  }
  void send(HttpResponse response) override {
    const std::string length = fmt::format("Content-Length: {}\r\n", response.body.size());
    unsent_ += response.body.size();
    on_thread([response = std::move(response), length](Answer& self, Connection* connection) {
      if (!connection || std::exchange(self.ended_, true)) return;
      const std::string head = head_of(response, self.stays_open(*connection), length);
      self.unsent_ += head.size();
      if (self.is_head_) self.unsent_ -= response.body.size();
      connection->put(self.is_head_ ? head : head + response.body);
    });
  }
  void begin(HttpResponse head) override {
    if (!is_chunked_) keeps_alive_ = false;
    std::string first = std::move(head.body);
    on_thread([head = std::move(head)](Answer& self, Connection* connection) {
      if (!connection) return;
      std::string bytes =
          head_of(head, self.stays_open(*connection),
                  self.is_chunked_ ? "Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\n"
                                   : "Cache-Control: no-cache\r\n");
      self.unsent_ += bytes.size();
      connection->put(std::move(bytes));
    });
    write(std::move(first));
  }
  void write(std::string piece) override {
    if (piece.empty()) return;  // an empty chunk ends the body
    if (is_chunked_) piece = fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
    unsent_ += piece.size();
    on_thread([piece = std::move(piece)](Answer& self, Connection* connection) mutable {
      if (connection && !self.ended_) connection->put(std::move(piece));
    });
  }
  void end() override {
    on_thread([](Answer& self, Connection* connection) {
      if (!connection || std::exchange(self.ended_, true)) return;
      const std::string last = self.is_chunked_ ? "0\r\n\r\n" : "";
      self.unsent_ += last.size();
      connection->put(last);
    });
  }
  size_t unsent() const override { return unsent_; }

  // The server's thread calls these.
  bool has_ended() const { return ended_; }
  bool keeps_alive() const { return keeps_alive_; }
  void sent(size_t bytes) { unsent_ -= bytes; }
  void drained() const {
    if (watch_.on_drained) watch_.on_drained();
  }
  void gone() {
    connection_.reset();
    if (const Watch watch = std::exchange(watch_, {}); watch.on_gone && !ended_) watch.on_gone();
  }
  void forget() { watch_ = {}; }

 private:
  bool stays_open(const Connection& connection) {
    keeps_alive_ = keeps_alive_ && !connection.terms_.owner.is_closing();
    return keeps_alive_;
  }
  void on_thread(auto call) {
    asio::dispatch(executor_, [self = shared_from_this(), call = std::move(call)]() mutable {
      const auto connection = self->connection_.lock();
      call(*self, connection && connection->answer_ == self ? connection.get() : nullptr);
    });
  }

  std::weak_ptr<Connection> connection_;
  const boost::asio::any_io_executor executor_;
  const bool is_head_;
  std::atomic<bool> keeps_alive_;
  const bool is_chunked_;
  std::atomic<size_t> unsent_ = 0;
  bool ended_ = false;
  Watch watch_;
};

Connection::Connection(Socket socket, const ConnectionTerms& terms)
    : socket_(std::move(socket)),
      terms_(terms),
      reader_(terms.options.limits),
      timer_(socket_.get_executor()) {}

void Connection::start() {
  limit(terms_.options.idle);
  read();
}

void Connection::read() {
  if (reading_ || is_closed_ || (answer_ && reader_.unread() > kReadAhead)) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(in_), [self = shared_from_this()](const Failure& error, size_t bytes) {
    self->reading_ = false;
    self->took(error, bytes);
  });
}

void Connection::took(const Failure& error, size_t bytes) {
  if (is_closed_) return;
  if (error) {
    // The rest of a response that has ended may still be sent to a client that sends no more.
    if (error != asio::error::eof || lingers_ || !answer_ || !answer_->has_ended()) return close();
    closes_ = true;
    return;
  }
  if (!lingers_) {
    reader_.push({in_.data(), bytes});
    go_on();
  }
  read();
}

// Answers the next request, if it is there and none is being answered.
void Connection::go_on() {
  if (answer_ || closes_ || is_closed_) return;
  try {
    if (auto request = reader_.next()) return answer(std::move(*request));
    if (reader_.wants_continue()) put("HTTP/1.1 100 Continue\r\n\r\n");
  } catch (const ApiError& error) {
    return refuse(error);
  }
  if (!std::exchange(is_reading_request_, reader_.has_begun()) && is_reading_request_)
    limit(terms_.options.sending);
}

void Connection::answer(HttpRequest request) {
  is_reading_request_ = false;
  answer_ = std::make_shared<Answer>(shared_from_this(), request);
  timer_.cancel();  // an answer takes its time
  const auto answer = answer_;
  if (request.method == "HEAD") request.method = "GET";
  try {
    terms_.handler.handle(std::move(request), answer);
  } catch (...) {
    answer->send(response_of(api_error_of(std::current_exception())));
  }
}

// The bytes cannot be read any further.
void Connection::refuse(const ApiError& error) {
  answer_ = std::make_shared<Answer>(shared_from_this(), HttpRequest{.keeps_alive = false});
  answer_->send(response_of(error));
}

void Connection::put(std::string bytes) {
  if (is_closed_) return;
  const bool is_idle = out_.empty();
  out_.push_back(std::move(bytes));
  if (!is_idle) return;
  limit(terms_.options.stalled);
  write();
}

void Connection::write() {
  while (!out_.empty() && written_ == out_.front().size()) out_.pop_front(), written_ = 0;
  if (out_.empty()) return finish();
  const std::string& front = out_.front();
  socket_.async_write_some(
      asio::buffer(front.data() + written_, front.size() - written_),
      [self = shared_from_this()](const Failure& error, size_t bytes) { self->sent(error, bytes); });
}

void Connection::sent(const Failure& error, size_t bytes) {
  if (is_closed_) return;
  if (error) return close();
  written_ += bytes;
  if (answer_) answer_->sent(bytes);
  limit(terms_.options.stalled);
  write();
}

// All that was written has been sent.
void Connection::finish() {
  timer_.cancel();
  if (!answer_) return limit(terms_.options.sending);  // that was "100 Continue"
  if (!answer_->has_ended()) return answer_->drained();
  answer_->forget();
  const bool stays = answer_->keeps_alive() && !closes_ && !terms_.owner.is_closing();
  answer_.reset();
  if (!stays) return close_gently();
  limit(terms_.options.idle);
  go_on();
  read();
}

void Connection::close_gently() {
  Failure ignored;
  closes_ = lingers_ = true;
  std::ignore = socket_.shutdown(Socket::shutdown_send, ignored);
  limit(kLinger);
  read();
}

void Connection::close() {
  if (std::exchange(is_closed_, true)) return;
  const auto self = shared_from_this();
  Failure ignored;
  std::ignore = socket_.close(ignored);
  timer_.cancel();
  if (const auto answer = std::exchange(answer_, {})) answer->gone();
  terms_.owner.closed(self);
}

void Connection::close_if_idle() {
  if (!answer_ && !reader_.has_begun()) close_gently();
}

void Connection::limit(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](const Failure& error) {
    // A timer that was set again may have run out before.
    if (!error && self->timer_.expiry() <= std::chrono::steady_clock::now()) self->ran_out();
  });
}

void Connection::ran_out() {
  if (is_closed_) return;
  if (answer_ || lingers_ || !reader_.has_begun()) return close();
  refuse(ApiError(408, fmt::format("[http] no whole request came in {} s; send it at once",
                                   terms_.options.sending.count() / 1000)));
}

}  // namespace heddle
