// For tests: a client of a server on this machine that sends and reads bytes as they are.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "heddle/base/types.h"

namespace heddle {

class LoopbackClient {
 public:
  // `room`: bytes that the system keeps for this client before it reads; 0: as it likes.
  explicit LoopbackClient(i32 port, int room = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (room > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    const timeval most{.tv_sec = 120, .tv_usec = 0};  // guards against hangs
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(u16(port)),
                        .sin_addr = {htonl(INADDR_LOOPBACK)},
                        .sin_zero = {}};
    is_open_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;
  ~LoopbackClient() { ::close(socket_); }

  bool is_open() const { return is_open_; }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(size_t(sent));
    }
  }
  void send_no_more() { ::shutdown(socket_, SHUT_WR); }
  // Reads until `mark` has come, and returns what came up to its end; all that came where the server closes before.
  std::string read_to(std::string_view mark) {
    for (;;) {
      if (const size_t at = came_.find(mark); at != std::string::npos) return take(at + mark.size());
      if (!more()) return take(came_.size());
    }
  }
  std::string read_all() {
    while (more()) {
    }
    return take(came_.size());
  }
  // The next response, whose length its head says.
  std::string response() {
    std::string head = read_to("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const size_t length = std::stoul(head.substr(at + 16));
    while (came_.size() < length && more()) {
    }
    return head + take(std::min(length, came_.size()));
  }

 private:
  bool more() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    came_.append(bytes, size_t(count));
    return true;
  }
  std::string take(size_t size) {
    std::string taken = came_.substr(0, size);
    came_.erase(0, size);
    return taken;
  }

  int socket_;
  bool is_open_ = false;
  std::string came_;
};

// A request with a body; `more` are further lines of the head.
inline std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", path, more,
                     body.size(), body);
}
inline std::string get(std::string_view path, std::string_view more = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, more);
}

}  // namespace heddle
