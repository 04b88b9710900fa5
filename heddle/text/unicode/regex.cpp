#include "heddle/text/unicode/regex.h"

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace heddle {
namespace {

// A run over a megabyte of white space backtracks a million times; a catastrophic pattern exceeds this limit.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 256 * 1024;

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

const pcre2_code* code_of(const std::shared_ptr<const void>& code) {
  return static_cast<const pcre2_code*>(code.get());
}

}  // namespace

struct Regex::Scratch::State {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* limits = pcre2_match_context_create(nullptr);

  State() {
    if (!data || !limits) throw std::bad_alloc();
    pcre2_set_match_limit(limits, kMatchLimit);
    pcre2_set_heap_limit(limits, kHeapLimitKib);
  }
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Regex::Scratch::Scratch() : state_(std::make_unique<State>()) {}
Regex::Scratch::~Scratch() = default;

Regex::Regex(const std::string& pcre2_pattern) : pattern_(pcre2_pattern) {
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(), kOptions,
                                   &error, &at, context.get());
  if (!code) {
    fail(ErrorCode::kInvalidArgument, "[pattern] PCRE2 does not compile it: {} at byte {} of '{}'",
         pcre2_message(error), at, pattern_);
  }
  code_ = std::shared_ptr<const void>(
      code, [](const void* c) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(c))); });
  // Without a just-in-time compiler, or for a pattern that it refuses, matching interprets: slower, with the
  // same matches.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

std::optional<Regex::Span> Regex::find(std::string_view text, size_t from, Scratch& scratch) const {
  pcre2_match_data* data = scratch.state_->data;
  auto match = [&](uint32_t options) {
    return pcre2_match(code_of(code_), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data, scratch.state_->limits);
  };
  int found = match(0);
  // The compiled code has 32 KB of stack; the interpreter has the heap.
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    fail(ErrorCode::kUnsupported,
         "[pattern] {} after byte {} of {} bytes of text, with '{}'; a pattern that "
         "does not backtrack without end would do",
         pcre2_message(found), from, text.size(), pattern_);
  }
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  // Patterns with \K are refused, so a match cannot begin after its end.
  return Span{span[0], span[1]};
}

void Regex::for_each_match(std::string_view text, Scratch& scratch,
                           const std::function<void(Span)>& visit) const {
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const auto match = find(text, from, scratch);
    if (!match) return;
    if (match->begin == match->end && last_end == match->end) {
      from += from < text.size() ? first_char(text.substr(from)).size : 1;
    } else {
      from = match->end;
      last_end = match->end;
      visit(*match);
    }
  }
}

}  // namespace heddle
