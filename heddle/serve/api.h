// The endpoints of a server: finds the one that a request asks for, refuses requests without a key, and knows whether the
// engine is well. Until open() the model loads, and only questions about the server itself are answered.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "heddle/serve/asked.h"
#include "heddle/serve/exchange.h"
#include "heddle/serve/keys.h"

namespace heddle {

struct ApiOptions {
  Keys keys = {};
  LogForm log = LogForm::kNone;
  size_t max_waiting = 256;  // answers that wait for the engine; more are refused with 429
  size_t workers = 2;        // threads for JSON and text
  // The engine is taken for stuck if it has answers to make and ends no step in this time.
  std::chrono::milliseconds step_limit{120'000};
};

class Api : public HttpHandler {
 public:
  explicit Api(ApiOptions options);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api() override;

  // `engine` outlives the service that this makes of it.
  Service& open(ServedModel model, Engine& engine);
  // Refuses requests from now on.
  void refuse_new();
  // After refuse_new(): answers may end within `drain`, and are cancelled then. Returns when all responses were handed over.
  void stop(std::chrono::milliseconds drain);
  // Looks whether the engine ends steps; on the server's thread, now and then.
  void look();

  void handle(HttpRequest request, const std::shared_ptr<Reply>& reply) override;
  const Metrics& metrics() const { return metrics_; }
  void count_connections(std::function<size_t()> count) { connections_ = std::move(count); }

 private:
  struct Serving;
  struct Endpoint;
  static std::span<const Endpoint> endpoints();
  const Endpoint& endpoint_of(const HttpRequest& request) const;
  void run(const Endpoint& endpoint, const HttpRequest& request, const std::shared_ptr<Reply>& reply,
           RequestRecord record);
  void refuse(const ApiError& error, const Endpoint* endpoint, const std::shared_ptr<Reply>& reply,
              RequestRecord record);
  bool is_well() const;
  HttpResponse health(const std::string& body) const;
  HttpResponse ready(const std::string& body) const;
  HttpResponse metrics_page(const std::string& body) const;
  HttpResponse page(const std::string& body) const;
  HttpResponse openapi(const std::string& body) const;
  HttpResponse models(const std::string& body) const;
  HttpResponse one_model(const std::string& name) const;
  HttpResponse tokenize(const std::string& body) const;
  HttpResponse count_message(const std::string& body) const;
  HttpResponse detokenize(const std::string& body) const;

  const ApiOptions options_;
  Metrics metrics_;
  std::function<size_t()> connections_ = [] { return size_t(0); };
  Workers workers_;
  std::unique_ptr<Serving> made_;
  std::atomic<Serving*> serving_ = nullptr;  // made_, once it is whole
  std::atomic<bool> is_closing_ = false;
  std::atomic<u64> tellings_ = 0;  // work such as compiling told its progress so often
  // The server's thread alone uses these two.
  u64 seen_ = 0;
  std::chrono::steady_clock::time_point moved_ = std::chrono::steady_clock::now();
};

}  // namespace heddle
