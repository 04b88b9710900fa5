#include "heddle/text/gguf_vocabulary.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/text/vocabulary/model.h"

namespace heddle {
namespace {

using Piece = SentencePieceModel::Type;  // the format has its numbers

// Patterns of the models' own tokenizers.
constexpr const char *
    kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
   *kDigit = R"(\p{N})",
   *kThreeDigits =
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
   *kOneDigit =
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
   *kTekken =
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
   *kGpt4o =
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The patterns that cut a text into words, one after the other, under each of the names that files have for them.
struct Words {
  std::vector<std::string_view> names;
  std::vector<const char*> patterns;
  bool keeps_tokens = false;  // a word that is a token is not merged
  bool composes = false;      // letters and their accents are joined first (NFC)
  bool begins = false;        // a text begins with the token of that name, where the file does not say
};
const std::vector<Words>& all_words() {
  static const std::vector<Words> all = {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "smaug-bpe"}, {kThreeDigits}, true, false, true},
      {{"dbrx", "gpt-4", "olmo2"}, {kThreeDigits}},
      {{"qwen2"}, {kOneDigit}, false, true},
      {{"deepseek-r1-qwen", "stablelm2"}, {kOneDigit}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "gigachat"}, {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, {kDigit, kGpt2}},
      {{"tekken"}, {kTekken}, true, false, true},
      {{"gpt-4o", "llama4"}, {kGpt4o}},
  };
  return all;
}

const Words& words_of(const Gguf& file) {
  const std::string name = file.text("tokenizer.ggml.pre", "");
  std::vector<std::string_view> known;
  for (const Words& words : all_words()) {
    if (std::ranges::find(words.names, name) != words.names.end()) return words;
    known.insert(known.end(), words.names.begin(), words.names.end());
  }
  fail(ErrorCode::kUnsupported,
       "[{}] tokenizer.ggml.pre {}: it says how a text is cut into words; heddle knows {}", file.path(),
       name.empty() ? "is missing" : fmt::format("is {}, which heddle does not know", brief(name)),
       fmt::join(known, ", "));
}

struct GgufTokens {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;  // numbers of Piece; empty: all are normal

  explicit GgufTokens(const Gguf& file) : tokens(file.at("tokenizer.ggml.tokens").strings()) {
    if (tokens.empty() || int64_t(tokens.size()) > kMaxTokenId)
      fail(ErrorCode::kIo, "[{}] tokenizer.ggml.tokens has {} tokens; must be 1 to {}", file.path(),
           tokens.size(), kMaxTokenId);
    if (const GgufValue* found = file.find("tokenizer.ggml.token_type")) types = found->ints();
    if (!types.empty() && types.size() != tokens.size())
      fail(ErrorCode::kIo, "[{}] tokenizer.ggml.token_type has {} numbers for {} tokens", file.path(),
           types.size(), tokens.size());
  }

  bool is(size_t id, Piece type) const { return !types.empty() && types[id] == int64_t(type); }
};

std::optional<std::string> token_at(const Gguf& file, std::string_view key, const GgufTokens& vocabulary) {
  const GgufValue* found = file.find(key);
  if (!found) return {};
  return std::string(vocabulary.tokens[size_t(found->as_int(0, int64_t(vocabulary.tokens.size()) - 1))]);
}

