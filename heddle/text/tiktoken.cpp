#include "heddle/text/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "heddle/base/base64.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/text/ranked_vocabulary.h"
#include "heddle/text/vocabulary/model.h"

namespace heddle {
namespace {

constexpr const char* kDigitsByThree =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDigitsByOne =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Han by itself; other words end where a lower-case letter is followed by an upper-case one.
constexpr const char* kHanAndCase =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// `special` has ids after the ranks, and so many tokens named by a number after them: prefix, number from `first`, suffix.
struct KnownClass {
  const char* name;
  const char* pattern;
  bool nfc;
  std::vector<const char*> special;
  size_t num_special;
  const char* numbered;
  size_t first;
  std::vector<std::pair<const char*, const char*>> named;  // special tokens by their setting
  bool begins;                                             // a text begins with bos_token
  std::vector<std::string> before;                         // or with these
};

const std::vector<KnownClass>& known_classes() {
  static const std::vector<KnownClass> classes = {
      {.name = "Llama 3",
       .pattern = kDigitsByThree,
       .nfc = false,
       .special = {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                   "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
                   "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"},
       .num_special = 256,
       .numbered = "<|reserved_special_token_{}|>",
       .first = 2,
       .named = {{"bos_token", "<|begin_of_text|>"}, {"eos_token", "<|end_of_text|>"}},
       .begins = true,
       .before = {}},
      {.name = "TikTokenTokenizer",  // Kimi
       .pattern = kHanAndCase,
       .nfc = false,
       .special = {},
       .num_special = 256,
       .numbered = nullptr,
       .first = 0,
       .named = {{"bos_token", "[BOS]"}, {"eos_token", "[EOS]"}},
       .begins = false,
       .before = {}},
      {.name = "QWenTokenizer",
       .pattern = kDigitsByOne,
       .nfc = true,
       .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
       .num_special = 208,
       .numbered = "<|extra_{}|>",
       .first = 0,
       .named = {{"eos_token", "<|endoftext|>"}},
       .begins = false,
       .before = {}},
      {.name = "ChatGLM4Tokenizer",
       .pattern = kDigitsByThree,
       .nfc = false,
       .special = {},
       .num_special = 0,
       .numbered = nullptr,
       .first = 0,
       .named = {{"eos_token", "<|endoftext|>"}},
       .begins = false,
       .before = {"[gMASK]", "<sop>"}},
  };
  return classes;
}

// The class of the name; of a Llama, classes that say nothing of the pattern too.
const KnownClass& class_of(std::string_view class_name, std::string_view model_type,
                           const std::string& path) {
  constexpr std::string_view kSilent[] = {"", "LlamaTokenizer", "LlamaTokenizerFast",
                                          "PreTrainedTokenizerFast", "TokenizersBackend"};
  const bool is_silent = std::ranges::find(kSilent, class_name) != std::end(kSilent);
  const auto& classes = known_classes();
  if (is_silent && model_type == "llama") return classes.front();
  const auto known = std::ranges::find(classes, class_name, &KnownClass::name);
  if (known != classes.end() && known != classes.begin()) return *known;
  const std::string owner =
      is_silent ? fmt::format("a tokenizer class that the folder does not name, and the model is {}",
                              model_type.empty() ? "not named either" : model_type)
                : std::string(class_name);
  fail(ErrorCode::kUnsupported,
       "[{}] is a vocabulary of tiktoken; the pattern that cuts words is in the code of {}, which heddle "
       "does not "
       "know (it knows those of Llama 3, Kimi, the first Qwen and GLM-4); TikTokenConverter(\"{}\", "
       "pattern=.., "
       "extra_special_tokens=..).converted().save(\"tokenizer.json\") of transformers.convert_slow_tokenizer "
       "makes a tokenizer.json of it and the pattern",
       path, owner, path.substr(path.rfind('/') + 1));
}

std::vector<std::string> read_ranks(std::string_view text, const std::string& path) {
  std::vector<std::string> tokens;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1, ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string_view rank = line.substr(std::min(space + 1, line.size()));
    std::optional<std::string> bytes = from_base64(line.substr(0, space));
    size_t value = 0;
    const auto read = std::from_chars(rank.data(), rank.data() + rank.size(), value);
    const bool is_number = read.ec == std::errc() && read.ptr == rank.data() + rank.size();
    if (!bytes || bytes->empty() || bytes->size() > kMostRankedBytes || !is_number || value != tokens.size())
      fail(ErrorCode::kIo, "[{}:{}] 1 to {} bytes in base64 and the rank {} are expected", path, number,
           kMostRankedBytes, tokens.size());
    tokens.push_back(std::move(*bytes));
    if (int64_t(tokens.size()) > kMaxTokenId)
      fail(ErrorCode::kIo, "[{}] has more than {} tokens", path, kMaxTokenId);
  }
  return tokens;
}

// By id. An id that nobody names has a token too.
std::map<int64_t, AddedToken> special_of(const KnownClass& known, int64_t first_id,
                                         const std::map<int64_t, AddedToken>& listed,
                                         const std::string& path) {
  int64_t end = first_id + int64_t(known.num_special);
  std::set<std::string_view> listed_names;
  for (const auto& [id, token] : listed) {
    if (id < 0 || id > kMaxTokenId)
      fail(ErrorCode::kIo, "[{}] the token {} has the id {}; at most {} is expected", path,
           brief(Json(token.content)), id, kMaxTokenId);
    if (id >= first_id) end = std::max(end, id + 1);
    listed_names.insert(token.content);
  }
  const auto own_name = [&](size_t index) -> std::string {
    if (index < known.special.size()) return known.special[index];
    if (!known.numbered || index >= known.num_special) return "";
    return fmt::format(fmt::runtime(known.numbered), index - known.special.size() + known.first);
  };
  std::map<int64_t, AddedToken> special;
  for (int64_t id = first_id; id < end; ++id) {
    std::string name = own_name(size_t(id - first_id));
    if (name.empty() || listed_names.contains(name)) name = fmt::format("<|reserved_token_{}|>", id);
    const auto found = listed.find(id);
    special.emplace(
        id, found == listed.end() ? AddedToken{.content = std::move(name), .special = true} : found->second);
  }
  return special;
}

}  // namespace

