// Requests of many threads on the shipped model. What has to happen in an order waits for a gate, never for a time.
#include "heddle/session/service.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/model/build/family.h"
#include "heddle/session/token_stream.h"

namespace heddle {
namespace {

const std::string kServed = HEDDLE_SOURCE_DIR "/models/storyteller";

// Holds the service's thread at its second token, until it is opened.
class Gate : public Answer {
 public:
  using Answer::Answer;
  bool take(i32 token) override {
    const bool more = Answer::take(token);
    if (tokens().size() == 2) {
      reached.count_down();
      opened.get_future().wait();
    }
    return more;
  }
  std::latch reached{1};
  std::promise<void> opened;
};

struct Services : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kServed + "/tokenizer.json");
  std::shared_ptr<const Model> model = open_model(kServed);
  AnswerSettings settings = model_settings(kServed);

  std::unique_ptr<Engine> engine(EngineOptions options) const {
    return std::make_unique<Engine>(model, std::move(options));
  }
  AskedPrompt asked(const std::string& text) const { return {tokenizer.encode(text, true)}; }
  template <class Job = Answer>
  std::shared_ptr<Job> ask(const std::string& prompt) const {
    return std::make_shared<Job>(settings, tokenizer.encode(prompt, true), tokenizer);
  }
  std::shared_ptr<TokenStream> story(size_t room, i32 tokens) const {
    AnswerSettings all = settings;
    all.max_tokens = tokens;
    all.eos_token_id.clear();
    return std::make_shared<TokenStream>(all, asked("Once upon a time"), tokenizer,
                                         TokenStreamOptions{.room = room});
  }
  static std::shared_ptr<Ticket> submit(Service& service, Request request) {
    std::vector<Request> one;
    one.push_back(std::move(request));
    return service.submit(std::move(one))[0];
  }
  static std::string text_of(TokenStream& stream, Ticket& ticket) {
    std::string text;
    for (std::optional<AnswerToken> token;;) {
      ticket.wait({.look = [&] { return (token = stream.next()).has_value(); }});
      if (!token) return text;
      text += token->text;
    }
  }
  static std::string said(const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& known) {
      return known.what();
    }
    return "nothing";
  }
};

TEST_F(Services, AnswerManyThreads) {
  const auto some = engine({.max_sequences = 4});
  Service service(*some);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 5; ++j) {
        const auto answer = ask(std::to_string(i + 10) + " + " + std::to_string(j + 20) + " =");
        const auto ticket = submit(service, {.job = answer});
        ticket->wait();
        right += ticket->state() == TicketState::kFinished &&
                 answer->text() == " " + std::to_string(i + j + 30) + ".";
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
  service.stop();
  EXPECT_EQ(some->free_pages(), 4 * 12);
}

TEST_F(Services, SayHowMuchOfAPromptIsKnown) {
  const auto some = engine({.max_sequences = 2});
  Service service(*some);
  std::string prompt;
  for (int i = 0; i < 12; ++i) prompt += "17 + 25 = 42. Once upon a time there was a girl. ";
  const auto tokens = i32(tokenizer.encode(prompt, true).size()), page = some->page_size();
  ASSERT_GT(tokens, 2 * page);
  for (const i32 known : {0, (tokens - 1) / page * page}) {
    const auto answer = ask(prompt);
    submit(service, {.job = answer})->wait();
    EXPECT_EQ(answer->cached_tokens(), known);
  }
}

TEST_F(Services, CancelInEveryState) {
  const auto one = engine({.max_sequences = 1});
  Service service(*one);
  const auto gate = ask<Gate>("27 + 45 =");
  const auto running = submit(service, {.job = gate});
  const auto queued = submit(service, {.job = ask("9 + 2 =")});
  const auto last = submit(service, {.job = ask("9 + 2 =")});
  gate->reached.wait();
  EXPECT_EQ(running->state(), TicketState::kRunning);
  EXPECT_EQ(queued->state(), TicketState::kQueued);
  queued->cancel();
  running->cancel();
  EXPECT_EQ(queued->state(), TicketState::kCancelled);
  EXPECT_EQ(running->state(), TicketState::kCancelled) << "at once, although its step goes on";
  gate->opened.set_value();
  last->wait();
  EXPECT_EQ(last->state(), TicketState::kFinished);
  last->cancel();
  EXPECT_EQ(last->state(), TicketState::kFinished) << "it had ended";
  EXPECT_EQ(gate->tokens().size(), 2u);
  service.stop();
  EXPECT_EQ(one->free_pages(), 12);
}

