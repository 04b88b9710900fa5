#include "heddle/text/tokenizer_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/text/gguf_vocabulary.h"
#include "heddle/text/tekken.h"
#include "heddle/text/tiktoken.h"
#include "heddle/text/vocabulary_files.h"

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

bool is_standard_name(std::string_view name) {
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// The name of a special token that only some models have, such as image_token.
bool is_own_name(std::string_view name) {
  return name.ends_with("_token") && !is_standard_name(name);
}

// A text under such a name in tokenizer_config.json wins over special_tokens_map.json.
bool stays(const TokenizerSetting& setting) {
  return setting.value.is_string() && setting.source == kConfig;
}

}  // namespace

TokenizerFiles::TokenizerFiles(const std::string& folder) : folder_(folder) {
  if (is_gguf(folder)) {
    read_gguf();
    return;
  }
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
  named_class_ = named && named->value.is_string() ? named->value.as_string() : text_in("tokenizer_class");
  model_type_ = text_in("model_type");
  class_ = choose_tokenizer_class(model_type_, named_class_, [&] { return works_on_bytes(file()); });
  const Json defaults = default_special_tokens(class_);
  for (const auto& [name, value] : defaults.members()) add_default(name, value, "the default of " + class_);
  if (path_exists(std::filesystem::path(folder) / kTokenizer)) return;
  made_ = true;
  if (read_tekken()) return;
  read_model();
  if (model_ || !tokenizer_.is_null()) return;
  tokenizer_ = read_vocabulary_files(folder, class_);
  if (!tokenizer_.is_null()) return;
  if (const std::string name = find_tiktoken(folder); !name.empty())
    read_ranks(name, read_file(std::filesystem::path(folder) / name));
}

void TokenizerFiles::read_gguf() {
  const Gguf file(folder_);
  GgufVocabulary made = read_gguf_vocabulary(file);
  file.require_unchanged();
  made_ = true, source_.clear();
  merge(made.settings, "its metadata");
  model_ = std::move(made.model);
  tokenizer_ = model_ ? model_->tokenizer({}, true) : std::move(made.tokenizer);
}

std::string TokenizerFiles::fingerprint(const std::string& folder) {
  std::vector<std::string> parts;
  if (is_gguf(folder)) {
    TokenizerFiles files(folder);
    for (const TokenizerSetting& setting : files.settings_)
      parts.insert(parts.end(), {setting.name, setting.value.dump()});
    parts.push_back(std::move(files).tokenizer().dump());
    return digest_of(std::vector<std::string_view>(parts.begin(), parts.end()));
  }
  const auto add = [&](const char* name) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path)) return false;
    parts.insert(parts.end(), {name, read_file(path)});
    return true;
  };
  for (const char* name : {kConfig, kMap, kAdded}) add(name);
  const bool is_whole = add(kTokenizer);
  if (!add(kTekkenFile) && !add(kModel) && !is_whole)
    for (const std::string& name :
         {std::string(kVocabFile), std::string(kMergesFile), std::string(kWordsFile), find_tiktoken(folder)})
      if (!name.empty()) add(name.c_str());
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

