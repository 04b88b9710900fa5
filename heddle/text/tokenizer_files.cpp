#include "heddle/text/tokenizer_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr std::string_view kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
constexpr const char *kConfig = "tokenizer_config.json", *kMap = "special_tokens_map.json",
                     *kAdded = "added_tokens.json", *kTokenizer = "tokenizer.json",
                     *kModel = "tokenizer.model";

std::optional<Json> read(const std::string& folder, const char* name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  if (!path_exists(path)) return std::nullopt;
  Json json = load_json(path);
  if (!json.is_object())
    fail(ErrorCode::kIo, "[{}] is {}: an object is expected", path.string(), json.kind());
  return json;
}

bool is_token(const Json& value) {
  if (value.is_string()) return true;
  const Json* content = value.find("content");
  return content && content->is_string();
}

std::string content_of(const Json& value) {
  return value.is_string() ? value.as_string() : value.at("content").as_string();
}

// A string, or an object with the flags of an added token. `special`: it is one even if it does not say so.
AddedToken token_of(const Json& value, bool special, const std::string& where) {
  if (!is_token(value))
    fail(ErrorCode::kIo, "[{}] {} is no token: a string or an object with 'content' is expected", where,
         brief(value));
  AddedToken token{.content = content_of(value)};
  const auto flag = [&](std::string_view name, bool otherwise) {
    const Json* found = value.find(name);
    return found && found->is_bool() ? found->as_bool() : otherwise;
  };
  token.special = special || flag("special", false);
  token.single_word = flag("single_word", false);
  token.lstrip = flag("lstrip", false);
  token.rstrip = flag("rstrip", false);
  token.normalized = flag("normalized", !token.special);
  return token;
}

// True if a stage of tokenizer.json is ByteLevel.
bool has_byte_level(const Json& stage) {
  const Json* type = stage.find("type");
  if (type && type->is_string() && type->as_string() == "ByteLevel") return true;
  for (const char* name : {"pretokenizers", "decoders"}) {
    const Json* list = stage.find(name);
    if (list && list->is_array() && std::ranges::any_of(list->items(), has_byte_level)) return true;
  }
  return false;
}

bool works_on_bytes(const Json& tokenizer) {
  for (const char* name : {"pre_tokenizer", "decoder"}) {
    const Json* stage = tokenizer.find(name);
    if (stage && has_byte_level(*stage)) return true;
  }
  return false;
}

}  // namespace

TokenizerFiles::TokenizerFiles(const std::string& folder) : folder_(folder) {
  const std::optional<Json> config = read(folder, kConfig), model = read(folder, "config.json");
  if (config) merge(*config, kConfig);
  const bool lists_tokens = find("added_tokens_decoder") != nullptr;
  if (!lists_tokens) {
    if (const auto map = read(folder, kMap)) merge(*map, kMap);
    added_file_ = read(folder, kAdded);
  }
  const auto text_in = [&](const char* name) {
    const Json* found = model ? model->find(name) : nullptr;
    return found && found->is_string() ? found->as_string() : std::string();
  };
  const TokenizerSetting* named = find("tokenizer_class");
  class_ = choose_tokenizer_class(
      text_in("model_type"),
      named && named->value.is_string() ? named->value.as_string() : text_in("tokenizer_class"),
      [&] { return works_on_bytes(file()); });
  const Json defaults = default_special_tokens(class_);
  for (const auto& [name, value] : defaults.members()) add_default(name, value, "the default of " + class_);
  if (!path_exists(std::filesystem::path(folder) / kTokenizer)) read_model();
}

std::string TokenizerFiles::fingerprint(const std::string& folder) {
  std::vector<std::string> parts;
  for (const char* name : {kConfig, kMap, kAdded, kTokenizer, kModel}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path)) continue;
    parts.insert(parts.end(), {name, read_file(path)});
  }
  return digest_of(std::vector<std::string_view>(parts.begin(), parts.end()));
}

const Json& TokenizerFiles::file() {
  if (tokenizer_.is_null()) tokenizer_ = read(folder_, kTokenizer).value_or(Json());
  return tokenizer_;
}

void TokenizerFiles::add_default(const std::string& name, const Json& value, const std::string& source) {
  const auto has = [&](const TokenizerSetting& setting) { return setting.name == name; };
  if (std::ranges::none_of(settings_, has)) settings_.push_back({name, value, source});
}

void TokenizerFiles::read_model() {
  const std::filesystem::path path = std::filesystem::path(folder_) / kModel;
  if (!path_exists(path)) return;
  model_ = SentencePieceModel::parse(read_file(path), path);
  constexpr std::string_view kKnown[] = {"", "LlamaTokenizer", "GemmaTokenizer"};
  if (std::ranges::find(kKnown, class_) == std::end(kKnown)) {
    fail(ErrorCode::kUnsupported,
         "[{}] {} numbers its pieces anew; write a tokenizer.json with AutoTokenizer.from_pretrained(..)"
         ".save_pretrained(..) of transformers",
         path.string(), class_);
  }
  tokenizer_ = model_->tokenizer(class_.empty() && model_->is_unigram);
  if (!class_.empty()) return;
  if (model_->begin_id >= 0) add_default("bos_token", model_->begin, kModel);
  if (model_->end_id >= 0) add_default("eos_token", model_->end, kModel);
  if (model_->unknown_id >= 0) add_default("unk_token", model_->unknown, kModel);
}

// Later files win.
void TokenizerFiles::merge(const Json& object, const std::string& source) {
  for (const auto& [name, value] : object.members()) {
    const auto old = std::ranges::find(settings_, name, &TokenizerSetting::name);
    if (old != settings_.end())
      *old = {name, value, source};
    else
      settings_.push_back({name, value, source});
  }
}