bool is_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  const std::string_view rank = line.substr(space + 1);
  return rank.find_first_not_of("0123456789\r") == std::string_view::npos &&
         from_base64(line.substr(0, space));
}

std::string find_tiktoken(const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (name.ends_with(".tiktoken") || name == "tiktoken.model") return name;
  return "";
}

TiktokenTokenizer read_tiktoken(std::string_view text, const std::string& path, std::string_view class_name,
                                std::string_view model_type, const std::map<int64_t, AddedToken>& listed) {
  const KnownClass& known = class_of(class_name, model_type, path);
  RankedVocabulary vocabulary{.tokens = read_ranks(text, path), .pattern = known.pattern, .nfc = known.nfc};
  vocabulary.special = special_of(known, int64_t(vocabulary.tokens.size()), listed, path);
  const auto refuse = [&](const std::string& reason) { fail(ErrorCode::kIo, "[{}] {}", path, reason); };
  TiktokenTokenizer made{.tokenizer = tokenizer_of(vocabulary, refuse), .defaults = Json::object()};
  const Json& vocab = made.tokenizer.at("model").at("vocab");
  for (const auto& [setting, token] : known.named)
    if (vocab.find(token)) made.defaults[setting] = token;
  if (known.begins) made.defaults["add_bos_token"] = true;
  for (const std::string& token : known.before)
    if (!vocab.find(token)) refuse(fmt::format("a text begins with {}, which the folder gives no id", token));
  made.around.before = known.before;
  return made;
}

}  // namespace heddle