// False if there is none.
bool TokenizerFiles::read_tekken() {
  const std::filesystem::path path = std::filesystem::path(folder_) / kTekkenFile;
  if (!path_exists(path)) return false;
  const JsonDocument document(read_file(path), path);
  const JsonView root = document.root();
  tokenizer_ = tokenizer_of_tekken(root);
  class_.clear(), source_ = kTekkenFile;
  constexpr std::pair<const char*, const char*> kNamed[] = {
      {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
  for (const auto& [name, token] : kNamed)
    if (tokenizer_.at("model").at("vocab").find(token)) add_default(name, token, kTekkenFile);
  add_default("add_bos_token", true, kTekkenFile);
  return true;
}

void TokenizerFiles::read_ranks(const std::string& name, const std::string& bytes) {
  const std::string path = std::filesystem::path(folder_) / name;
  TiktokenTokenizer read = read_tiktoken(bytes, path, named_class_, model_type_, listed_tokens());
  tokenizer_ = std::move(read.tokenizer);
  class_.clear(), source_ = name;
  for (const auto& [setting, value] : read.defaults.members()) add_default(setting, value, name);
  if (!read.around.before.empty()) around_ = std::move(read.around);
}

void TokenizerFiles::read_model() {
  const std::filesystem::path path = std::filesystem::path(folder_) / kModel;
  if (!path_exists(path)) return;
  const std::string bytes = read_file(path);
  if (is_tiktoken(bytes)) return read_ranks(kModel, bytes);
  model_ = SentencePieceModel::parse(bytes, path);
  constexpr std::string_view kKnown[] = {"", "LlamaTokenizer", "GemmaTokenizer"};
  if (std::ranges::find(kKnown, class_) == std::end(kKnown)) {
    fail(ErrorCode::kUnsupported, "[{}] {} renumbers its pieces; {}", path.string(), class_,
         kMakeTokenizerJson);
  }
  if (!class_.empty()) {
    tokenizer_ = model_->vocabulary();
    return;
  }
  std::map<int64_t, std::string> names;
  for (const auto& [id, token] : listed_tokens()) names[id] = token.content;
  tokenizer_ = model_->tokenizer(names, is_on("legacy", true));
  if (model_->begin_id >= 0) add_default("bos_token", model_->begin, kModel);
  if (model_->end_id >= 0) add_default("eos_token", model_->end, kModel);
  if (model_->unknown_id >= 0) add_default("unk_token", model_->unknown, kModel);
}

// Later files win, but see stays().
void TokenizerFiles::merge(const Json& object, const std::string& source) {
  for (const auto& [name, value] : object.members()) {
    const auto old = std::ranges::find(settings_, name, &TokenizerSetting::name);
    if (old != settings_.end() && is_own_name(name) && stays(*old)) continue;
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

// As in transformers, tokens with a model's own names come after the others, and among them texts of
// tokenizer_config.json last.
std::vector<TokenizerFiles::NamedToken> TokenizerFiles::named_tokens() const {
  std::vector<NamedToken> tokens;
  for (const std::string_view name : kNames) tokens.push_back({std::string(name), nullptr, {}});
  const auto add = [&](const std::string& name, const Json& value, const std::string& source) {
    auto same = std::ranges::find(tokens, name, &NamedToken::name);
    if (same == tokens.end()) same = tokens.insert(same, NamedToken{name, nullptr, {}});
    same->value = &value, same->source = source;
  };
  const auto add_all = [&](auto&& fits) {
    for (const TokenizerSetting& setting : settings_)
      if (is_token(setting.value) && fits(setting)) add(setting.name, setting.value, setting.source);
  };
  add_all([](const TokenizerSetting& setting) { return is_standard_name(setting.name); });
  add_all([](const TokenizerSetting& setting) { return is_own_name(setting.name) && !stays(setting); });
  add_all([](const TokenizerSetting& setting) { return is_own_name(setting.name) && stays(setting); });
  const TokenizerSetting* extra = find("extra_special_tokens");
  if (extra && !extra->value.is_object()) extra = nullptr;
  const bool has_more = extra || std::ranges::any_of(settings_, [](const TokenizerSetting& setting) {
                          return is_own_name(setting.name) && stays(setting);
                        });
  for (const TokenizerSetting* setting :
       {has_more ? nullptr : find("model_specific_special_tokens"), extra}) {
    if (!setting || !setting->value.is_object()) continue;
    for (const auto& [own, value] : setting->value.members()) add(own, value, setting->source);
  }
  std::erase_if(tokens, [](const NamedToken& token) { return token.value == nullptr; });
  return tokens;
}

std::vector<std::pair<std::string, std::string>> TokenizerFiles::special_tokens() const {
  std::vector<std::pair<std::string, std::string>> tokens;
  for (const NamedToken& token : named_tokens())
    if (is_token(*token.value)) tokens.emplace_back(token.name, content_of(*token.value));
  return tokens;
}

Json TokenizerFiles::tokenizer() && {
  file();
  Json made = std::move(tokenizer_);
  if (made.is_null()) fail_without_vocabulary(folder_, class_);
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
  if (around_) return around_;
  const auto named = special_tokens();
  const auto text_of = [&](const std::string& name) {
    const auto found = std::ranges::find(named, name, [](const auto& token) { return token.first; });
    return found == named.end() ? std::string() : found->second;
  };
  auto made = tokens_around(class_);
  const bool names_some = made && !(made->before.empty() && made->after.empty());
  if (names_some || (made && !made_)) {
    for (std::string& token : made->before) token = text_of(token);
    for (std::string& token : made->after) token = text_of(token);
  } else if (made_) {
    made.emplace();
    const std::string begin = text_of("bos_token"), end = text_of("eos_token");
    if (is_on("add_bos_token", false) && !begin.empty()) made->before.push_back(begin);
    if (is_on("add_eos_token", false) && !end.empty()) made->after.push_back(end);
  }
  return made;
}

bool TokenizerFiles::has(std::string_view name) const {
  return std::ranges::find(settings_, name, &TokenizerSetting::name) != settings_.end();
}

bool TokenizerFiles::is_on(std::string_view name, bool otherwise) const {
  const TokenizerSetting* found = find(name);
  return found && found->value.is_bool() ? found->value.as_bool() : otherwise;
}

// The tokens that the files give an id, by it.
std::map<int64_t, AddedToken> TokenizerFiles::listed_tokens() {
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
  const Json* in_file = list || made_ ? nullptr : file().find("added_tokens");
  if (in_file && in_file->is_array()) {
    for (const Json& item : in_file->items()) {
      const Json* id = item.find("id");
      if (id && id->to_int()) by_id[*id->to_int()] = token_of(item, false, folder_ + "/" + kTokenizer);
    }
  }
  // Matched in the text as it is, so that SentencePiece's prefix comes before each part between them.
  if (model_ && class_.empty() && model_->dummy_prefix)
    for (auto& [id, token] : by_id) token.normalized = false;
  return by_id;
}

std::vector<AddedToken> TokenizerFiles::added_tokens() {
  std::vector<AddedToken> tokens;
  for (auto& [id, token] : listed_tokens()) tokens.push_back(std::move(token));
  const size_t listed = tokens.size();
  const Json* in_file = class_.empty() ? file().find("added_tokens") : nullptr;
  const auto is_in_file = [&](const std::string& content) {
    return in_file && in_file->is_array() && std::ranges::any_of(in_file->items(), [&](const Json& item) {
             return is_token(item) && content_of(item) == content;
           });
  };
  std::vector<std::string> special;
  // Among equal tokens that no file lists, the flags of the last one count.
  const auto add = [&](const AddedToken& token, bool named) {
    if (token.special) special.push_back(token.content);
    const auto end = tokens.begin() + std::ptrdiff_t(listed);
    const auto same = std::ranges::find(tokens.begin(), end, token.content, &AddedToken::content);
    if (same != end)
      same->special |= named;
    else if (!is_in_file(token.content))
      tokens.push_back(token);
  };
  for (const NamedToken& named : named_tokens())
    add(token_of(*named.value, true, folder_ + "/" + named.source), true);
  const TokenizerSetting *extra = find("extra_special_tokens"), *older = find("additional_special_tokens");
  const bool is_object = extra && extra->value.is_object();
  const bool lists_more = !is_object && (has("extra_special_tokens") || has("additional_special_tokens"));
  if (!extra || is_object || extra->value.size() == 0) extra = older;
  if (model_ && !lists_more) {
    extra = nullptr;
    using enum SentencePieceModel::Type;
    for (const auto& piece : model_->pieces) {
      // Where no class makes the stages, they keep user-defined pieces whole.
      const bool is_added = piece.type == kControl || (piece.type == kUserDefined && !class_.empty());
      if (is_added)
        add({.content = piece.text, .special = piece.type == kControl, .normalized = false}, false);
    }
  }
  if (extra && extra->value.is_array())
    for (const Json& value : extra->value.items())
      add(token_of(value, true, folder_ + "/" + extra->source), false);
  if (class_ == "Qwen2Tokenizer")  // adds all of them again, without flags
    for (const std::string& content : special)
      tokens.push_back({.content = content, .special = true, .normalized = false});
  return tokens;
}

}  // namespace heddle
