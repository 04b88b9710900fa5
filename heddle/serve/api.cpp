#include "heddle/serve/api.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "heddle/serve/api_error.h"
#include "heddle/serve/served_sources.h"

namespace heddle {

namespace {

std::string page_file(std::string_view name) {
  for (const EmbeddedFile& file : served_sources())
    if (std::string_view(file.path).ends_with(name)) return std::string(file.text);
  return {};
}

}  // namespace

struct Api::Serving {
  Serving(ServedModel given, Engine& engine, ServiceOptions options)
      : model(std::move(given)), pages(engine.free_pages()), service(engine, std::move(options)) {}
  const ServedModel model;
  const i32 pages;  // that the KV cache has
  Service service;
};

struct Api::Endpoint {
  const char *method, *path;
  // Answered at once on the server's thread, whatever the engine does; otherwise on a worker.
  bool is_open = false, is_quick = false;  // is_open: without a key
  HttpResponse (Api::*answer)(const std::string& body) const =
      nullptr;  // GET: the rest of the path, if it goes on
  // For endpoints that the model answers.
  Asked (*read)(const Json& body, const ServedModel& model) = nullptr;
  Exchange::MakeForm form = nullptr;
  ErrorForm errors = ErrorForm::kOpenAi;

  // A path that ends with {...} goes on with any text.
  std::string_view beginning() const {
    return std::string_view(path).substr(0, std::string_view(path).find('{'));
  }
  const char* allow() const { return std::string_view(method) == "GET" ? "GET, HEAD" : method; }
  bool goes_on() const { return beginning() != path; }
  bool has(std::string_view asked) const {
    return goes_on() ? asked.starts_with(beginning()) : asked == path;
  }
};

std::span<const Api::Endpoint> Api::endpoints() {
  static constexpr Endpoint kAll[] = {
      {.method = "GET", .path = "/health", .is_open = true, .is_quick = true, .answer = &Api::health},
      {.method = "GET", .path = "/ready", .is_open = true, .is_quick = true, .answer = &Api::ready},
      {.method = "GET", .path = "/", .is_open = true, .is_quick = true, .answer = &Api::page},
      {.method = "GET", .path = "/openapi.json", .is_open = true, .is_quick = true, .answer = &Api::openapi},
      {.method = "GET", .path = "/metrics", .is_quick = true, .answer = &Api::metrics_page},
      {.method = "GET", .path = "/v1/models", .is_quick = true, .answer = &Api::models},
      {.method = "GET", .path = "/v1/models/{model}", .is_quick = true, .answer = &Api::one_model},
      {.method = "POST", .path = "/tokenize", .answer = &Api::tokenize},
      {.method = "POST", .path = "/detokenize", .answer = &Api::detokenize},
      {.method = "POST", .path = "/v1/completions", .read = read_completion, .form = completion_form},
      {.method = "POST", .path = "/v1/chat/completions", .read = read_chat, .form = chat_form},
      {.method = "POST", .path = "/v1/responses", .read = read_response, .form = response_form},
      {.method = "POST",
       .path = "/v1/messages",
       .read = read_message,
       .form = message_form,
       .errors = ErrorForm::kAnthropic},
      {.method = "POST",
       .path = "/v1/messages/count_tokens",
       .answer = &Api::count_message,
       .errors = ErrorForm::kAnthropic},
  };
  return kAll;
}

Api::Api(ApiOptions options) : options_(std::move(options)), workers_(options_.workers) {}

Api::~Api() {
  stop(std::chrono::milliseconds(0));
}

Service& Api::open(ServedModel model, Engine& engine) {
  made_ = std::make_unique<Serving>(std::move(model), engine,
                                    ServiceOptions{.max_waiting = options_.max_waiting,
                                                   .on_progress = [this](const Progress&) { ++tellings_; }});
  serving_ = made_.get();
  return made_->service;
}

void Api::refuse_new() {
  is_closing_ = true;
}

void Api::stop(std::chrono::milliseconds drain) {
  is_closing_ = true;
  if (made_) made_->service.stop(drain);
  workers_.stop();
}

const Api::Endpoint& Api::endpoint_of(const HttpRequest& request) const {
  const auto all = endpoints();
  const auto has_path = [&](const Endpoint& one) { return one.has(request.path); };
  const auto found = std::ranges::find_if(all, has_path);
  if (found == all.end())
    throw ApiError(404, "[serve] there is nothing at this path; docs/serving.md lists what there is",
                   {.code = "not_found"});
  if (request.method != found->method)
    throw ApiError(405, fmt::format("[serve] this path takes {}", found->allow()),
                   {.code = "method_not_allowed", .allow = found->allow()});
  return *found;
}

void Api::handle(HttpRequest request, const std::shared_ptr<Reply>& reply) {
  ++metrics_.requests;
  RequestRecord record{.method = request.method, .path = request.path};
  const Endpoint* endpoint = nullptr;
  try {
    endpoint = &endpoint_of(request);
    // A page of another site may not use a server on its reader's machine.
    if (!request.origin.empty() && request.origin != "http://" + request.host &&
        request.origin != "https://" + request.host)
      throw ApiError(403, "[serve] the request comes from a page of another origin",
                     {.code = "wrong_origin"});
    if (!endpoint->is_open && !options_.keys.has(request.key))
      throw ApiError(401,
                     "[serve] the request has none of this server's keys; send Authorization: Bearer KEY",
                     {.code = "invalid_api_key"});
    if (endpoint->is_open) return reply->send((this->*endpoint->answer)(request.body));
    if (is_closing_)
      throw ApiError(503, "[serve] the server stops; ask another one",
                     {.code = "stopping", .retry_after = 5});
    if (!serving_)
      throw ApiError(503, "[serve] the model loads; ask again later", {.code = "loading", .retry_after = 5});
    const auto rest = request.path.substr(endpoint->beginning().size());
    if (endpoint->is_quick) return reply->send((this->*endpoint->answer)(rest));
  } catch (const ApiError& error) {
    return refuse(error, endpoint, reply, std::move(record));
  }
  workers_.post([this, endpoint, request = std::move(request), reply, record = std::move(record)]() mutable {
    run(*endpoint, request, reply, std::move(record));
  });
}

// On a worker.
void Api::run(const Endpoint& endpoint, const HttpRequest& request, const std::shared_ptr<Reply>& reply,
              RequestRecord record) {
  try {
    if (endpoint.answer) {
      reply->send((this->*endpoint.answer)(request.body));
      record.status = 200;
      return write_log(options_.log, record);
    }
    Serving& serving = *serving_;
    Asked asked = endpoint.read(parse_body(request.body), serving.model);
    const Exchanges shared{serving.service, workers_, metrics_, serving.model, options_.log};
    std::make_shared<Exchange>(shared, std::move(asked), endpoint.form, record)->start(reply);
  } catch (...) {
    refuse(api_error_of(std::current_exception()), &endpoint, reply, std::move(record));
  }
}

void Api::refuse(const ApiError& error, const Endpoint* endpoint, const std::shared_ptr<Reply>& reply,
                 RequestRecord record) {
  ++(error.status() < 500 ? metrics_.refused : metrics_.failed);
  record.status = error.status();
  record.error = error.place().code.empty() ? error.place().param : error.place().code;
  reply->send(response_of(error, endpoint ? endpoint->errors : ErrorForm::kOpenAi));
  write_log(options_.log, record);
}

void Api::look() {
  const Serving* serving = serving_;
  if (!serving) return;
  const BatchStats stats = serving->service.stats().batch;
  const u64 seen = stats.steps + stats.prompt_tokens + stats.new_tokens + stats.again_tokens + tellings_;
  if (std::exchange(seen_, seen) != seen || metrics_.answering <= metrics_.stalled)
    moved_ = std::chrono::steady_clock::now();
}

bool Api::is_well() const {
  return std::chrono::steady_clock::now() - moved_ < options_.step_limit;
}

HttpResponse Api::health(const std::string&) const {
  if (is_well()) return {.body = R"({"status":"ok"})"};
  return {.status = 503,
          .body = fmt::format(R"({{"status":"stuck","message":"no step has ended for {} s"}})",
                              options_.step_limit.count() / 1000)};
}

HttpResponse Api::ready(const std::string&) const {
  const char* state = is_closing_ ? "stopping" : !serving_ ? "loading" : is_well() ? "ready" : "stuck";
  const bool is_ready = state == std::string_view("ready");
  return {.status = is_ready ? 200 : 503,
          .body = fmt::format(R"({{"status":"{}"}})", state),
          .retry_after = is_ready ? 0 : 5};
}

HttpResponse Api::page(const std::string&) const {
  return {.type = "text/html; charset=utf-8", .body = page_file("index.html")};
}

HttpResponse Api::openapi(const std::string&) const {
  return {.body = page_file("openapi.json")};
}

HttpResponse Api::metrics_page(const std::string&) const {
  const Serving& serving = *serving_;
  return {.type = "text/plain; version=0.0.4",
          .body = metrics_.text(serving.service.stats(), serving.pages, connections_())};
}

namespace {

// %2F of a path becomes a slash.
std::string without_escapes(std::string_view path) {
  std::string made;
  for (size_t at = 0; at < path.size(); ++at) {
    u8 byte = 0;
    const std::string_view digits = path[at] == '%' ? path.substr(at + 1, 2) : std::string_view();
    const bool is_escape =
        digits.size() == 2 && std::from_chars(digits.begin(), digits.end(), byte, 16).ptr == digits.end();
    made += is_escape ? char(byte) : path[at];
    at += is_escape ? 2 : 0;
  }
  return made;
}

Json entry_of(const ServedModel& model) {
  return Json::object({{"id", model.names[0]},
                       {"object", "model"},
                       {"created", model.created},
                       {"owned_by", "heddle"},
                       {"max_model_len", model.context}});
}

}  // namespace

HttpResponse Api::models(const std::string&) const {
  Json list = Json::array({entry_of(serving_.load()->model)});
  return {.body = Json::object({{"object", "list"}, {"data", std::move(list)}}).dump()};
}

HttpResponse Api::one_model(const std::string& name) const {
  const ServedModel& model = serving_.load()->model;
  if (std::ranges::find(model.names, without_escapes(name)) == model.names.end())
    throw ApiError(404, fmt::format("[serve] no model has this name; this server has {}", model.names[0]),
                   {.code = "model_not_found"});
  return {.body = entry_of(model).dump()};
}

HttpResponse Api::tokenize(const std::string& body) const {
  const ServedModel& model = serving_.load()->model;
  const Json parsed = parse_body(body);
  Fields fields(parsed);
  read_model(fields, model);
  bool adds = true;
  fields.take("add_special_tokens", [&](const JsonView& value) { adds = value.as_bool(); });
  std::vector<i32> tokens;
  const bool is_chat =
      fields.take("messages", [&](const JsonView&) { tokens = read_chat(parsed, model).prompts[0].tokens; });
  if (!is_chat)
    fields.need("prompt",
                [&](const JsonView& value) { tokens = model.tokenizer.encode(value.as_string(), adds); });
  return {.body =
              Json::object({{"count", tokens.size()}, {"max_model_len", model.context}, {"tokens", tokens}})
                  .dump()};
}

HttpResponse Api::count_message(const std::string& body) const {
  Json parsed = parse_body(body);
  if (parsed.is_object()) parsed["max_tokens"] = 1;
  const Asked asked = read_message(parsed, serving_.load()->model);
  return {.body = Json::object({{"input_tokens", asked.prompts[0].tokens.size()}}).dump()};
}

HttpResponse Api::detokenize(const std::string& body) const {
  const ServedModel& model = serving_.load()->model;
  const Json parsed = parse_body(body);
  Fields fields(parsed);
  read_model(fields, model);
  std::string text;
  fields.need("tokens", [&](const JsonView& value) {
    text = model.tokenizer.decode(read_tokens(value, model.vocab), false);
  });
  return {.body = Json::object({{"prompt", text}}).dump()};
}

}  // namespace heddle
