#include "heddle/text/tokenizer_keys.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

enum class Kind { kAny, kBool, kString, kCharacter, kCount, kNumber, kArray, kObject, kPattern, kTokenAndId };
enum class Presence { kRequired, kOptional, kNullable };  // may be absent; may be absent or null

struct Key {
  std::string_view name;
  Kind kind = Kind::kAny;
  Presence presence = Presence::kRequired;
};

constexpr size_t kMostKeys = 9;
struct Rule {
  std::string_view type;
  bool inferred = false;  // recognised by its keys
  Key keys[kMostKeys] = {};

  std::span<const Key> used() const {
    const auto* end = std::ranges::find(keys, std::string_view(), &Key::name);
    return {std::begin(keys), end};
  }
};

using enum Presence;

constexpr Rule kNormalizers[] = {
    {"BertNormalizer",
     true,
     {{"clean_text", Kind::kBool},
      {"handle_chinese_chars", Kind::kBool},
      {"strip_accents", Kind::kBool, kNullable},
      {"lowercase", Kind::kBool}}},
    {"Strip", true, {{"strip_left", Kind::kBool}, {"strip_right", Kind::kBool}}},
    {"StripAccents"},
    {"NFC"},
    {"NFD"},
    {"NFKC"},
    {"NFKD"},
    {"Sequence", true, {{"normalizers", Kind::kArray}}},
    {"Lowercase"},
    {"Nmt"},
    {"Precompiled", false, {{"precompiled_charsmap", Kind::kString}}},
    {"Replace", true, {{"pattern", Kind::kPattern}, {"content", Kind::kString}}},
    {"Prepend", true, {{"prepend", Kind::kString}}},
    {"ByteLevel"},
};

constexpr Rule kByteLevel = {"ByteLevel",
                             false,
                             {{"add_prefix_space", Kind::kBool},
                              {"trim_offsets", Kind::kBool},
                              {"use_regex", Kind::kBool, kOptional}}};
constexpr Rule kMetaspace = {"Metaspace",
                             false,
                             {{"replacement", Kind::kCharacter},
                              {"prepend_scheme", Kind::kString, kOptional},
                              {"split", Kind::kBool, kNullable},
                              {"add_prefix_space", Kind::kBool, kNullable}}};

constexpr Rule kPreTokenizers[] = {
    {"BertPreTokenizer"},
    kByteLevel,
    {"CharDelimiterSplit", false, {{"delimiter", Kind::kCharacter}}},
    kMetaspace,
    {"Whitespace"},
    {"Sequence", false, {{"pretokenizers", Kind::kArray}}},
    {"Split", false, {{"pattern", Kind::kPattern}, {"behavior", Kind::kString}, {"invert", Kind::kBool}}},
    {"Punctuation", false, {{"behavior", Kind::kString, kOptional}}},
    {"WhitespaceSplit"},
    {"Digits", false, {{"individual_digits", Kind::kBool}}},
    {"UnicodeScripts"},
    {"FixedLength", false, {{"length", Kind::kCount, kOptional}}},
};

constexpr Rule kDecoders[] = {
    {"BPEDecoder", true, {{"suffix", Kind::kString}}},
    kByteLevel,
    {"WordPiece", true, {{"prefix", Kind::kString}, {"cleanup", Kind::kBool}}},
    kMetaspace,
    {"CTC",
     true,
     {{"pad_token", Kind::kString}, {"word_delimiter_token", Kind::kString}, {"cleanup", Kind::kBool}}},
    {"Sequence", false, {{"decoders", Kind::kArray}}},
    {"Replace", true, {{"pattern", Kind::kPattern}, {"content", Kind::kString}}},
    {"Fuse"},
    {"Strip", true, {{"content", Kind::kCharacter}, {"start", Kind::kCount}, {"stop", Kind::kCount}}},
    {"ByteFallback"},
};

// The first two differ in offsets and in pairs of texts only, and `tokenizers` tells them apart by their keys.
constexpr Rule kPostProcessors[] = {
    {"RobertaProcessing",
     true,
     {{"sep", Kind::kTokenAndId},
      {"cls", Kind::kTokenAndId},
      {"trim_offsets", Kind::kBool},
      {"add_prefix_space", Kind::kBool}}},
    {"BertProcessing", true, {{"sep", Kind::kTokenAndId}, {"cls", Kind::kTokenAndId}}},
    kByteLevel,
    {"TemplateProcessing",
     true,
     {{"single", Kind::kArray}, {"pair", Kind::kArray}, {"special_tokens", Kind::kObject}}},
    {"Sequence", false, {{"processors", Kind::kArray}}},
};

