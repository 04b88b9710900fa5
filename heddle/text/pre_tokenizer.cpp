#include "heddle/text/pre_tokenizer.h"

#include <optional>

#include "heddle/base/error.h"
#include "heddle/text/oniguruma.h"

namespace heddle {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxStages = 64;

// The pattern of GPT-2, which ByteLevel has built in.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Digits asks Rust's is_numeric, which knows Unicode 17: two ranges more than the pattern matcher.
constexpr std::string_view kDigit = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";

std::unique_ptr<const Regex> compile(std::string_view oniguruma) {
  return std::make_unique<const Regex>(pcre2_from_oniguruma(oniguruma));
}

// One part of a piece, matched by the pattern or between two matches.
struct Part {
  size_t begin, end;
  bool is_match;
};

// Whether `next` becomes one with the part before it.
template <class Behavior>
bool joins(Behavior behavior, const Part& last, const Part& next) {
  switch (behavior) {
    case Behavior::kMergedWithPrevious:
      return next.is_match && !last.is_match;
    case Behavior::kMergedWithNext:
      return !next.is_match && last.is_match;
    case Behavior::kContiguous:
      return next.is_match == last.is_match;
    default:
      return false;
  }
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonView& json) {
  add(json, 0);
  if (!ends_in_bytes_) {
    json.fail(ErrorCode::kUnsupported,
              "a pre-tokenizer without ByteLevel is not supported; end it with ByteLevel");
  }
}

void PreTokenizer::add(const JsonView& json, int depth) {
  if (ends_in_bytes_) json.fail(ErrorCode::kUnsupported, "a stage behind ByteLevel is not supported");
  if (stages_.size() == kMaxStages || depth == kMaxDepth) {
    json.fail(ErrorCode::kUnsupported,
              fmt::format("{} stages and {} levels of Sequence are the most", kMaxStages, kMaxDepth));
  }
  const JsonView type = json.at("type");
  if (type.as_string() == "Sequence") {
    const JsonView list = json.at("pretokenizers");
    list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
  } else if (type.as_string() == "Split") {
    add_split(json);
  } else if (type.as_string() == "Digits") {
    const auto individual = json.find("individual_digits");
    const bool each = individual && individual->as_bool();
    const std::string digit = pcre2_from_oniguruma(kDigit);
    stages_.push_back({.pattern = std::make_unique<const Regex>(digit),
                       .behavior = each ? Behavior::kIsolated : Behavior::kContiguous});
  } else if (type.as_string() == "ByteLevel") {
    add_byte_level(json);
  } else {
    type.fail(ErrorCode::kUnsupported, "only Sequence, Split, Digits and ByteLevel are supported");
  }
}

void PreTokenizer::add_split(const JsonView& json) {
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  Stage stage;
  const JsonView behavior = json.at("behavior");
  bool known = false;
  for (const auto& [name, value] : kBehaviors) {
    if (behavior.as_string() != name) continue;
    stage.behavior = value;
    known = true;
  }
  if (!known)
    behavior.fail(ErrorCode::kIo, "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  const JsonView invert = json.at("invert");
  stage.invert = invert.as_bool();

  const JsonView pattern = json.at("pattern");
  const auto regex = pattern.find("Regex"), text = pattern.find("String");
  if (!regex == !text) pattern.fail(ErrorCode::kIo, "either 'Regex' or 'String' is expected");
  const JsonView& source = regex ? *regex : *text;
  try {
    stage.pattern = regex ? compile(source.as_string())
                          : std::make_unique<const Regex>(pcre2_from_text(source.as_string()));
  } catch (const Error& error) {
    source.fail(error.code(), error.what());
  }
  stages_.push_back(std::move(stage));
}

void PreTokenizer::add_byte_level(const JsonView& json) {
  Stage stage;
  const JsonView prefix = json.at("add_prefix_space");
  stage.add_prefix_space = prefix.as_bool();
  const auto use_regex = json.find("use_regex");
  if (!use_regex || use_regex->as_bool()) stage.pattern = compile(kGpt2Pattern);
  stages_.push_back(std::move(stage));
  ends_in_bytes_ = true;
}

void PreTokenizer::run(std::string_view text, Scratch& scratch, const Sink& word) const {
  run_stage(0, text, scratch, word);
}

void PreTokenizer::run_stage(size_t index, std::string_view piece, Scratch& scratch, const Sink& word) const {
  if (piece.empty()) return;
  if (index == stages_.size()) return word(piece);
  const Stage& stage = stages_[index];
  if (stage.add_prefix_space && piece.front() != ' ') {
    piece = scratch.prefixed.emplace_back(" " + std::string(piece));
  }
  if (!stage.pattern) return run_stage(index + 1, piece, scratch, word);
  split(stage, piece, scratch, [&](std::string_view part) { run_stage(index + 1, part, scratch, word); });
}

void PreTokenizer::split(const Stage& stage, std::string_view piece, Scratch& scratch, const Sink& emit) {
  std::optional<Part> last;
  auto flush = [&] {
    const bool removed = stage.behavior == Behavior::kRemoved && last && last->is_match;
    if (last && !removed) emit(piece.substr(last->begin, last->end - last->begin));
  };
  auto add = [&](size_t begin, size_t end, bool is_match) {
    const Part next{begin, end, is_match != stage.invert};
    if (last && joins(stage.behavior, *last, next)) {
      last = Part{last->begin, end, next.is_match};
    } else {
      flush();
      last = next;
    }
  };
  size_t at = 0;
  stage.pattern->for_each_match(piece, scratch.regex, [&](Regex::Span match) {
    if (at != match.begin) add(at, match.begin, false);
    add(match.begin, match.end, true);
    at = match.end;
  });
  if (at != piece.size()) add(at, piece.size(), false);
  flush();
}

}  // namespace heddle
