// heddle template: writes conversations as the model's chat template does.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/text/chat_template.h"

namespace heddle {
namespace {

struct TemplateFlags {
  std::string model, extra = "{}";
  bool no_prompt = false, json_lines = false;
};

Json parse(std::string_view text, const std::string& where) {
  try {
    return parse_json(text, where);
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, "[template] {}", error.what());
  }
}

void run_template(const TemplateFlags& flags) {
  const ChatTemplate chat = ChatTemplate::load(flags.model);
  const Json extra = parse(flags.extra, "--chat-template-kwargs");
  ChatOptions options = {.add_generation_prompt = !flags.no_prompt, .extra = &extra};
  if (!flags.json_lines) return print(chat.render_json(parse(read_stdin(), "stdin"), options));
  StdinLines lines;
  std::string line;
  for (size_t number = 1; lines.next(line); ++number) {
    const Json request = parse(line, fmt::format("stdin:{}", number));
    const Json* messages = request.find("messages");
    require(messages, "[template] line {} is no object with 'messages'", number);
    const Json none = Json::object();
    const Json *more = request.find("extra"), *prompt = request.find("add_generation_prompt");
    options.extra = more ? more : &none;
    options.add_generation_prompt = !prompt || prompt->as_bool();
    const Json* text = request.find("chat_template");
    Json answer;
    try {
      const ChatTemplate other = text ? chat.with_text(text->as_string(), "chat_template") : ChatTemplate();
      answer["text"] = (text ? other : chat).render_json(*messages, options);
    } catch (const Error& error) {
      answer["error"] = error.what();
    }
    print(answer.dump_strictly() + "\n");
  }
}

}  // namespace

void add_template(CLI::App& app) {
  Command command(app, "template", "Write conversations as the model's chat template does");
  auto flags = std::make_shared<TemplateFlags>();
  command.argument("model", &flags->model, "folder with tokenizer_config.json or chat_template.jinja",
                   {.required = true, .names = Names::kFolder});
  command.argument("--no-generation-prompt", &flags->no_prompt,
                   "do not begin an answer after the last message");
  command.argument("--chat-template-kwargs,--extra", &flags->extra,
                   "JSON object with variables: tools, enable_thinking, …");
  command.argument(
      "--json-lines", &flags->json_lines,
      "one request a line: {\"messages\", \"extra\", \"add_generation_prompt\", \"chat_template\": a "
      "template instead of the model's} in, {\"text\"} or {\"error\"} out");
  command.footer(
      "Examples:\n"
      "  echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | heddle template MODEL");
  command.action([flags] { run_template(*flags); });
}

}  // namespace heddle
