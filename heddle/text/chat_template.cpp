#include "heddle/text/chat_template.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/gguf.h"
#include "heddle/base/json_view.h"
#include "heddle/base/near_names.h"
#include "heddle/text/jinja/interpreter.h"
#include "heddle/text/jinja/json.h"
#include "heddle/text/jinja/parser.h"
#include "heddle/text/tekken.h"
#include "heddle/text/tokenizer_files.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr const char* kFile = "chat_template.jinja";
constexpr const char* kFolder = "additional_chat_templates";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kGgufKey = "tokenizer.chat_template";

// As in transformers: null members are left out, and the model's reasoning gets each of the names that
// templates use for it.
Json prepare(const Json& message) {
  require(message.is_object(), "a message is no object; one with 'role' and 'content' is expected");
  Json kept = Json::object();
  for (const auto& [key, value] : message.members()) {
    if (!value.is_null()) kept[key] = value;
  }
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Json* reasoning = kept.find(name);
    if (!reasoning) continue;
    Json all = Json::object({{"thinking", *reasoning}});
    for (const auto& [key, value] : kept.members()) all[key] = value;
    all["reasoning_content"] = *reasoning;
    return all;
  }
  return kept;
}

Json prepare_all(const Json& messages) {
  require(messages.is_array() && messages.size() > 0, "the messages are no array with at least one message");
  Json prepared = Json::array();
  for (const Json& message : messages.items()) prepared.push_back(prepare(message));
  return prepared;
}

// The words of a text that may be names of variables.
void add_names(std::string_view text, std::set<std::string>& names) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if(at, text.end(), is_part);
    at = std::find_if_not(begin, text.end(), is_part);
    if (begin != at) names.emplace(begin, at);
  }
}

void set(jinja::Variables& variables, std::string_view name, const jinja::Value& value) {
  jinja::set_item(variables, name, value);
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& name,
                                 const Variables& special_tokens) {
  ChatTemplate made;
  made.special_tokens_ = special_tokens;
  made.add("default", name, text);
  return made;
}

bool ChatTemplate::exists(const std::string& folder) {
  if (is_gguf(folder)) return Gguf(folder).find(kGgufKey) != nullptr;
  const std::filesystem::path root(folder);
  if (path_exists(root / kFile)) return true;
  if (!path_exists(root / kConfig)) return false;
  const JsonDocument document(read_file(root / kConfig), root / kConfig);
  const JsonView json = document.root();
  return json.find("chat_template").has_value();
}

void ChatTemplate::fail_without(const std::string& folder, std::string_view what) {
  const bool is_mistrals = path_exists(std::filesystem::path(folder) / kTekkenFile);
  fail(ErrorCode::kIo, "[{}] has no chat template: {}; {} gives it one, in Jinja", folder,
       is_mistrals ? "with tekken.json, Mistral's own program makes the turns" : "it was not made to talk",
       what);
}

ChatTemplate ChatTemplate::load(const std::string& folder, const std::string& file) {
  const std::filesystem::path root(folder), config = root / kConfig;
  ChatTemplate made;
  if (!file.empty()) made.add("default", file, read_file(file));
  if (file.empty() && path_exists(root / kFile)) made.add("default", root / kFile, read_file(root / kFile));
  if (file.empty() && is_folder(root / kFolder)) {
    for (const std::string& name : names_in(root / kFolder)) {
      const std::filesystem::path path = root / kFolder / name;
      if (path.extension() == ".jinja") made.add(path.stem(), path, read_file(path));
    }
  }
  made.special_tokens_ = TokenizerFiles(folder).special_tokens();
  if (made.entries_.empty() && exists(folder) && is_gguf(folder))
    made.add("default", folder + ": " + kGgufKey, Gguf(folder).at(kGgufKey).as_string());
  if (path_exists(config)) {
    const JsonDocument document(read_file(config), config);
    const JsonView json = document.root();
    const auto text = json.find("chat_template");
    const std::string where = config.string() + ": chat_template";
    if (text && made.entries_.empty()) {
      const auto add = [&](const std::string& name, const JsonView& content) {
        made.add(name, where + " '" + name + "'", content.as_string());
      };
      if (text->is_string()) {
        made.add("default", where, text->as_string());
      } else if (text->is_object()) {
        text->for_each_member(add);
      } else {
        text->for_each_item([&](const JsonView& item) {
          const JsonView name = item.at("name"), content = item.at("template");
          add(name.as_string(), content);
        });
      }
    }
  }
  if (made.entries_.empty()) {
    fail(ErrorCode::kIo, "[{}] has no chat template: neither {} nor 'chat_template' in {}", folder, kFile,
         kConfig);
  }
  return made;
}