constexpr Rule kModels[] = {
    {"BPE",
     true,
     {{"dropout", Kind::kNumber, kNullable},
      {"unk_token", Kind::kString, kNullable},
      {"continuing_subword_prefix", Kind::kString, kNullable},
      {"end_of_word_suffix", Kind::kString, kNullable},
      {"fuse_unk", Kind::kBool, kNullable},
      {"byte_fallback", Kind::kBool, kNullable},
      {"ignore_merges", Kind::kBool, kNullable},
      {"vocab", Kind::kObject},
      {"merges", Kind::kArray}}},
    {"WordPiece",
     true,
     {{"unk_token", Kind::kString},
      {"continuing_subword_prefix", Kind::kString},
      {"max_input_chars_per_word", Kind::kCount},
      {"vocab", Kind::kObject}}},
    {"WordLevel", true, {{"vocab", Kind::kObject}, {"unk_token", Kind::kString}}},
    {"Unigram",
     true,
     {{"unk_id", Kind::kCount, kNullable},
      {"vocab", Kind::kArray},
      {"byte_fallback", Kind::kBool, kOptional}}},
};

constexpr Rule kTop = {"",
                       false,
                       {{"version", Kind::kString, kOptional},
                        {"truncation", Kind::kObject, kNullable},
                        {"padding", Kind::kObject, kNullable},
                        {"added_tokens", Kind::kArray, kOptional},
                        {"normalizer", Kind::kObject, kNullable},
                        {"pre_tokenizer", Kind::kObject, kNullable},
                        {"post_processor", Kind::kObject, kNullable},
                        {"decoder", Kind::kObject, kNullable},
                        {"model", Kind::kObject}}};
constexpr Rule kTruncation = {"",
                              false,
                              {{"direction", Kind::kString, kOptional},
                               {"max_length", Kind::kCount},
                               {"strategy", Kind::kString},
                               {"stride", Kind::kCount}}};
constexpr Rule kPadding = {"",
                           false,
                           {{"strategy"},
                            {"direction", Kind::kString},
                            {"pad_to_multiple_of", Kind::kCount, kNullable},
                            {"pad_id", Kind::kCount},
                            {"pad_type_id", Kind::kCount},
                            {"pad_token", Kind::kString}}};
constexpr Rule kAddedToken = {"",
                              false,
                              {{"id", Kind::kCount},
                               {"content", Kind::kString},
                               {"single_word", Kind::kBool},
                               {"lstrip", Kind::kBool},
                               {"rstrip", Kind::kBool},
                               {"normalized", Kind::kBool},
                               {"special", Kind::kBool}}};
constexpr Rule kTemplateToken = {
    "", false, {{"id", Kind::kString}, {"ids", Kind::kArray}, {"tokens", Kind::kArray}}};
constexpr Rule kTemplatePart = {"", false, {{"id", Kind::kString}, {"type_id", Kind::kCount}}};

std::span<const Rule> rules_of(Section section) {
  switch (section) {
    case Section::kNormalizer:
      return kNormalizers;
    case Section::kPreTokenizer:
      return kPreTokenizers;
    case Section::kModel:
      return kModels;
    case Section::kDecoder:
      return kDecoders;
    default:
      return kPostProcessors;
  }
}

bool is_character(const JsonView& value) {
  if (!value.is_string() || value.as_string().empty()) return false;
  return first_char(value.as_string()).size == value.as_string().size();
}

bool is_token_and_id(const JsonView& value) {
  if (!value.is_array() || value.size() != 2) return false;
  size_t at = 0;
  bool good = true;
  value.for_each_item(
      [&](const JsonView& part) { good &= at++ == 0 ? part.is_string() : part.is_int(0, UINT32_MAX); });
  return good;
}

bool is_pattern(const JsonView& value) {
  if (!value.is_object() || value.size() != 1) return false;
  bool good = true;
  value.for_each_member([&](const std::string& name, const JsonView& text) {
    good = (name == "String" || name == "Regex") && text.is_string();
  });
  return good;
}