const TokenizerSetting* TokenizerFiles::find(std::string_view name) const {
  const auto found = std::ranges::find(settings_, name, &TokenizerSetting::name);
  return found == settings_.end() || found->value.is_null() ? nullptr : &*found;
}

std::vector<std::pair<std::string, std::string>> TokenizerFiles::special_tokens() const {
  std::vector<std::pair<std::string, std::string>> tokens;
  for (const std::string_view name : kNames) {
    const TokenizerSetting* setting = find(name);
    if (setting && is_token(setting->value)) tokens.emplace_back(name, content_of(setting->value));
  }
  for (const TokenizerSetting& setting : settings_) {
    const bool named = std::ranges::find(kNames, setting.name) != std::end(kNames);
    if (!named && setting.name.ends_with("_token") && is_token(setting.value))
      tokens.emplace_back(setting.name, content_of(setting.value));
  }
  return tokens;
}

Json TokenizerFiles::tokenizer() && {
  file();
  Json made = std::move(tokenizer_);
  if (made.is_null()) fail(ErrorCode::kIo, "[{}] has neither {} nor {}", folder_, kTokenizer, kModel);
  if (class_.empty()) return made;
  const auto setting = [&](std::string_view name) {
    const TokenizerSetting* found = find(name);
    return found ? &found->value : nullptr;
  };
  rebuild_stages(class_, setting, made);
  made["added_tokens"] = Json::array();
  if (tokens_around(class_)) made["post_processor"] = nullptr;
  return made;
}

std::optional<TokensAround> TokenizerFiles::around() const {
  const auto text_of = [&](const std::string& name) {
    const TokenizerSetting* found = find(name);
    return found && is_token(found->value) ? content_of(found->value) : std::string();
  };
  auto made = tokens_around(class_);
  if (made) {
    for (std::string& token : made->before) token = text_of(token);
    for (std::string& token : made->after) token = text_of(token);
  } else if (model_) {
    made.emplace();
    const auto is_on = [&](std::string_view name) {
      const TokenizerSetting* found = find(name);
      return found && found->value.is_bool() && found->value.as_bool();
    };
    const std::string begin = text_of("bos_token"), end = text_of("eos_token");
    if (is_on("add_bos_token") && !begin.empty()) made->before.push_back(begin);
    if (is_on("add_eos_token") && !end.empty()) made->after.push_back(end);
  }
  return made;
}

// Tokens with an id, in its order.
std::vector<AddedToken> TokenizerFiles::listed_tokens() {
  std::map<int64_t, AddedToken> by_id;
  const TokenizerSetting* list = find("added_tokens_decoder");
  if (list) {
    for (const auto& [name, value] : list->value.members()) {
      int64_t id = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
      if (read.ec != std::errc() || read.ptr != name.data() + name.size())
        fail(ErrorCode::kIo, "[{}/{}] added_tokens_decoder has '{}': a token id is expected", folder_,
             kConfig, name);
      by_id[id] = token_of(value, false, folder_ + "/" + kConfig);
    }
  }
  std::vector<std::string> special;
  for (const auto& [name, content] : special_tokens()) special.push_back(content);
  if (added_file_) {
    for (const auto& [content, id] : added_file_->members()) {
      if (!id.to_int())
        fail(ErrorCode::kIo, "[{}/{}] '{}' is {}: a token id is expected", folder_, kAdded, content,
             brief(id));
      const bool is_special = std::ranges::find(special, content) != special.end();
      by_id[*id.to_int()] = {.content = content, .special = is_special, .normalized = !is_special};
    }
  }
  const Json* in_file = list ? nullptr : file().find("added_tokens");
  if (in_file && in_file->is_array()) {
    for (const Json& item : in_file->items()) {
      const Json* id = item.find("id");
      if (id && id->to_int()) by_id[*id->to_int()] = token_of(item, false, folder_ + "/" + kTokenizer);
    }
  }
  std::vector<AddedToken> tokens;
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

std::vector<AddedToken> TokenizerFiles::added_tokens() {
  std::vector<AddedToken> tokens = listed_tokens();
  const auto add = [&](const AddedToken& token) {
    const auto same = std::ranges::find(tokens, token.content, &AddedToken::content);
    if (same == tokens.end())
      tokens.push_back(token);
    else
      same->special = true;
  };
  const Json* in_file = class_.empty() ? file().find("added_tokens") : nullptr;
  const auto is_in_file = [&](const std::string& content) {
    return in_file && in_file->is_array() && std::ranges::any_of(in_file->items(), [&](const Json& item) {
             return is_token(item) && content_of(item) == content;
           });
  };
  for (const auto& [name, content] : special_tokens()) {
    const TokenizerSetting* setting = find(name);
    if (!is_in_file(content)) add(token_of(setting->value, true, folder_ + "/" + setting->source));
  }
  if (model_) {
    using enum SentencePieceModel::Type;
    for (const auto& piece : model_->pieces) {
      const auto same = std::ranges::find(tokens, piece.text, &AddedToken::content);
      const bool is_added = piece.type == kControl || piece.type == kUserDefined;
      if (is_added && same == tokens.end())
        tokens.push_back({.content = piece.text, .special = piece.type == kControl, .normalized = false});
    }
  }
  const TokenizerSetting* extra = find("extra_special_tokens");
  const bool is_empty = !extra || extra->value.size() == 0;
  if (is_empty) extra = find("additional_special_tokens");
  if (extra && extra->value.is_array()) {
    for (const Json& value : extra->value.items()) {
      const AddedToken token = token_of(value, true, folder_ + "/" + extra->source);
      if (!is_in_file(token.content)) add(token);
    }
  }
  return tokens;
}

}  // namespace heddle
