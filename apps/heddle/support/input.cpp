#include "apps/heddle/support/input.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// Adds what is there to `text`. False at the end of stdin.
bool read_more(std::string& text) {
  constexpr size_t kBytes = size_t{1} << 16;
  const size_t before = text.size();
  text.resize(before + kBytes);
  ssize_t count = -1;
  do count = ::read(STDIN_FILENO, text.data() + before, kBytes);
  while (count < 0 && errno == EINTR);
  text.resize(before + size_t(count < 0 ? 0 : count));
  if (count < 0) fail_stdin();
  return count > 0;
}

}  // namespace

void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one, because those before it are taken.
    [[maybe_unused]] const int held = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void fail_stdin() {
  fail(ErrorCode::kIo, "[stdin] cannot read: {} (errno {}); a file, a pipe or a terminal is expected",
       std::strerror(errno), errno);
}

std::string read_stdin() {
  std::string text;
  while (read_more(text)) {
  }
  return text;
}

std::string without_mark_and_end(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.ends_with('\n')) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  return std::string(text);
}

bool StdinLines::next(std::string& line) {
  size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos && !ended_) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t seen = buffer_.size();
    ended_ = !read_more(buffer_);
    end = buffer_.find('\n', seen);
  }
  if (end == std::string::npos && at_ == buffer_.size()) return false;
  line.assign(buffer_, at_, end == std::string::npos ? end : end - at_);
  at_ = end == std::string::npos ? buffer_.size() : end + 1;
  if (line.ends_with('\r')) line.pop_back();
  if (std::exchange(first_, false) && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

std::vector<int64_t> parse_ids(std::string_view text, const std::string& where) {
  constexpr std::string_view kBetween = " ,\t\r\n";
  std::vector<int64_t> ids;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::string_view word = text.substr(at, text.find_first_of(kBetween, at) - at);
    int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    require(error == std::errc() && end == word.data() + word.size(),
            "[{}] '{}' is not a token id; whole numbers are expected, such as 1,2,3", where,
            word.substr(0, 40));
    ids.push_back(id);
    at = text.find_first_not_of(kBetween, at + word.size());
  }
  return ids;
}

std::vector<int32_t> parse_tokens(std::string_view text, const std::string& where) {
  std::vector<int32_t> tokens;
  for (int64_t id : parse_ids(text, where)) {
    require(id == int32_t(id), "[{}] {} is not a token id; they are below 2^31", where, id);
    tokens.push_back(int32_t(id));
  }
  require(!tokens.empty(), "[{}] no token ids are given; give some, such as 1,2,3", where);
  return tokens;
}

void require_utf8(std::string_view text, const std::string& where) {
  const size_t at = find_invalid_utf8(text);
  require(at == std::string_view::npos, "[{}] is not UTF-8: byte {:#04x} at byte {}; convert it first", where,
          at < text.size() ? unsigned(static_cast<unsigned char>(text[at])) : 0u, at);
}

}  // namespace heddle
