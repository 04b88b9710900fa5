// A server of the shipped model, and clients of all kinds on loopback.
#include "heddle/serve/server.h"

#include <future>
#include <latch>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/model/build/family.h"
#include "heddle/serve/api.h"
#include "heddle/serve/loopback.h"

namespace heddle {
namespace {

const std::string kServed = HEDDLE_SOURCE_DIR "/models/storyteller";

// The engine's thread stays in this job until it is opened.
class Gate : public Answer {
 public:
  using Answer::Answer;
  bool take(i32 token) override {
    reached.count_down();
    opened.get_future().wait();
    return Answer::take(token);
  }
  std::latch reached{1};
  std::promise<void> opened;
};

ServedModel served(const Engine& engine) {
  return {.names = {"storyteller"},
          .tokenizer = Tokenizer::load(kServed),
          .chat = ChatTemplate::load(kServed),
          .settings = model_settings(kServed),
          .vocab = engine.info().vocab,
          .context = engine.max_context()};
}

struct Served {
  explicit Served(ApiOptions api_options = {}, const ServerOptions& options = {.port = 0}, i32 sequences = 4)
      : engine(open_model(kServed), {.max_sequences = sequences}),
        api(std::move(api_options)),
        service(api.open(served(engine), engine)),
        server(options, api) {
    server.every(std::chrono::milliseconds(10), [this] { api.look(); });
  }
  ~Served() { api.stop(std::chrono::milliseconds(0)); }

  std::string ask(const std::string& bytes) const {
    LoopbackClient client(server.port());
    client.send(bytes);
    return client.response();
  }
  static Json body_of(const std::string& response) {
    return parse_json(response.substr(response.find("\r\n\r\n") + 4), "response");
  }
  Json ask_json(std::string_view path, std::string_view body) const { return body_of(ask(post(path, body))); }
  // Waits until no answer runs or waits, and says how many pages are held.
  i32 held_pages() {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      const ServiceStats stats = service.stats();
      if (stats.running + stats.waiting == 0 && api.metrics().answering == 0)
        return 4 * 12 - stats.free_pages;
    }
  }
  std::shared_ptr<Gate> hold_engine() {
    const auto gate = std::make_shared<Gate>(model_settings(kServed), std::vector<i32>{1}, tokenizer);
    std::vector<Request> one(1);
    one[0].job = gate;
    service.submit(std::move(one));
    gate->reached.wait();
    return gate;
  }

  const Tokenizer tokenizer = Tokenizer::load(kServed);
  Engine engine;
  Api api;
  Service& service;
  Server server;
};

std::string text_of(const Json& answer) {
  return answer.at("choices").items()[0].at("text").as_string();
}

const std::string kSum = R"({"prompt": "27 + 45 =", "max_tokens": 8})";
const std::string kLong =
    R"({"prompt": "Once upon a time", "max_tokens": 700, "ignore_eos": true, "stream": true})";

TEST(Server, Answers) {
  Served at;
  const Json sum = at.ask_json("/v1/completions", kSum);
  EXPECT_EQ(text_of(sum), " 72.");
  EXPECT_EQ(sum.at("choices").items()[0].at("finish_reason").as_string(), "stop");
  EXPECT_EQ(sum.at("usage").at("prompt_tokens").to_int(), 8);
  const Json chat =
      at.ask_json("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "9 + 2"}]})");
  EXPECT_EQ(chat.at("choices").items()[0].at("message").at("content").as_string(), " 11.");
  const std::string head = at.ask("HEAD /health HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n")) << head;
  EXPECT_NE(at.ask(get("/")).find("<title>heddle</title>"), std::string::npos);
  EXPECT_EQ(Served::body_of(at.ask(get("/openapi.json"))).at("paths").size(), 12u);
  EXPECT_NE(at.ask(get("/v1/models/story%74eller")).find("\"id\":\"storyteller\""), std::string::npos);
  for (const char* name : {"", "another", "storyteller%", "storyteller%00", "storyteller/x", "%zz%f"})
    EXPECT_NE(at.ask(get(std::string("/v1/models/") + name)).find("model_not_found"), std::string::npos)
        << name;
  EXPECT_EQ(at.held_pages(), 0);
}

