// Reads config.json key by key. Every error names the file, the key and its value. A key that is null counts
// as absent, as in transformers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/dtype.h"

namespace heddle {

// A cheap handle. Copies share the record of the keys that were read.
class Config {
 public:
  // Loads `folder`/config.json.
  static Config load(const std::string& folder);
  // Messages name it `where`.
  static Config parse(std::string_view text, const std::string& where);

  std::string model_type() const;                  // "llama"
  std::vector<std::string> architectures() const;  // {"LlamaForCausalLM"}
  // The type of the weights, from `dtype` or, for transformers 4, `torch_dtype`.
  std::optional<DType> dtype() const;

  bool has(const std::string& key) const;
  // True if the key is present with the value null. A few keys mean something else when they are absent.
  bool is_null(const std::string& key) const;
  int required_int(const std::string& key, int min, int max) const;
  // `fallback` is what an absent key means; outside of min to max it is rejected, as a value of the file is.
  int optional_int(const std::string& key, int fallback, int min, int max) const;
  double required_number(const std::string& key, double min, double max) const;
  double optional_number(const std::string& key, double fallback, double min, double max) const;
  bool optional_bool(const std::string& key, bool fallback) const;
  std::string required_string(const std::string& key) const;
  std::string optional_string(const std::string& key, const std::string& fallback) const;
  // A number, a list of numbers, or nothing: token ids are written this way.
  std::vector<int> optional_ints(const std::string& key, int min, int max) const;
  // A list of numbers or of strings; empty if absent.
  std::vector<double> optional_numbers(const std::string& key, double min, double max) const;
  std::vector<std::string> optional_strings(const std::string& key) const;
  // An object inside this one.
  std::optional<Config> section(const std::string& key) const;

  // Throws Error(kUnsupported): "[config.json] key = value: not supported; `remedy`".
  [[noreturn]] void refuse(const std::string& key, std::string_view remedy) const;
  // Throws Error(kInvalidArgument) with the same form.
  [[noreturn]] void reject(const std::string& key, std::string_view remedy) const;
  // True if `key` is absent, null, false, empty, or one of `accepted` written as JSON.
  bool is_one_of(const std::string& key, std::initializer_list<std::string_view> accepted) const;
  // Refuses `key` unless is_one_of(). For keys whose other values would change what a model computes.
  void refuse_unless(const std::string& key, std::initializer_list<std::string_view> accepted = {}) const;

  // Adds a note for the user: "[config.json] key = value: `text`".
  void note(const std::string& key, std::string_view text) const;
  // The notes of this object and of its sections.
  const std::vector<std::string>& notes() const;

  // Keys of this object that have not been read.
  std::vector<std::string> unread() const;

 private:
  struct State;
  explicit Config(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace heddle
