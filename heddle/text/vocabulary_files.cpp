#include "heddle/text/vocabulary_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "heddle/base/file.h"
#include "heddle/base/json_view.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr std::string_view kOfMerges[] = {"CohereTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer",
                                          "Qwen2Tokenizer", "RobertaTokenizer"};

bool reads_merges(std::string_view class_name) {
  return std::ranges::find(kOfMerges, class_name) != std::end(kOfMerges);
}

std::string path_of(const std::string& folder, const char* name) {
  return std::filesystem::path(folder) / name;
}

bool has(const std::string& folder, const char* name) {
  return path_exists(path_of(folder, name));
}

// Calls visit(line, number) for each line, without its end.
template <class Visit>
void for_each_line(const std::string& path, Visit&& visit) {
  const std::string text = read_file(path);
  if (!is_valid_utf8(text)) fail(ErrorCode::kIo, "[{}] byte {} is not UTF-8", path, find_invalid_utf8(text));
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, ++number);
    at = end + 1;
  }
}

// Lines of two tokens with a space between them, after a line with the version.
Json read_merges(const std::string& path) {
  Json merges = Json::array();
  for_each_line(path, [&](std::string_view line, size_t number) {
    if (line.empty() || line.starts_with("#version")) return;
    const size_t space = line.find(' ');
    const bool is_pair =
        space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos;
    if (!is_pair)
      fail(ErrorCode::kIo, "[{}:{}] '{}' is no merge: two tokens with a space between them are expected",
           path, number, line.substr(0, 80));
    merges.push_back(Json::array({line.substr(0, space), line.substr(space + 1)}));
  });
  return merges;
}

// A token a line; the last of equal ones counts.
Json read_words(const std::string& path) {
  std::map<std::string, int64_t> ids;
  for_each_line(path,
                [&](std::string_view line, size_t number) { ids[std::string(line)] = int64_t(number) - 1; });
  return Json(ids);
}

Json tokenizer_of(Json model) {
  return Json::object({{"version", "1.0"}, {"model", std::move(model)}});
}

}  // namespace

Json read_vocabulary_files(const std::string& folder, std::string_view class_name) {
  if (class_name == "BertTokenizer" && has(folder, kWordsFile))
    return tokenizer_of(
        Json::object({{"type", "WordPiece"}, {"vocab", read_words(path_of(folder, kWordsFile))}}));
  if (!reads_merges(class_name) || !has(folder, kVocabFile) || !has(folder, kMergesFile)) return {};
  const std::string path = path_of(folder, kVocabFile);
  Json vocab = load_json(path);
  if (!vocab.is_object())
    JsonView(vocab, path).fail(ErrorCode::kIo, "an object of tokens and their ids is expected");
  return tokenizer_of(Json::object(
      {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", read_merges(path_of(folder, kMergesFile))}}));
}

void fail_without_vocabulary(const std::string& folder, std::string_view class_name) {
  for (const std::string& name : names_in(folder)) {
    if (name.ends_with(".model"))
      fail(ErrorCode::kUnsupported, "[{}] {} is not read; {}", folder, name, kMakeTokenizerJson);
  }
  if (has(folder, kVocabFile) && has(folder, kMergesFile))
    fail(
        ErrorCode::kUnsupported,
        "[{}] {} and {} do not say how text is cut into words, and tokenizer_config.json names no class that "
        "does ({}): \"tokenizer_class\": \"GPT2Tokenizer\" is one, if the model has it; then {}",
        folder, kVocabFile, kMergesFile, class_name.empty() ? "none that heddle knows" : class_name,
        kMakeTokenizerJson);
  if (has(folder, kVocabFile) || has(folder, kMergesFile))
    fail(ErrorCode::kIo, "[{}] has {} without {}; both are needed where there is no tokenizer.json", folder,
         has(folder, kVocabFile) ? kVocabFile : kMergesFile,
         has(folder, kVocabFile) ? kMergesFile : kVocabFile);
  if (has(folder, kWordsFile))
    fail(ErrorCode::kUnsupported, "[{}] {} is read where the model is BERT's; {}", folder, kWordsFile,
         kMakeTokenizerJson);
  fail(ErrorCode::kIo,
       "[{}] has no tokenizer: neither tokenizer.json nor tokenizer.model nor {} with {}; download it again, "
       "with the files that belong to the tokenizer",
       folder, kVocabFile, kMergesFile);
}

}  // namespace heddle