TEST(Server, SaysWhichMethodsAPathTakes) {
  const Served served;
  const std::string wrong = served.ask("DELETE /health HTTP/1.1\r\nHost: a\r\n\r\n"),
                    other = served.ask("GET /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(wrong.starts_with("HTTP/1.1 405") &&
              wrong.find("\r\nAllow: GET, HEAD\r\n") != std::string::npos)
      << wrong;
  EXPECT_TRUE(other.starts_with("HTTP/1.1 405") && other.find("\r\nAllow: POST\r\n") != std::string::npos)
      << other;
}

TEST(Server, StreamsWholeCharactersAndNoStopString) {
  Served at;
  LoopbackClient client(at.server.port());
  client.send(post("/v1/completions",
                   R"({"prompt": "Once upon a time", "max_tokens": 60, "stop": "village", "stream": true,
                       "stream_options": {"include_usage": true}})"));
  const std::string all = client.read_to("\r\n0\r\n\r\n");
  std::string text;
  for (size_t at_data = 0; (at_data = all.find("data: {", at_data)) != std::string::npos; ++at_data) {
    const Json piece = parse_json(all.substr(at_data + 6, all.find('\n', at_data) - at_data - 6), "event");
    if (piece.at("choices").size() > 0) text += text_of(piece);
  }
  EXPECT_EQ(text, ", a boy named Hassan lived in a ");
  EXPECT_EQ(all.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_NE(all.find("\"completion_tokens\":"), std::string::npos);
  client.send(get("/health"));
  EXPECT_NE(client.response().find("200 OK"), std::string::npos) << "the connection stays open";
}

TEST(Server, LivesThroughEveryPrefixOfARequest) {
  Served at;
  const std::string request = post("/v1/completions", kSum);
  for (size_t size = 0; size < request.size(); ++size) {
    LoopbackClient client(at.server.port());
    client.send(request.substr(0, size));
  }
  LoopbackClient slow(at.server.port());
  for (const char byte : request) slow.send({&byte, 1});
  EXPECT_EQ(text_of(Served::body_of(slow.response())), " 72.");
  EXPECT_EQ(at.held_pages(), 0);
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  Served at;
  LoopbackClient client(at.server.port());
  std::string all;
  for (int i = 10; i < 15; ++i) all += post("/v1/completions", fmt::format(R"({{"prompt": "{} + 5 ="}})", i));
  client.send(all + get("/health"));
  for (int i = 10; i < 15; ++i)
    EXPECT_EQ(text_of(Served::body_of(client.response())), fmt::format(" {}.", i + 5));
  EXPECT_NE(client.response().find("ok"), std::string::npos);
}

TEST(Server, StopsWorkForClientsThatLeave) {
  Served at;
  for (int i = 0; i < 12; ++i) {
    LoopbackClient client(at.server.port());
    client.send(
        post("/v1/completions", i % 3 == 0 ? R"({"prompt": "Once", "n": 3, "ignore_eos": true})" : kLong));
    if (i % 3 == 1) client.read_to("data: ");
  }
  EXPECT_EQ(at.held_pages(), 0);
  EXPECT_LT(at.api.metrics().answer_tokens, 12u * 700) << "nobody waited for the rest";
  EXPECT_EQ(text_of(at.ask_json("/v1/completions", kSum)), " 72.");
}

TEST(Server, OneThatNeverReadsHoldsUpNobody) {
  Served at({}, {.port = 0, .stalled = std::chrono::milliseconds(300), .kernel_bytes = 4096});
  LoopbackClient never(at.server.port(), 1024);
  never.send(post("/v1/completions",  // each event has a KiB
                  R"({"prompt": "Once", "ignore_eos": true, "stream": true, "logprobs": 20})"));
  EXPECT_EQ(text_of(at.ask_json("/v1/completions", kSum)), " 72.");
  EXPECT_EQ(at.held_pages(), 0) << "it was given up";
  EXPECT_EQ(at.api.metrics().left, 1u);
}

TEST(Server, RefusesWhenTheQueueIsFull) {
  Served at({.max_waiting = 3}, {.port = 0}, 1);  // one of them is the gate
  const auto gate = at.hold_engine();
  LoopbackClient first(at.server.port());
  first.send(post("/v1/completions", R"({"prompt": "27 + 45 =", "n": 2})"));
  while (at.api.metrics().answering == 0) std::this_thread::yield();
  std::string refused;
  while ((refused = at.ask(post("/v1/completions", kSum))).find("429") == std::string::npos) {
  }
  EXPECT_NE(refused.find("Retry-After: "), std::string::npos);
  EXPECT_NE(refused.find("queue_full"), std::string::npos);
  gate->opened.set_value();
  EXPECT_EQ(text_of(Served::body_of(first.response())), " 72.");
}

TEST(Server, SaysWhenNoStepEnds) {
  Served at({.step_limit = std::chrono::milliseconds(100)});
  const auto gate = at.hold_engine();
  LoopbackClient waits(at.server.port());
  waits.send(post("/v1/completions", kSum));
  while (at.ask(get("/health")).find("503") == std::string::npos) std::this_thread::yield();
  EXPECT_NE(at.ask(get("/ready")).find("stuck"), std::string::npos);
  gate->opened.set_value();
  EXPECT_EQ(text_of(Served::body_of(waits.response())), " 72.");
  while (at.ask(get("/health")).find("200 OK") == std::string::npos) std::this_thread::yield();
}

TEST(Server, AsksForAKey) {
  const std::string file = testing::TempDir() + "/heddle_keys";
  std::FILE* made = std::fopen(file.c_str(), "w");
  std::fputs("# mine\nfirst\n\nsecond \n", made);
  std::fclose(made);
  Served at({.keys = Keys::load(file)});
  const auto status = [&](const std::string& line) { return at.ask(get("/v1/models", line)).substr(9, 3); };
  EXPECT_EQ(status(""), "401");
  EXPECT_EQ(status("Authorization: Bearer firs\r\n"), "401");
  EXPECT_EQ(status("Authorization: Bearer firstfirst\r\n"), "401");
  EXPECT_EQ(status("Authorization: Bearer first\r\n"), "200");
  EXPECT_EQ(status("x-api-key: second\r\n"), "200");
  EXPECT_EQ(status("Authorization: Bearer second\r\nOrigin: http://elsewhere\r\n"), "403");
  EXPECT_EQ(at.ask(get("/health")).substr(9, 3), "200");
}

TEST(Server, LoadsAndStops) {
  Api api({});
  Server server({.port = 0}, api);
  const auto ask = [&](const std::string& bytes) {
    LoopbackClient client(server.port());
    client.send(bytes);
    return client.response();
  };
  EXPECT_NE(ask(get("/ready")).find("503"), std::string::npos);
  EXPECT_NE(ask(get("/ready")).find("loading"), std::string::npos);
  EXPECT_NE(ask(get("/health")).find("200 OK"), std::string::npos);
  EXPECT_NE(ask(post("/v1/completions", kSum)).find("\"loading\""), std::string::npos);
  Engine engine(open_model(kServed), {.max_sequences = 1});
  api.open(served(engine), engine);
  EXPECT_NE(ask(get("/ready")).find("200 OK"), std::string::npos);
  LoopbackClient running(server.port()), idle(server.port());
  running.send(
      post("/v1/completions", R"({"prompt": "Once", "max_tokens": 60, "ignore_eos": true, "stream": true})"));
  running.read_to("data: ");
  api.refuse_new();
  EXPECT_NE(ask(post("/v1/completions", kSum)).find("\"stopping\""), std::string::npos);
  server.refuse_new();
  EXPECT_EQ(idle.read_all(), "") << "closed";
  api.stop(std::chrono::minutes(1));
  EXPECT_NE(running.read_all().find("data: [DONE]"), std::string::npos) << "it was let to its end";
}

}  // namespace
}  // namespace heddle
