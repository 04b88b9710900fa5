#include "heddle/serve/answer_parts.h"

#include <atomic>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace heddle {

std::string request_name(const char* prefix) {
  static const u64 first = [] {
    std::random_device source;
    return (u64(source()) << 32) | source();
  }();
  static std::atomic<u64> count = 0;
  return fmt::format("{}{:016x}", prefix, first + count++);
}

PartsReader::PartsReader(const AskedCalls& calls, const char* id_prefix)
    : calls_(calls), id_prefix_(id_prefix) {
  if (calls.form) reader_ = calls.form->reader(calls.tools);
}

std::vector<PartEvent> PartsReader::read(const AnswerToken& token, std::vector<AnswerPart>& parts) {
  parts_ = &parts;
  const bool is_last = !token.reason.empty();
  add(AnswerPart::Kind::kReasoning, token.reasoning);
  if (reader_) {
    for (const CallEvent& event : reader_->push(token.text)) {
      add_call(event);
      is_over_ |= calls_.only_one && event.kind == CallEvent::Kind::kEnd;
    }
    if (is_last)
      for (const CallEvent& event : reader_->flush()) add_call(event);
  } else {
    add(AnswerPart::Kind::kText, token.text);
  }
  if (is_last || is_over_) close();
  return std::exchange(events_, {});
}

void PartsReader::add_call(const CallEvent& event) {
  if (is_over_) return;
  switch (event.kind) {
    case CallEvent::Kind::kText:
      return add(AnswerPart::Kind::kText, event.text);
    case CallEvent::Kind::kBegin:
      return open({.kind = AnswerPart::Kind::kCall, .id = call_id(), .name = event.text});
    case CallEvent::Kind::kArguments:
      return add(AnswerPart::Kind::kCall, event.text);
    case CallEvent::Kind::kEnd:
      return close();
  }
}

void PartsReader::add(AnswerPart::Kind kind, const std::string& text) {
  if (text.empty()) return;
  if (!is_open_ || parts_->back().kind != kind) open({.kind = kind});
  parts_->back().text += text;
  events_.push_back({PartEvent::Step::kMore, parts_->size() - 1, text});
}

void PartsReader::open(AnswerPart part) {
  close();
  parts_->push_back(std::move(part));
  is_open_ = true;
  events_.push_back({PartEvent::Step::kBegin, parts_->size() - 1});
}

void PartsReader::close() {
  if (std::exchange(is_open_, false)) events_.push_back({PartEvent::Step::kEnd, parts_->size() - 1});
}

std::string PartsReader::call_id() const {
  const std::string whole = request_name(id_prefix_);
  return calls_.form->has_short_ids ? whole.substr(whole.size() - 9) : whole;
}

}  // namespace heddle
