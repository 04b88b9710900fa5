#include "heddle/text/reasoning.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>",
                           kConstrain = "<|constrain|>", kEnd = "<|end|>", kReturn = "<|return|>",
                           kCall = "<|call|>", kTo = "to=functions.", kSpace = " \t\r\n";

// The first that fits counts.
constexpr ReasoningForm kForms[] = {
    {.begin = kChannel, .end = kMessage, .channels = true},
    {.begin = "<think>", .end = "</think>", .answer_begin = "<response>", .answer_end = "</response>"},
    {.begin = "<think>", .end = "</think>", .answer_begin = "<answer>", .answer_end = "</answer>"},
    {.begin = "<think>", .end = "</think>"},
    {.begin = "<seed:think>", .end = "</seed:think>"},
    {.begin = "[THINK]", .end = "[/THINK]"},
    {.begin = "<|START_THINKING|>",
     .end = "<|END_THINKING|>",
     .answer_begin = "<|START_RESPONSE|>",
     .answer_end = "<|END_RESPONSE|>"},
    {.begin = "<|inner_prefix|>", .end = "<|inner_suffix|>"},
    {.begin = "Here is my thought process:", .end = "Here is my response:"}};

bool names(std::string_view text, const ReasoningForm& form) {
  const auto has = [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; };
  return has(form.begin) && has(form.end) && (form.answer_begin.empty() || has(form.answer_begin));
}

std::string_view without_space_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

}  // namespace

std::vector<std::string_view> ReasoningForm::marks() const {
  if (channels) return {kStart, kChannel, kMessage, kConstrain, kEnd, kReturn, kCall};
  std::vector<std::string_view> all = {begin, end};
  if (!answer_begin.empty()) all.insert(all.end(), {answer_begin, answer_end});
  return all;
}

const ReasoningForm* find_reasoning_form(std::string_view chat_template, const Tokenizer& tokenizer) {
  for (const ReasoningForm& form : kForms)
    if (names(chat_template, form)) return &form;
  for (const ReasoningForm& form : kForms) {
    const bool plain = form.answer_begin.empty();
    if (plain && tokenizer.token_to_id(form.begin) && tokenizer.token_to_id(form.end)) return &form;
  }
  return nullptr;
}

ReasoningReader::ReasoningReader(const ReasoningForm* form, std::string_view prompt, bool keeps_calls)
    : form_(form), keeps_calls_(form && form->channels && keeps_calls) {
  if (!form) return;
  // The answer goes on with the header, in which a call has its function.
  if (keeps_calls_ && prompt.ends_with("<|start|>assistant")) state_ = State::kHeader;
  marks_ = form->marks();
  if (!form->channels && without_space_behind(prompt).ends_with(form->begin))
    state_ = State::kReasoning, fresh_ = true;
}

std::vector<ReasoningReader::Part> ReasoningReader::push(std::string_view text) {
  std::vector<Part> parts;
  if (!form_) {
    if (!text.empty()) parts.push_back({false, std::string(text)});
    return parts;
  }
  for (const char byte : text) {
    held_ += byte;
    const auto is_mark = [&](std::string_view mark) { return held_.ends_with(mark); };
    const auto mark = std::ranges::find_if(marks_, is_mark);
    if (mark == marks_.end()) continue;
    const std::string before = held_.substr(0, held_.size() - mark->size());
    write(before, parts);
    held_.clear();
    if (!pass_mark(*mark, parts)) write(*mark, parts);
  }
  size_t hold = 0;  // bytes at the end that a mark begins with
  for (const std::string_view mark : marks_)
    for (size_t size = std::min(mark.size() - 1, held_.size()); size > hold; --size)
      if (held_.ends_with(mark.substr(0, size))) hold = size;
  write(std::string_view(held_).substr(0, held_.size() - hold), parts);
  held_.erase(0, held_.size() - hold);
  return parts;
}

std::vector<ReasoningReader::Part> ReasoningReader::flush() {
  std::vector<Part> parts;
  write(std::exchange(held_, {}), parts);
  if (state_ == State::kHeader && keeps_calls_ && !has_mark_) {  // it was no header
    state_ = State::kAnswer;
    write(std::exchange(channel_, {}), parts);
  }
  if (state_ == State::kBegin && !spaces_.empty()) parts.push_back({false, std::exchange(spaces_, {})});
  return parts;
}

// False if the mark is text where it stands.
bool ReasoningReader::pass_mark(std::string_view mark, std::vector<Part>& parts) {
  if (form_->channels) return pass_channel(mark, parts), true;
  const bool at_begin = state_ == State::kBegin;
  if (mark == form_->begin && !(at_begin || (fresh_ && state_ == State::kAnswer))) return false;
  if (mark == form_->end && state_ != State::kReasoning) return false;
  if (mark == form_->answer_begin && !at_begin && !fresh_) return false;
  fresh_ = true;
  spaces_.clear();
  state_ = mark == form_->begin ? State::kReasoning : State::kAnswer;
  return true;
}

// A part is <|channel|>name<|message|>text<|end|>, and <|start|>assistant stands between two. The channel final has the
// answer, analysis and commentary what leads to it.
void ReasoningReader::pass_channel(std::string_view mark, std::vector<Part>& parts) {
  has_mark_ = true;
  if (state_ == State::kCall) write(mark == kReturn || mark == kEnd ? kCall : mark, parts);
  fresh_ = true;
  spaces_.clear();
  if (mark == kStart) recipient_.clear();
  if (mark == kChannel && channel_.find(kTo) != std::string::npos) recipient_ = channel_;
  if (mark == kChannel) channel_.clear();
  if (mark == kMessage) {
    const std::string header = channel_ + recipient_;
    const bool is_call = keeps_calls_ && header.find(kTo) != std::string::npos;
    const bool is_answer = is_call || channel_.empty() || channel_.starts_with("final");
    state_ = is_call ? State::kCall : is_answer ? State::kAnswer : State::kReasoning;
    fresh_ = !is_call;
    if (is_call) {
      write(std::string(kChannel) + header + std::string(kMessage), parts);
      channel_.clear(), recipient_.clear();  // the next message is to nobody, unless it says so
    }
  } else {
    if (mark == kStart) channel_.clear();
    state_ = State::kHeader;
  }
}

void ReasoningReader::write(std::string_view text, std::vector<Part>& parts) {
  if (text.empty()) return;
  if (state_ == State::kHeader) {
    channel_ += text;
    return;
  }
  if (state_ == State::kBegin || fresh_) {
    const size_t space = std::min(text.find_first_not_of(kSpace), text.size());
    if (state_ == State::kBegin) spaces_ += text.substr(0, space);
    text.remove_prefix(space);
    if (text.empty()) return;
  }
  const bool is_reasoning = state_ == State::kReasoning;
  std::string whole = std::exchange(spaces_, {}) + std::string(text);
  if (state_ == State::kBegin) state_ = State::kAnswer;
  fresh_ = false;
  if (parts.empty() || parts.back().is_reasoning != is_reasoning)
    parts.push_back({is_reasoning, std::move(whole)});
  else
    parts.back().text += whole;
}

}  // namespace heddle
