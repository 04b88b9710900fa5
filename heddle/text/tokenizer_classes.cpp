#include "heddle/text/tokenizer_classes.h"

#include <algorithm>

#include <fmt/format.h>

#include "heddle/text/tokenizer_class_table.h"

namespace heddle {
namespace {

// Stages and settings of the model as JSON. The names in @ stand for settings.
struct RebuiltClass {
  std::string_view name;
  const char* special_tokens;
  const char* stages;
  const char* model;
  bool keeps_charsmap = false;  // the first Precompiled of the file stays as the normalizer
  bool own_processor = false;   // with these special tokens around a text
  std::string_view before = {}, after = {};
};

constexpr const char* kBpe =
    R"({"dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false})";
constexpr const char* kPieceBpe =
    R"({"dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": true, "byte_fallback": true, "ignore_merges": false})";
constexpr const char* kGemmaBpe =
    R"({"dropout": null, "unk_token": @unk_token@, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": true, "byte_fallback": true, "ignore_merges": false})";
constexpr const char* kByteStages = R"({"normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": @add_prefix_space@, "trim_offsets": true},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}})";
constexpr const char* kNeoxStages = R"({"normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": @add_prefix_space@, "trim_offsets": true},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}})";
constexpr const char* kCohereStages = R"({"normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
    {"type": "ByteLevel", "add_prefix_space": @add_prefix_space@, "trim_offsets": true}]},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}})";
constexpr const char* kQwenStages = R"({"normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": @add_prefix_space@, "trim_offsets": true, "use_regex": false}]},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}})";
constexpr const char* kLlamaStages = R"({"normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "@scheme@", "split": false},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": @strip@, "stop": 0}]}})";
constexpr const char* kGemmaStages = R"({
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}]}})";
constexpr const char* kT5Stages = R"({
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]},
  "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}})";
constexpr const char* kXlmrStages = R"({
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "@scheme@"}]},
  "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "@scheme@"}})";
constexpr const char* kBertStages = R"({
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": @tokenize_chinese_chars@,
    "strip_accents": @strip_accents@, "lowercase": @do_lower_case@},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})";
constexpr const char* kRobertaTokens =
    R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
        "cls_token": "<s>", "mask_token": "<mask>"})";

constexpr RebuiltClass kClasses[] = {
    {.name = "LlamaTokenizer",
     .special_tokens = R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})",
     .stages = kLlamaStages,
     .model = kPieceBpe},
    {.name = "GemmaTokenizer",
     .special_tokens = R"({"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>",
                           "pad_token": "<pad>", "mask_token": "<mask>"})",
     .stages = kGemmaStages,
     .model = kGemmaBpe},
    {.name = "Qwen2Tokenizer",
     .special_tokens = R"({"eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>",
                           "pad_token": "<|endoftext|>"})",
     .stages = kQwenStages,
     .model = kBpe},
    {.name = "GPT2Tokenizer",
     .special_tokens = R"({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                           "unk_token": "<|endoftext|>"})",
     .stages = kByteStages,
     .model = kBpe},
    {.name = "GPTNeoXTokenizer",
     .special_tokens = R"({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                           "unk_token": "<|endoftext|>", "pad_token": "<|padding|>"})",
     .stages = kNeoxStages,
     .model = kBpe,
     .own_processor = true},
    {.name = "CohereTokenizer",
     .special_tokens = R"({"bos_token": "<BOS_TOKEN>", "eos_token": "<|END_OF_TURN_TOKEN|>",
                           "unk_token": "<UNK>", "sep_token": "<SEP>", "pad_token": "<PAD>",
                           "cls_token": "<CLS>", "mask_token": "<MASK_TOKEN>"})",
     .stages = kCohereStages,
     .model = kBpe},
    {.name = "T5Tokenizer",
     .special_tokens = R"({"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"})",
     .stages = kT5Stages,
     .model = R"({"unk_id": 2, "byte_fallback": false})",
     .keeps_charsmap = true,
     .own_processor = true,
     .after = "eos_token"},
    {.name = "XLMRobertaTokenizer",
     .special_tokens = kRobertaTokens,
     .stages = kXlmrStages,
     .model = R"({"unk_id": 3, "byte_fallback": false})",
     .keeps_charsmap = true,
     .own_processor = true,
     .before = "bos_token",
     .after = "eos_token"},
    {.name = "RobertaTokenizer",
     .special_tokens = kRobertaTokens,
     .stages = kByteStages,
     .model = kBpe,
     .own_processor = true,
     .before = "cls_token",
     .after = "sep_token"},
    {.name = "BertTokenizer",
     .special_tokens = R"({"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]",
                           "cls_token": "[CLS]", "mask_token": "[MASK]"})",
     .stages = kBertStages,
     .model = R"({"unk_token": @unk_token@, "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100})",
     .own_processor = true,
     .before = "cls_token",
     .after = "sep_token"},
};

