#include "heddle/text/token_lists.h"

#include <charconv>

#include <fmt/format.h>

namespace heddle {

std::vector<int32_t> read_token_list(const JsonView& value) {
  std::vector<int32_t> tokens;
  value.for_each_item([&](const JsonView& token) { tokens.push_back(int32_t(token.as_int(0, INT32_MAX))); });
  if (tokens.empty()) value.fail(ErrorCode::kIo, "at least one token id is expected");
  return tokens;
}

std::vector<std::vector<int32_t>> read_token_lists(const JsonView& value) {
  std::vector<std::vector<int32_t>> lists;
  value.for_each_item([&](const JsonView& list) { lists.push_back(read_token_list(list)); });
  return lists;
}

TokenBias read_token_bias(const JsonView& value) {
  TokenBias made;
  value.for_each_member([&](const std::string& name, const JsonView& bias) {
    int32_t token = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size() || token < 0)
      value.fail(ErrorCode::kIo,
                 fmt::format("'{}' is no token id; one is expected, as {{\"13\": -2.5}}", name));
    made.of_token[token] = float(bias.as_number());
  });
  return made;
}

std::vector<SequenceBias> read_sequence_bias(const JsonView& value) {
  std::vector<SequenceBias> biases;
  value.for_each_item([&](const JsonView& pair) {
    SequenceBias bias;
    size_t at = 0;
    pair.for_each_item([&](const JsonView& part) {
      if (at == 0) bias.tokens = read_token_list(part);
      if (at == 1) bias.bias = float(part.as_number());
      ++at;
    });
    if (at != 2)
      pair.fail(ErrorCode::kIo, "a list of token ids and a number are expected, as [[1, 2], -2.5]");
    // The later of two for one sequence counts, as in transformers.
    std::erase_if(biases, [&](const SequenceBias& other) { return other.tokens == bias.tokens; });
    biases.push_back(std::move(bias));
  });
  return biases;
}

}  // namespace heddle