// Says what a value must be; empty if it is.
std::string_view fault_of(const JsonView& value, Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return value.is_bool() ? "" : "true or false is expected";
    case Kind::kString:
      return value.is_string() ? "" : "a string is expected";
    case Kind::kCharacter:
      return is_character(value) ? "" : "one character is expected";
    case Kind::kCount:
      return value.is_int(0, INT64_MAX) ? "" : "a whole number, 0 or more, is expected";
    case Kind::kNumber:
      return value.is_number() ? "" : "a number is expected";
    case Kind::kArray:
      return value.is_array() ? "" : "an array is expected";
    case Kind::kObject:
      return value.is_object() ? "" : "an object is expected";
    case Kind::kPattern:
      return is_pattern(value) ? "" : "either 'Regex' or 'String' is expected, with a string";
    case Kind::kTokenAndId:
      return is_token_and_id(value) ? "" : "a token and its id are expected, as [\"</s>\", 2]";
    default:
      return value.is_null() ? "something is expected" : "";
  }
}

void check(const JsonView& json, const Rule& rule) {
  for (const Key& key : rule.used()) {
    if (!json.contains(key.name) && key.presence != kRequired) continue;
    const JsonView value = json.at(key.name);
    if (value.is_null() && key.presence == kNullable) continue;
    const std::string_view fault = fault_of(value, key.kind);
    if (!fault.empty()) value.fail(ErrorCode::kIo, fault);
  }
}

bool fits(const JsonView& json, const Rule& rule) {
  return std::ranges::all_of(rule.used(), [&](const Key& key) {
    if (!json.contains(key.name)) return key.presence != kRequired;
    const JsonView value = json.at(key.name);
    return (value.is_null() && key.presence == kNullable) || fault_of(value, key.kind).empty();
  });
}

std::string names_of(std::span<const Rule> rules) {
  std::string names;
  for (const Rule& rule : rules) {
    names += names.empty() ? "" : &rule == &rules.back() ? " or " : ", ";
    names += rule.type;
  }
  return names;
}

}  // namespace

std::string_view checked_type(Section section, const JsonView& json) {
  const std::span<const Rule> rules = rules_of(section);
  if (!json.is_object()) json.fail(ErrorCode::kIo, "an object with 'type' is expected");
  const auto type = json.contains("type") ? std::optional(json.at("type")) : std::nullopt;
  const auto named = [&](const Rule& rule) {
    return type && type->is_string() && type->as_string() == rule.type;
  };
  const auto known = std::ranges::find_if(rules, named);
  // Post-processors are told apart by their keys even where they are named.
  if (known != rules.end() && !(section == Section::kPostProcessor && known->inferred)) {
    check(json, *known);
    return known->type;
  }
  // A model of an unknown type is refused, whatever its keys.
  const bool may_infer = !type || section != Section::kModel;
  for (const Rule& rule : rules) {
    if (may_infer && rule.inferred && fits(json, rule)) return rule.type;
  }
  if (known != rules.end()) check(json, *known);
  (type ? *type : json).fail(ErrorCode::kIo, names_of(rules) + " is expected as type");
}

void check_top(const JsonView& root) {
  check(root, kTop);
  const auto keys = kTop.used();
  root.for_each_member([&](const std::string& name, const JsonView& value) {
    if (std::ranges::find(keys, name, &Key::name) == keys.end())
      value.fail(ErrorCode::kIo, "no tokenizer.json has this key");
  });
  if (const auto truncation = root.find("truncation")) {
    check(*truncation, kTruncation);
    const JsonView strategy = truncation->at("strategy");
    strategy.check_one_of({"LongestFirst", "OnlyFirst", "OnlySecond"});
    if (const auto direction = truncation->find("direction")) direction->check_one_of({"Left", "Right"});
  }
  if (const auto padding = root.find("padding")) {
    check(*padding, kPadding);
    const JsonView strategy = padding->at("strategy"), direction = padding->at("direction");
    const auto fixed = strategy.is_object() ? strategy.find("Fixed") : std::nullopt;
    if (fixed) {
      fixed->as_int(0, INT64_MAX);
    } else {
      strategy.check_one_of({"BatchLongest"});
    }
    direction.check_one_of({"Left", "Right"});
  }
}

void check_added_token(const JsonView& json) {
  check(json, kAddedToken);
}

void check_template_piece(const JsonView& json) {
  const auto sequence = json.find("Sequence"), special = json.find("SpecialToken");
  if (json.size() != 1 || (!sequence && !special))
    json.fail(ErrorCode::kIo, "an object with either 'Sequence' or 'SpecialToken' is expected");
  check(sequence ? *sequence : *special, kTemplatePart);
  if (!sequence) return;
  const JsonView id = sequence->at("id");
  id.check_one_of({"A", "B"});
}

void check_template_token(const JsonView& json) {
  check(json, kTemplateToken);
}

}  // namespace heddle
