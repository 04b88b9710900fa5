// The files of a checkpoint's folder that say how it tokenises, and which of them wins, as in transformers:
// - tokenizer_config.json names special tokens and settings, and `added_tokens_decoder` there lists added tokens.
// - Without that list, special_tokens_map.json wins over tokenizer_config.json, and added_tokens.json lists more.
// - Tokens are added in the order of the ids that the files give; each gets the next free id.
// - Some classes of transformers make their own stages around the vocabulary of tokenizer.json; then the settings of
//   tokenizer_config.json, such as add_prefix_space, count (tokenizer_classes.h).
// - Without a tokenizer.json, the stages are made of Mistral's tekken.json (tekken.h), which begins each text with <s>, or of a
//   SentencePiece tokenizer.model, or the vocabulary is in files of its own (vocabulary_files.h), or tiktoken's (tiktoken.h).
// - add_bos_token and add_eos_token count only there.
// - A GGUF file has all of this in its metadata (gguf_vocabulary.h), and no other file counts next to it.
// - Members of an object extra_special_tokens are tokens with names, as the setting image_token is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/text/added_tokens.h"
#include "heddle/text/tokenizer_classes.h"
#include "heddle/text/vocabulary/sentencepiece.h"

namespace heddle {

struct TokenizerSetting {
  std::string name;
  Json value;
  std::string source;  // a file, or "the default of LlamaTokenizer"
};

class TokenizerFiles {
 public:
  // Throws Error(kIo) when a file is malformed.
  explicit TokenizerFiles(const std::string& folder);

  // A digest of the files of a folder that say how it tokenises.
  static std::string fingerprint(const std::string& folder);

  // The setting that wins; null if there is none.
  const TokenizerSetting* find(std::string_view name) const;
  const std::vector<TokenizerSetting>& settings() const { return settings_; }
  // Named special tokens, such as bos_token, in the order of transformers.
  std::vector<std::pair<std::string, std::string>> special_tokens() const;

  // tokenizer.json as transformers uses it. Call it last.
  Json tokenizer() &&;
  // Tokens to add to those of tokenizer(), in this order; their ids do not count.
  std::vector<AddedToken> added_tokens();
  // Texts of the tokens before and after a text, if they are not what tokenizer() says.
  std::optional<TokensAround> around() const;
  // True if special tokens in a text are cut like other text.
  bool splits_special_tokens() const { return is_on("split_special_tokens", false); }
  // The file that describes the tokenizer: tokenizer.json, or what stands for it.
  const std::string& source() const { return source_; }
  // The class of transformers that loads the folder; empty if it takes tokenizer.json as it is.
  const std::string& class_name() const { return class_; }

 private:
  struct NamedToken {
    std::string name;
    const Json* value;
    std::string source;
  };
  const Json& file();  // tokenizer.json, or what stands for it; read when it is first asked for
  void read_gguf();
  bool read_tekken();
  void read_model();
  void read_ranks(const std::string& name, const std::string& bytes);  // tiktoken's
  void add_default(const std::string& name, const Json& value, const std::string& source);
  void merge(const Json& object, const std::string& source);
  bool has(std::string_view name) const;  // even if it is null
  bool is_on(std::string_view name, bool otherwise) const;
  std::vector<NamedToken> named_tokens() const;
  std::map<int64_t, AddedToken> listed_tokens();

  std::string folder_, source_ = "tokenizer.json";
  std::vector<TokenizerSetting> settings_;
  std::string class_, named_class_, model_type_;
  bool made_ = false;                        // there is no tokenizer.json
  Json tokenizer_;                           // null until it is asked for, or if there is none
  std::optional<Json> added_file_;           // added_tokens.json
  std::optional<TokensAround> around_;       // tiktoken's classes that have a prefix of their own
  std::optional<SentencePieceModel> model_;  // if there is no tokenizer.json
};

}  // namespace heddle