const RebuiltClass* find_class(std::string_view name) {
  const auto* found = std::ranges::find(kClasses, name, &RebuiltClass::name);
  return found == std::end(kClasses) ? nullptr : found;
}

bool is_generic(std::string_view name) {
  constexpr std::string_view kGeneric[] = {"TokenizersBackend", "PythonBackend", "PreTrainedTokenizer",
                                           "MistralCommonBackend"};
  return std::ranges::find(kGeneric, name) != std::end(kGeneric);
}

std::string_view without_fast(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return name;
}

bool is_on(const FindSetting& find, std::string_view name, bool otherwise) {
  const Json* value = find(name);
  return value && value->is_bool() ? value->as_bool() : otherwise;
}

// The value of a name in @, as JSON.
std::string value_of(std::string_view name, std::string_view class_name, const FindSetting& find) {
  const bool pieces = class_name == "LlamaTokenizer" || class_name == "XLMRobertaTokenizer";
  const bool prefix = is_on(find, "add_prefix_space", pieces);
  if (name == "add_prefix_space") return prefix ? "true" : "false";
  if (name == "strip") return prefix ? "1" : "0";
  if (name == "scheme") {
    const bool first = class_name == "LlamaTokenizer" && !is_on(find, "legacy", false);
    return !prefix ? "never" : first ? "first" : "always";
  }
  const Json* value = find(name);
  if (name == "unk_token" && value) {
    const Json* content = value->is_object() ? value->find("content") : value;
    return content ? content->dump() : "null";
  }
  if (name == "strip_accents") return value ? value->dump() : "null";
  return is_on(find, name, true) ? "true" : "false";
}

Json filled(std::string text, std::string_view class_name, const FindSetting& find) {
  for (size_t at; (at = text.find('@')) != std::string::npos;) {
    const size_t end = text.find('@', at + 1);
    const std::string name = text.substr(at + 1, end - at - 1);
    text.replace(at, end + 1 - at, value_of(name, class_name, find));
  }
  return parse_json(text, std::string(class_name));
}

// The first Precompiled among the stages of a normalizer; null if there is none.
Json charsmap_of(const Json& normalizer) {
  const auto is_charsmap = [](const Json& stage) {
    const Json* type = stage.find("type");
    return type && type->is_string() && type->as_string() == "Precompiled";
  };
  if (is_charsmap(normalizer)) return normalizer;
  const Json* list = normalizer.find("normalizers");
  if (!list || !list->is_array()) return {};
  const auto found = std::ranges::find_if(list->items(), is_charsmap);
  return found == list->items().end() ? Json() : *found;
}

}  // namespace

std::string choose_tokenizer_class(std::string_view model_type, std::string_view named,
                                   const std::function<bool()>& byte_level) {
  named = without_fast(named);
  const auto* registered = std::ranges::find(kRegisteredClasses, model_type, &RegisteredClass::model_type);
  const bool known = registered != std::end(kRegisteredClasses);
  const bool over = known && registered->over_checkpoint;
  std::string_view chosen = named;
  if (named == "LlamaTokenizer" && !over && byte_level()) return {};
  if (named.empty()) {
    chosen = known ? registered->name : "";
  } else if (known && named != registered->name) {
    chosen = is_generic(registered->name) ? "" : over ? registered->name : named;
  }
  return find_class(chosen) ? std::string(chosen) : "";
}

Json default_special_tokens(std::string_view class_name) {
  const RebuiltClass* found = find_class(class_name);
  return found ? parse_json(found->special_tokens, std::string(class_name)) : Json::object();
}

void rebuild_stages(std::string_view class_name, const FindSetting& find, Json& tokenizer) {
  const RebuiltClass* found = find_class(class_name);
  if (!found) return;
  const Json* normalizer = tokenizer.find("normalizer");
  const Json charsmap = found->keeps_charsmap && normalizer ? charsmap_of(*normalizer) : Json();
  tokenizer["normalizer"] = charsmap;
  const Json stages = filled(found->stages, class_name, find), model = filled(found->model, class_name, find);
  for (const auto& [name, value] : stages.members()) tokenizer[name] = value;
  Json& target = tokenizer["model"];
  for (const auto& [name, value] : model.members()) target[name] = value;
}

std::optional<TokensAround> tokens_around(std::string_view class_name) {
  const RebuiltClass* found = find_class(class_name);
  if (!found || !found->own_processor) return std::nullopt;
  TokensAround made;
  if (!found->before.empty()) made.before.emplace_back(found->before);
  if (!found->after.empty()) made.after.emplace_back(found->after);
  return made;
}

}  // namespace heddle
