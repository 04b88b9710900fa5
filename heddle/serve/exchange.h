// One request that the model answers: it submits the answers, takes their tokens as they come, and hands them to the client.
// A client that reads slowly pauses its own answers; one that has left ends them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "heddle/serve/answer_form.h"
#include "heddle/serve/metrics.h"
#include "heddle/serve/request_log.h"
#include "heddle/serve/workers.h"
#include "heddle/session/service.h"

namespace heddle {

// All requests share these.
struct Exchanges {
  Service& service;
  Workers& workers;
  Metrics& metrics;
  const ServedModel& model;
  LogForm log = LogForm::kNone;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using MakeForm = std::unique_ptr<AnswerForm> (*)(const Asked& asked, const ServedModel& model);
  Exchange(const Exchanges& shared, Asked asked, MakeForm form, RequestRecord record);
  ~Exchange();

  // On a worker. Throws what the service refuses the answers with; nothing has been sent then.
  void start(const std::shared_ptr<Reply>& reply);

 private:
  void schedule();
  void pump();
  bool take_all();
  bool take(size_t index);
  void took(size_t index, AnswerToken token);
  void finish();
  void fail(const ApiError& error);
  void end_all();
  std::string reasons() const;

  const Exchanges shared_;
  const Asked asked_;
  const std::unique_ptr<AnswerForm> form_;
  RequestRecord record_;
  std::shared_ptr<Reply> reply_;
  std::atomic<bool> is_scheduled_ = false, is_gone_ = false, is_stalled_ = false;

  std::mutex mutex_;  // guards all that follows: workers take turns
  std::vector<std::shared_ptr<TokenStream>> streams_;
  std::vector<PartsReader> readers_;  // one for each stream
  std::vector<std::shared_ptr<ScoredTokens>> scored_;
  std::vector<std::shared_ptr<Ticket>> tickets_;             // the streams', and then those of scored prompts
  std::vector<std::chrono::steady_clock::time_point> last_;  // token of each stream
  MadeAnswers made_;
  bool has_ended_ = false;
};

}  // namespace heddle