TEST_F(Services, ASlowReaderHoldsUpNobody) {
  const auto one = engine({.max_sequences = 1});
  Service service(*one);
  const auto slow = story(4, 40);
  const auto reading = submit(service, {.job = slow});
  reading->wait({.look = [&] { return !slow->is_ready(); }});  // its buffer is full
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask("27 + 45 =");
    submit(service, {.job = answer})->wait();
    EXPECT_EQ(answer->text(), " 72.") << "the only sequence is lent to others";
  }
  EXPECT_EQ(reading->state(), TicketState::kPutOff);
  EXPECT_EQ(slow->tokens().size(), 4u) << "no more than its buffer holds";
  const std::string text = text_of(*slow, *reading);
  EXPECT_EQ(reading->state(), TicketState::kFinished);
  EXPECT_EQ(slow->tokens().size(), 40u);
  EXPECT_EQ(text, slow->text());
  const auto fast = story(0, 40);
  submit(service, {.job = fast})->wait();
  EXPECT_EQ(fast->text(), text);
  EXPECT_GT(service.stats().batch.put_off, 0u);
  const auto unread = story(4, 40);
  const auto waiting = submit(service, {.job = unread});
  waiting->wait({.look = [&] { return !unread->is_ready(); }});
  submit(service, {.job = ask("27 + 45 =")})->wait();
  EXPECT_EQ(waiting->state(), TicketState::kPutOff);
  waiting->cancel();
  EXPECT_EQ(waiting->state(), TicketState::kCancelled);
  service.stop();
  EXPECT_EQ(one->free_pages(), 12);
}

TEST_F(Services, PrioritiesAndDeadlines) {
  std::atomic<ServiceTime> now = ServiceTime();
  const auto one = engine({.max_sequences = 1});
  Service service(*one, {.now = [&] { return now.load(); }});
  const auto gate = ask<Gate>("27 + 45 =");
  const ServiceTime soon = ServiceTime() + std::chrono::hours(1);
  std::mutex mutex;
  std::vector<std::shared_ptr<Ticket>> tickets;
  std::vector<int> order;
  const auto running = submit(service, {.job = gate, .priority = 9});
  gate->reached.wait();
  const auto late = submit(service, {.job = ask("9 + 2 ="), .deadline = soon});
  for (const int priority : {0, 1, 0, 5}) {
    const auto answer = ask("9 + 2 =");
    answer->on_end = [&order, &mutex, number = int(tickets.size())] {
      const std::lock_guard lock(mutex);
      order.push_back(number);
    };
    tickets.push_back(submit(service, {.job = answer, .priority = priority}));
  }
  now = soon;
  gate->opened.set_value();
  for (const auto& ticket : tickets) ticket->wait();
  EXPECT_EQ(order, (std::vector<int>{3, 1, 0, 2}));
  EXPECT_EQ(late->state(), TicketState::kExpired);
  EXPECT_EQ(running->state(), TicketState::kFinished);
}

TEST_F(Services, ADeadlineEndsARunningRequestAfterItsStep) {
  std::atomic<ServiceTime> now = ServiceTime();
  const auto one = engine({.max_sequences = 2});
  Service service(*one, {.now = [&] { return now.load(); }});
  const auto gate = ask<Gate>("27 + 45 =");
  const ServiceTime soon = ServiceTime() + std::chrono::hours(1);
  const auto running = submit(service, {.job = gate, .deadline = soon});
  const auto other = submit(service, {.job = ask("9 + 2 =")});
  gate->reached.wait();
  now = soon;
  gate->opened.set_value();
  running->wait();
  other->wait();
  EXPECT_EQ(running->state(), TicketState::kExpired);
  EXPECT_EQ(gate->tokens().size(), 2u);
  EXPECT_EQ(other->state(), TicketState::kFinished);
}

