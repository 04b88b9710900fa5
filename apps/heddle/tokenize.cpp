// heddle tokenize: converts text to token ids, and back.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

struct TokenizeFlags {
  std::string model;
  bool decode = false, json_lines = false, plain = false, skip_special = false;
};

class TokenizeRun {
 public:
  explicit TokenizeRun(const TokenizeFlags& flags)
      : flags_(flags), tokenizer_(Tokenizer::load(flags.model)) {}

  void run() {
    if (flags_.json_lines) {
      StdinLines lines;
      std::string line;
      for (size_t number = 1; lines.next(line); ++number) print(answer(line, number) + "\n");
    } else {
      const std::string input = read_stdin();
      if (!flags_.decode) require_utf8(input, "stdin");
      print(flags_.decode ? decode(parse_ids(input, "stdin"))
                          : fmt::format("{}\n", fmt::join(encode(input), " ")));
    }
  }

 private:
  std::vector<int32_t> encode(std::string_view text) const { return tokenizer_.encode(text, !flags_.plain); }

  std::string decode(const std::vector<int64_t>& ids) const {
    std::vector<int32_t> known;
    known.reserve(ids.size());
    for (int64_t id : ids) {
      const bool fits = id >= 0 && id <= INT32_MAX;
      require(fits && tokenizer_.id_to_token(int32_t(id)),
              "[tokenize] {} is not a token of this model, which has {}", id, tokenizer_.vocab_size());
      known.push_back(int32_t(id));
    }
    return tokenizer_.decode(known, flags_.skip_special);
  }

  static std::vector<int64_t> ids_in(const Json& array) {
    std::vector<int64_t> ids;
    for (const Json& item : array.items()) {
      const std::optional<int64_t> id = item.to_int();
      require(id.has_value(), "[tokenize] {} is not a token id; whole numbers are expected", brief(item));
      ids.push_back(*id);
    }
    return ids;
  }

  std::string answer(const std::string& line, size_t number) const {
    const Json value = read(line, number);
    if (flags_.decode) return Json(decode(ids_in(value))).dump_strictly();
    return Json(encode(value.as_string())).dump();
  }

  Json read(const std::string& line, size_t number) const {
    const char* want = flags_.decode ? "a JSON array of token ids" : "a JSON string";
    try {
      Json value = parse_json(line, "stdin");
      require(flags_.decode ? value.is_array() : value.is_string(), "{}", brief(value));
      return value;
    } catch (const Error& error) {
      fail(ErrorCode::kInvalidArgument, "[tokenize] line {} is not {}: {}", number, want, error.what());
    }
  }

  const TokenizeFlags& flags_;
  Tokenizer tokenizer_;
};

}  // namespace

void add_tokenize(CLI::App& app) {
  Command command(app, "tokenize", "Turn text on stdin into token ids, or ids into text");
  auto flags = std::make_shared<TokenizeFlags>();
  command.argument("model", &flags->model,
                   "folder with a tokenizer.json or tokenizer.model, or a tokenizer.json",
                   {.required = true, .names = Names::kPath});
  command.argument("--decode", &flags->decode, "read ids, write text");
  command.argument("--json-lines", &flags->json_lines,
                   "one text a line: a JSON string in and a JSON array of ids out, or the reverse");
  command.argument("--plain", &flags->plain, "encode without the tokens that the model puts around a text");
  command.argument("--skip-special", &flags->skip_special, "decode without special tokens");
  command.footer(
      "Examples:\n"
      "  echo \"Once upon a time\" | heddle tokenize models/storyteller\n"
      "  echo 7 12 9 | heddle tokenize models/storyteller --decode\n"
      "  heddle tokenize models/storyteller --json-lines < texts.jsonl > ids.jsonl");
  command.action([flags] { TokenizeRun(*flags).run(); });
}

}  // namespace heddle
