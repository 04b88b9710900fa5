// heddle tokenize: converts text to token ids, and back.
#include <cstdio>
#include <memory>
#include <ranges>
#include <set>
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
    note_unknown();
  }

 private:
  std::vector<int32_t> encode(std::string_view text) const { return tokenizer_.encode(text, !flags_.plain); }

  // A model may have more rows than its tokenizer has tokens, and may write their ids.
  void note_unknown() const {
    if (unknown_.empty()) return;
    flush_output();
    std::fputs(
        fmt::format("[tokenize] {} {} no token and became no text: {}{}\n", unknown_.size(),
                    unknown_.size() == 1 ? "id is" : "ids are",
                    fmt::join(unknown_ | std::views::take(10), ", "), unknown_.size() > 10 ? ", .." : "")
            .c_str(),
        stderr);
  }

  std::string decode(const std::vector<int64_t>& ids) {
    std::vector<int32_t> known;
    known.reserve(ids.size());
    for (int64_t id : ids) {
      require(id >= 0 && id <= INT32_MAX, "[tokenize] {} is not a token id; they are 0 to 2^31 - 1", id);
      known.push_back(int32_t(id));
      if (!tokenizer_.id_to_token(int32_t(id))) unknown_.insert(id);
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

  std::string answer(const std::string& line, size_t number) {
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
  std::set<int64_t> unknown_;  // ids that were decoded and have no token
};

}  // namespace

void add_tokenize(CLI::App& app) {
  Command command(app, "tokenize", "Turn text on stdin into token ids, or ids into text");
  auto flags = std::make_shared<TokenizeFlags>();
  command.argument("model", &flags->model,
                   "folder with a tokenizer.json or tokenizer.model, or a tokenizer.json",
                   {.required = true, .names = Names::kPath});
  command.argument("--decode", &flags->decode, "read ids, write text; ids without a token are no text");
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
