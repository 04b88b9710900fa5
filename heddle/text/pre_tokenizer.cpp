#include "heddle/text/pre_tokenizer.h"

#include <optional>

#include "heddle/base/error.h"
#include "heddle/text/oniguruma.h"
#include "heddle/text/unicode/normal_form_exceptions.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxStages = 64;

// The pattern of GPT-2, which ByteLevel has built in.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Digits uses Rust's is_numeric, which knows Unicode 17: two ranges more than the pattern matcher.
constexpr std::string_view kDigit = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";

// Punctuation of ASCII, and Unicode's in an older version.
std::string punctuation() {
  return fmt::format("(?![{}])[\\p{{P}}$+<=>^`|~{}]", kNoPunctuation, kOldPunctuation);
}

constexpr std::string_view kWords = R"([\w\x{200C}\x{200D}]+|[^\w\x{200C}\x{200D}\s]+)";

std::unique_ptr<const Regex> compile(std::string_view oniguruma) {
  return std::make_unique<const Regex>(pcre2_from_oniguruma(oniguruma));
}

// One part of a piece, matched by the pattern or between two matches.
struct Part {
  size_t begin, end;
  bool is_match;
};

// True if `next` is joined with the part before it.
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
    add_pattern(kDigit, each ? Behavior::kIsolated : Behavior::kContiguous);
  } else if (type.as_string() == "Punctuation") {
    const auto behavior = json.find("behavior");
    add_pattern(punctuation(), behavior ? read_behavior(*behavior) : Behavior::kIsolated);
  } else if (type.as_string() == "Whitespace") {
    add_pattern(kWords, Behavior::kRemoved, true);
  } else if (type.as_string() == "WhitespaceSplit") {
    add_pattern(R"(\s)", Behavior::kRemoved);
  } else if (type.as_string() == "Metaspace") {
    add_metaspace(json);
  } else if (type.as_string() == "ByteLevel") {
    add_byte_level(json);
  } else {
    type.fail(
        ErrorCode::kUnsupported,
        "only Sequence, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace and ByteLevel are "
        "supported");
  }
}

void PreTokenizer::add_pattern(std::string_view oniguruma, Behavior behavior, bool invert) {
  stages_.push_back({.pattern = compile(oniguruma), .behavior = behavior, .invert = invert});
}

PreTokenizer::Behavior PreTokenizer::read_behavior(const JsonView& behavior) {
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  for (const auto& [name, value] : kBehaviors) {
    if (behavior.as_string() == name) return value;
  }
  behavior.fail(ErrorCode::kIo,
                "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous is expected");
}

void PreTokenizer::add_split(const JsonView& json) {
  Stage stage;
  const JsonView behavior = json.at("behavior"), invert = json.at("invert"), pattern = json.at("pattern");
  stage.behavior = read_behavior(behavior);
  stage.invert = invert.as_bool();
  stage.pattern = read_pattern(pattern);
  stages_.push_back(std::move(stage));
}

// Spaces become the replacement, which may also be put in front; each one begins a word.
void PreTokenizer::add_metaspace(const JsonView& json) {
  const JsonView replacement = json.at("replacement");
  const std::string& text = replacement.as_string();
  if (text.empty() || first_char(text).size != text.size()) {
    replacement.fail(ErrorCode::kIo, "one character is expected");
  }
  Stage stage;
  const auto scheme = json.find("prepend_scheme"), split = json.find("split"),
             add = json.find("add_prefix_space");
  const std::string prepend = scheme ? scheme->as_string() : "always";
  if (prepend != "always" && prepend != "first" && prepend != "never") {
    scheme->fail(ErrorCode::kUnsupported, "always, first or never is expected");
  }
  const bool no_prefix = add && !add->as_bool();
  if (no_prefix && scheme && prepend != "never") {
    add->fail(ErrorCode::kIo, "this does not go together with prepend_scheme");
  }
  if (prepend != "never" && !no_prefix) stage.prefix = text;
  stage.prefix_first_only = prepend == "first";
  stage.replacer = std::make_unique<const Replacer>(" ", text);
  stage.behavior = Behavior::kMergedWithNext;
  if (!split || split->as_bool()) stage.pattern = std::make_unique<const Regex>(pcre2_from_text(text));
  stages_.push_back(std::move(stage));
}

void PreTokenizer::add_byte_level(const JsonView& json) {
  Stage stage;
  const JsonView prefix = json.at("add_prefix_space");
  if (prefix.as_bool()) stage.prefix = " ";
  const auto use_regex = json.find("use_regex");
  if (!use_regex || use_regex->as_bool()) stage.pattern = compile(kGpt2Pattern);
  stages_.push_back(std::move(stage));
  ends_in_bytes_ = true;
}

void PreTokenizer::run(std::string_view text, bool is_first, Scratch& scratch, const Sink& word) const {
  run_stage(0, {text, is_first}, scratch, word);
}

void PreTokenizer::run_stage(size_t index, Piece piece, Scratch& scratch, const Sink& word) const {
  if (piece.text.empty()) return;
  if (index == stages_.size()) return word(piece.text);
  const Stage& stage = stages_[index];
  if (stage.replacer) piece.text = scratch.made.emplace_back(stage.replacer->run(piece.text, scratch.regex));
  const bool prefixed = !stage.prefix.empty() && (piece.is_first || !stage.prefix_first_only);
  if (prefixed && !piece.text.starts_with(stage.prefix)) {
    piece.text = scratch.made.emplace_back(stage.prefix + std::string(piece.text));
  }
  if (!stage.pattern) return run_stage(index + 1, piece, scratch, word);
  split(stage, piece.text, scratch, [&](std::string_view part) {
    run_stage(index + 1, {part, piece.is_first && part.data() == piece.text.data()}, scratch, word);
  });
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
