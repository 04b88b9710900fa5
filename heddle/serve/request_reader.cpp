#include "heddle/serve/request_reader.h"

#include <algorithm>
#include <string>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "heddle/serve/api_error.h"

namespace heddle {

namespace beast = boost::beast;
namespace http = beast::http;

struct RequestReader::State {
  using Parser = http::request_parser<http::string_body>;

  explicit State(const HttpLimits& given) : limits(given) { begin(); }
  void begin() {
    parser.emplace();
    parser->header_limit(u32(limits.header_bytes));
    parser->body_limit(limits.body_bytes);
    parser->eager(true);
    asked_to_continue = false;
  }
  void refuse(const beast::error_code& error) const;
  HttpRequest take();

  const HttpLimits limits;
  std::optional<Parser> parser;
  std::string bytes;
  bool asked_to_continue = false;
};

namespace {

std::string text(beast::string_view view) {
  return std::string(view.data(), view.size());
}

std::string key_of(const http::request<http::string_body>& message) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string given = text(message[http::field::authorization]);
  if (given.size() >= kBearer.size() && beast::iequals(given.substr(0, kBearer.size()), kBearer.data()))
    return given.substr(kBearer.size());
  return text(message["x-api-key"]);
}

}  // namespace

void RequestReader::State::refuse(const beast::error_code& error) const {
  if (error == http::error::header_limit)
    throw ApiError(431, fmt::format("[http] the head of the request has more than {} bytes; send less",
                                    limits.header_bytes));
  if (error == http::error::body_limit)
    throw ApiError(413, fmt::format("[http] the body of the request has more than {} bytes; send less",
                                    limits.body_bytes));
  throw ApiError(400, fmt::format("[http] these bytes are no request of HTTP/1.1: {}", error.message()));
}

HttpRequest RequestReader::State::take() {
  const http::request<http::string_body>& message = parser->get();
  const std::string target = text(message.target());
  HttpRequest made{.method = text(message.method_string()),
                   .path = target.substr(0, target.find_first_of("?#")),
                   .host = text(message[http::field::host]),
                   .origin = text(message[http::field::origin]),
                   .key = key_of(message),
                   .keeps_alive = message.keep_alive(),
                   .is_chunkable = message.version() >= 11};
  made.body = std::move(parser->get().body());
  return made;
}

RequestReader::RequestReader(const HttpLimits& limits) : state_(std::make_unique<State>(limits)) {}
RequestReader::~RequestReader() = default;

void RequestReader::push(std::string_view bytes) {
  state_->bytes += bytes;
}

std::optional<HttpRequest> RequestReader::next() {
  std::string& bytes = state_->bytes;
  if (!state_->parser->got_some())
    bytes.erase(0, std::min(bytes.find_first_not_of("\r\n"), bytes.size()));  // RFC 9112, 2.2
  size_t read = 0;
  while (read < bytes.size() && !state_->parser->is_done()) {
    beast::error_code error;
    const size_t more =
        state_->parser->put(boost::asio::buffer(bytes.data() + read, bytes.size() - read), error);
    read += more;
    if (error && error != http::error::need_more) state_->refuse(error);
    if (more == 0) break;
  }
  bytes.erase(0, read);
  if (!state_->parser->is_done()) return {};
  HttpRequest made = state_->take();
  state_->begin();
  return made;
}

bool RequestReader::wants_continue() {
  if (state_->asked_to_continue || !state_->parser->is_header_done() || state_->parser->is_done())
    return false;
  state_->asked_to_continue = beast::iequals(state_->parser->get()[http::field::expect], "100-continue");
  return state_->asked_to_continue;
}

bool RequestReader::has_begun() const {
  return state_->parser->got_some() || !state_->bytes.empty();
}

size_t RequestReader::unread() const {
  return state_->bytes.size();
}

}  // namespace heddle