Json added_token(std::string_view text, bool special) {
  return Json::object({{"content", text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", special}});
}

Json settings_of(const Gguf& file, const GgufTokens& vocabulary, bool begins) {
  Json settings = Json::object();
  constexpr std::pair<const char*, const char*> kNamed[] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                                            {"eos_token", "tokenizer.ggml.eos_token_id"},
                                                            {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                                            {"pad_token", "tokenizer.ggml.padding_token_id"}};
  for (const auto& [name, key] : kNamed)
    if (const auto token = token_at(file, key, vocabulary)) settings[name] = *token;
  settings["add_bos_token"] = file.flag("tokenizer.ggml.add_bos_token").value_or(begins);
  settings["add_eos_token"] = file.flag("tokenizer.ggml.add_eos_token").value_or(false);
  if (const GgufValue* chat = file.find("tokenizer.chat_template"))
    settings["chat_template"] = chat->as_string();
  return settings;
}

// The stages that GPT-2 has around BPE: words as patterns cut them, and bytes as letters.
Json stages_of(const Words& words, Json model) {
  const Json bytes = Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  Json stages = Json::array();
  for (const char* pattern : words.patterns)
    stages.push_back(Json::object({{"type", "Split"},
                                   {"pattern", Json::object({{"Regex", pattern}})},
                                   {"behavior", "Isolated"},
                                   {"invert", false}}));
  stages.push_back(bytes);
  return Json::object({{"version", "1.0"},
                       {"normalizer", words.composes ? Json::object({{"type", "NFC"}}) : Json()},
                       {"pre_tokenizer", Json::object({{"type", "Sequence"}, {"pretokenizers", stages}})},
                       {"decoder", bytes},
                       {"model", std::move(model)}});
}

GgufVocabulary read_bpe(const Gguf& file, const GgufTokens& vocabulary) {
  const Words& words = words_of(file);
  GgufVocabulary made{.settings = settings_of(file, vocabulary, words.begins)};
  std::map<std::string, int64_t> ids;
  Json added = Json::object();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view token = vocabulary.tokens[id];
    if (!ids.emplace(token, int64_t(id)).second)
      fail(ErrorCode::kIo, "[{}] tokenizer.ggml.tokens has {} twice", file.path(), brief(Json(token)));
    if (const bool special = vocabulary.is(id, Piece::kControl);
        special || vocabulary.is(id, Piece::kUserDefined))
      added[std::to_string(id)] = added_token(token, special);
  }
  made.settings["added_tokens_decoder"] = std::move(added);
  Json merges = Json::array();
  for (const std::string_view merge : file.at("tokenizer.ggml.merges").strings())
    merges.push_back(Json(merge));
  made.tokenizer = stages_of(words, Json::object({{"type", "BPE"},
                                                  {"ignore_merges", words.keeps_tokens},
                                                  {"vocab", Json(ids)},
                                                  {"merges", std::move(merges)}}));
  return made;
}

GgufVocabulary read_pieces(const Gguf& file, const GgufTokens& vocabulary) {
  GgufVocabulary made{.settings = settings_of(file, vocabulary, true)};
  SentencePieceModel& model = made.model.emplace();
  model.is_unigram = false;
  model.removes_spaces = file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  model.dummy_prefix = file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  const std::vector<double> scores = file.at("tokenizer.ggml.scores").numbers();
  if (scores.size() != vocabulary.tokens.size())
    fail(ErrorCode::kIo, "[{}] tokenizer.ggml.scores has {} numbers for {} tokens", file.path(),
         scores.size(), vocabulary.tokens.size());
  for (size_t id = 0; id < scores.size(); ++id) {
    const int64_t type = vocabulary.types.empty() ? int64_t(Piece::kNormal) : vocabulary.types[id];
    if (type < int64_t(Piece::kNormal) || type > int64_t(Piece::kByte))
      fail(ErrorCode::kIo, "[{}] tokenizer.ggml.token_type has {}; must be 1 to 6", file.path(), type);
    model.pieces.push_back({std::string(vocabulary.tokens[id]), float(scores[id]), Piece(type)});
    model.byte_fallback |= Piece(type) == Piece::kByte;
  }
  const auto id_of = [&](const char* key, int64_t& id, std::string& text) {
    const GgufValue* found = file.find(key);
    id = found ? found->as_int(0, int64_t(scores.size()) - 1) : -1;
    if (id >= 0) text = vocabulary.tokens[size_t(id)];
  };
  id_of("tokenizer.ggml.bos_token_id", model.begin_id, model.begin);
  id_of("tokenizer.ggml.eos_token_id", model.end_id, model.end);
  id_of("tokenizer.ggml.unknown_token_id", model.unknown_id, model.unknown);
  if (model.unknown_id < 0) {
    const auto found = std::ranges::find(model.pieces, Piece::kUnknown, &SentencePieceModel::Piece::type);
    if (found != model.pieces.end()) model.unknown = found->text;
  }
  return made;
}

// Tokens that end a turn in some model, whatever the file names as the end of a text; llama.cpp looks for such names too.
constexpr std::string_view kEndsOfTurns[] = {"<|eot_id|>", "<|im_end|>",    "<|end|>",        "<end_of_turn>",
                                             "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>"};

}  // namespace

GgufVocabulary read_gguf_vocabulary(const Gguf& file) {
  const std::string kind = file.at("tokenizer.ggml.model").as_string();
  if (kind != "gpt2" && kind != "llama")
    fail(ErrorCode::kUnsupported, "[{}] tokenizer.ggml.model is {}; heddle reads gpt2 and llama", file.path(),
         brief(kind));
  const GgufTokens vocabulary(file);
  return kind == "gpt2" ? read_bpe(file, vocabulary) : read_pieces(file, vocabulary);
}

Json gguf_generation(const Gguf& file) {
  Json made = Json::object();
  if (!file.find("tokenizer.ggml.tokens")) return made;
  const GgufTokens vocabulary(file);
  const auto id_at = [&](const char* key) -> std::optional<int64_t> {
    const GgufValue* found = file.find(key);
    return found ? std::optional(found->as_int(0, int64_t(vocabulary.tokens.size()) - 1)) : std::nullopt;
  };
  if (const auto begin = id_at("tokenizer.ggml.bos_token_id")) made["bos_token_id"] = *begin;
  if (const auto pad = id_at("tokenizer.ggml.padding_token_id")) made["pad_token_id"] = *pad;
  std::vector<int64_t> ends;
  const auto add = [&](int64_t id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const auto end = id_at(key)) add(*end);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.is(id, Piece::kControl) &&
        std::ranges::find(kEndsOfTurns, vocabulary.tokens[id]) != std::end(kEndsOfTurns))
      add(int64_t(id));
  if (!ends.empty()) made["eos_token_id"] = Json(ends);
  return made;
}

}  // namespace heddle