TEST_F(Services, AFailureIsOneRequestsAndAFaultIsEverybodys) {
  std::atomic<bool> faulty = false;
  EngineOptions options{.max_sequences = 2};
  options.run.tap = [&](const Instruction&, u32) {
    if (faulty) fail(ErrorCode::kDevice, "[here] a fault");
  };
  const auto some = engine(options);
  Service service(*some);
  const auto thrower = ask("27 + 45 =");
  thrower->on_text = [](const std::string&) { fail(ErrorCode::kIo, "[here] enough"); };
  const auto good = ask("9 + 2 =");
  std::vector<Request> both(2);
  both[0].job = thrower, both[1].job = good;
  const auto tickets = service.submit(std::move(both));
  for (const auto& ticket : tickets) ticket->wait();
  EXPECT_EQ(tickets[0]->state(), TicketState::kFailed);
  EXPECT_EQ(said(tickets[0]->error()), "[here] enough");
  EXPECT_EQ(tickets[1]->state(), TicketState::kFinished);
  EXPECT_EQ(good->text(), " 11.");
  const auto empty = submit(service, {.job = std::make_shared<GivenTokens>(std::vector<i32>(900, 5), 1)});
  empty->wait();
  EXPECT_NE(said(empty->error()).find("900 tokens; must be 1 to 768"), std::string::npos);

  faulty = true;
  std::vector<Request> all(3);
  for (Request& request : all) request.job = ask("27 + 45 =");
  for (const auto& ticket : service.submit(std::move(all))) {
    ticket->wait();
    EXPECT_EQ(ticket->state(), TicketState::kFailed);
    EXPECT_NE(said(ticket->error()).find("[here] a fault"), std::string::npos) << said(ticket->error());
  }
  faulty = false;
  const auto next = ask("27 + 45 =");
  submit(service, {.job = next})->wait();
  EXPECT_EQ(next->text(), " 72.") << "the next run works";
  service.stop();
  EXPECT_EQ(some->free_pages(), 2 * 12);
}

TEST_F(Services, RequestsApartShareNoSteps) {
  const auto some = engine({.max_sequences = 8});
  Service service(*some);
  const auto gate = ask<Gate>("27 + 45 =");
  const auto first = submit(service, {.job = gate});
  gate->reached.wait();
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (int i = 0; i < 3; ++i) {
    std::vector<Request> pair(2);
    for (Request& request : pair) request.job = ask("9 + 2 =");
    const auto made = service.submit_apart(std::move(pair));
    tickets.insert(tickets.end(), made.begin(), made.end());
  }
  gate->opened.set_value();
  for (const auto& ticket : tickets) ticket->wait();
  EXPECT_EQ(service.stats().batch.most_sequences, 2);
}

TEST_F(Services, StopDrainsOrCancels) {
  const auto one = engine({.max_sequences = 1});
  for (const bool drains : {true, false}) {
    Service service(*one);
    const auto gate = ask<Gate>("27 + 45 =");
    const auto first = submit(service, {.job = gate});
    const auto second = submit(service, {.job = ask("9 + 2 =")});
    gate->reached.wait();
    std::thread stopper([&] { service.stop(std::chrono::minutes(drains ? 10 : 0)); });
    const auto is_stopping = [&] {
      try {
        submit(service, {.job = ask("9 + 2 =")});
      } catch (const QueueFull&) {
        return false;
      } catch (const Error& error) {
        return std::string(error.what()).find("it is stopped") != std::string::npos;
      }
      return false;
    };
    while (!is_stopping()) std::this_thread::yield();
    gate->opened.set_value();
    stopper.join();
    const auto expected = drains ? TicketState::kFinished : TicketState::kCancelled;
    EXPECT_EQ(second->state(), expected);
    EXPECT_TRUE(first->has_ended());
    EXPECT_EQ(one->free_pages(), 12);
  }
  // A ticket outlives the service.
  std::shared_ptr<Ticket> left;
  {
    Service service(*one);
    left = submit(service, {.job = story(2, 40)});
  }
  EXPECT_EQ(left->state(), TicketState::kCancelled);
  left->cancel();
  EXPECT_TRUE(left->wait());
}

TEST_F(Services, RefuseMoreThanMayWait) {
  const auto one = engine({.max_sequences = 1});
  Service service(*one, {.max_waiting = 2});
  const auto gate = ask<Gate>("27 + 45 =");
  const auto first = submit(service, {.job = gate});
  gate->reached.wait();
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (int i = 0; i < 2; ++i) tickets.push_back(submit(service, {.job = ask("9 + 2 =")}));
  EXPECT_THROW(submit(service, {.job = ask("9 + 2 =")}), QueueFull);
  gate->opened.set_value();
  for (const auto& ticket : tickets) ticket->wait();
  submit(service, {.job = ask("9 + 2 =")})->wait();
}

}  // namespace
}  // namespace heddle