void ChatTemplate::add(const std::string& name, const std::string& file, std::string_view text) {
  if (!is_valid_utf8(text)) fail(ErrorCode::kIo, "[{}] byte {} is not UTF-8", file, find_invalid_utf8(text));
  std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; });
  try {
    entries_.push_back({name, file, std::string(text), jinja::parse(text)});
  } catch (const Error& error) {
    fail(error.code(), "[{}] {}", file, error.what());
  }
}

const ChatTemplate::Entry& ChatTemplate::choose(bool with_tools) const {
  if (entries_.size() == 1 && entries_[0].name == "default") return entries_[0];
  const auto tool_use = std::ranges::find(entries_, "tool_use", &Entry::name);
  if (with_tools && tool_use != entries_.end()) return *tool_use;
  const auto found = std::ranges::find(entries_, "default", &Entry::name);
  if (found == entries_.end()) {
    fail(ErrorCode::kUnsupported, "[{}] has several templates and none is called 'default'",
         entries_[0].file);
  }
  return *found;
}

std::string_view ChatTemplate::text(bool with_tools) const {
  auto found = std::ranges::find(entries_, with_tools ? "tool_use" : "default", &Entry::name);
  if (found == entries_.end()) found = std::ranges::find(entries_, "default", &Entry::name);
  return found == entries_.end() ? std::string_view() : found->text;
}

std::vector<std::string> ChatTemplate::unread(const Json& variables) const {
  std::set<std::string> names;
  for (const Entry& entry : entries_) add_names(entry.text, names);
  const std::vector<std::string> known(names.begin(), names.end());
  std::vector<std::string> notes;
  for (const auto& [name, value] : variables.members())
    if (!names.contains(name))
      notes.push_back(
          fmt::format("the chat template reads no {}{}", brief(Json(name)), did_you_mean(name, known)));
  return notes;
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  Json all = Json::array();
  for (const ChatMessage& message : messages) {
    Json& made = all.push_back(
        Json::object({{"role", to_valid_utf8(message.role)}, {"content", to_valid_utf8(message.content)}}));
    if (!message.reasoning.empty()) made["reasoning_content"] = to_valid_utf8(message.reasoning);
  }
  return render_json(all, options);
}

std::string ChatTemplate::render_json(const Json& messages, const ChatOptions& options) const {
  const Json* tools = options.extra ? options.extra->find("tools") : nullptr;
  const bool with_tools = tools && !tools->is_null();
  const Entry& entry = choose(with_tools);
  try {
    jinja::Variables variables;
    for (const auto& [name, token] : special_tokens_) set(variables, name, jinja::Value(token));
    set(variables, "messages", jinja::from_json(prepare_all(messages)));
    set(variables, "tools", jinja::Value::none());
    set(variables, "documents", jinja::Value::none());
    set(variables, "add_generation_prompt", jinja::Value(options.add_generation_prompt));
    if (options.extra) {
      require(options.extra->is_object(), "the extra variables are no object");
      for (const auto& [name, value] : options.extra->members())
        set(variables, name, jinja::from_json(value));
    }
    return jinja::render(entry.body, variables, {.now = options.now, .budget = options.budget});
  } catch (const Error& error) {
    fail(error.code(), "[{}] {}", entry.file, error.what());
  }
}

}  // namespace heddle
