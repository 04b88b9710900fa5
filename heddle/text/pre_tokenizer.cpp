#include "heddle/text/pre_tokenizer.h"

#include <optional>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/text/oniguruma.h"
#include "heddle/text/tokenizer_keys.h"
#include "heddle/text/unicode/byte_level.h"
#include "heddle/text/unicode/character_sets.h"
#include "heddle/text/unicode/normal_form_exceptions.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

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
bool joins(PreTokenizer::Behavior behavior, const Part& last, const Part& next) {
  using Behavior = PreTokenizer::Behavior;
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

using Behavior = PreTokenizer::Behavior;
using Stage = PreTokenizer::Stage;

Stage of_pattern(std::string_view oniguruma, Behavior behavior, bool invert = false) {
  return {.pattern = compile(oniguruma), .behavior = behavior, .invert = invert};
}

Behavior read_behavior(const JsonView& behavior) {
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

Stage make_split(const JsonView& json) {
  const JsonView behavior = json.at("behavior"), invert = json.at("invert"), pattern = json.at("pattern");
  return {.pattern = read_pattern(pattern), .behavior = read_behavior(behavior), .invert = invert.as_bool()};
}

Stage make_digits(const JsonView& json) {
  const JsonView individual = json.at("individual_digits");
  return of_pattern(kDigit, individual.as_bool() ? Behavior::kIsolated : Behavior::kContiguous);
}

Stage make_punctuation(const JsonView& json) {
  const auto behavior = json.find("behavior");
  return of_pattern(punctuation(), behavior ? read_behavior(*behavior) : Behavior::kIsolated);
}

Stage make_whitespace(const JsonView&) {
  return of_pattern(kWords, Behavior::kRemoved, true);
}

Stage make_whitespace_split(const JsonView&) {
  return of_pattern(R"(\s)", Behavior::kRemoved);
}

Stage make_delimiter_split(const JsonView& json) {
  const JsonView delimiter = json.at("delimiter");
  return {.pattern = std::make_unique<const Regex>(pcre2_from_text(delimiter.as_string())),
          .behavior = Behavior::kRemoved};
}

// Spaces become the replacement, which may also be put in front; each one begins a word.
Stage make_metaspace(const JsonView& json) {
  const JsonView replacement = json.at("replacement");
  const std::string& text = replacement.as_string();
  Stage stage;
  const auto scheme = json.find("prepend_scheme"), split = json.find("split"),
             add = json.find("add_prefix_space");
  if (scheme) scheme->check_one_of({"always", "first", "never"});
  const std::string prepend = scheme ? scheme->as_string() : "always";
  const bool no_prefix = add && !add->as_bool();
  if (no_prefix && scheme && prepend != "never") {
    add->fail(ErrorCode::kIo, "this does not go together with prepend_scheme");
  }
  if (prepend != "never" && !no_prefix) stage.prefix = text;
  stage.prefix_first_only = prepend == "first";
  stage.replacer = std::make_unique<const Replacer>(" ", text);
  stage.behavior = Behavior::kMergedWithNext;
  if (!split || split->as_bool()) stage.pattern = std::make_unique<const Regex>(pcre2_from_text(text));
  return stage;
}

Stage make_byte_level(const JsonView& json) {
  Stage stage{.byte_level = true};
  const JsonView prefix = json.at("add_prefix_space");
  if (prefix.as_bool()) stage.prefix = " ";
  const auto use_regex = json.find("use_regex");
  if (!use_regex || use_regex->as_bool()) stage.pattern = compile(kGpt2Pattern);
  return stage;
}

// Cuts where the script changes. A space has none, and what comes before the first script is dropped, as in
// `tokenizers`.
void cut_at_scripts(std::string_view piece, size_t, const PreTokenizer::Sink& part) {
  constexpr size_t kNone = std::string_view::npos;
  size_t begin = kNone;
  const ScriptRange* last = nullptr;
  for (size_t at = 0; at < piece.size();) {
    const Utf8Char c = first_char(piece.substr(at));
    const ScriptRange* script = find_range(scripts(), c.code_point);
    if (script && (!last || last->script != script->script)) {
      if (begin != kNone) part(piece.substr(begin, at - begin));
      begin = at;
    }
    if (script) last = script;
    at += c.size;
  }
  if (begin != kNone) part(piece.substr(begin));
}

Stage make_scripts(const JsonView&) {
  return {.cut = cut_at_scripts};
}

void cut_at_length(std::string_view piece, size_t length, const PreTokenizer::Sink& part) {
  size_t begin = 0, at = 0;
  for (size_t count = 0; at < piece.size(); ++count) {
    if (count == length) {
      part(piece.substr(begin, at - begin));
      begin = at;
      count = 0;
    }
    at += first_char(piece.substr(at)).size;
  }
  part(piece.substr(begin));
}

Stage make_fixed_length(const JsonView& json) {
  constexpr int64_t kDefault = 5;
  const auto length = json.find("length");
  return {.cut = cut_at_length, .length = size_t(length ? length->as_int(1, INT64_MAX) : kDefault)};
}

// BertPreTokenizer is these two.
std::vector<Stage> make_bert() {
  std::vector<Stage> stages;
  stages.push_back(of_pattern(R"(\s)", Behavior::kRemoved));
  stages.push_back(of_pattern(punctuation(), Behavior::kIsolated));
  return stages;
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonView& json) {
  add(json, 0);
}

void PreTokenizer::add(const JsonView& json, int depth) {
  constexpr std::pair<std::string_view, Stage (*)(const JsonView&)> kStages[] = {
      {"ByteLevel", make_byte_level},
      {"CharDelimiterSplit", make_delimiter_split},
      {"Metaspace", make_metaspace},
      {"Whitespace", make_whitespace},
      {"Split", make_split},
      {"Punctuation", make_punctuation},
      {"Digits", make_digits},
      {"WhitespaceSplit", make_whitespace_split},
      {"UnicodeScripts", make_scripts},
      {"FixedLength", make_fixed_length}};
  const std::string_view type = checked_type(Section::kPreTokenizer, json);
  if (stages_.size() >= kMostStages || depth == kMostSequenceLevels) {
    json.fail(ErrorCode::kUnsupported,
              fmt::format("at most {} stages and {} levels of Sequence are supported", kMostStages,
                          kMostSequenceLevels));
  }
  if (type == "Sequence") {
    const JsonView list = json.at("pretokenizers");
    return list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
  }
  if (ends_in_bytes()) spell_words();
  if (type == "BertPreTokenizer") {
    for (Stage& stage : make_bert()) stages_.push_back(std::move(stage));
  }
  for (const auto& [name, make] : kStages) {
    if (name == type) stages_.push_back(make(json));
  }
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
  const Sink next = [&](std::string_view part) {
    const bool is_first = piece.is_first && part.data() == piece.text.data();
    if (stage.spells) part = scratch.made.emplace_back(byte_level_encode(part));
    run_stage(index + 1, {part, is_first}, scratch, word);
  };
  if (stage.cut) return stage.cut(piece.text, stage.length, next);
  if (!stage.pattern) return next(piece.text);
  split(stage, piece.text, scratch, next);
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
