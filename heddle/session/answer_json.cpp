#include "heddle/session/answer_json.h"

namespace heddle {

nlohmann::ordered_json json_of(const Answer& answer) {
  nlohmann::ordered_json made = {{"text", answer.text()},
                                 {"finish_reason", answer.reason()},
                                 {"prompt_tokens", answer.prompt()},
                                 {"tokens", answer.tokens()}};
  for (const TokenLogprobs& token : answer.logprobs()) {
    nlohmann::ordered_json one = {{"logprob", token.chosen}};
    for (const auto& [id, logprob] : token.likeliest) one["top"].push_back({id, logprob});
    made["logprobs"].push_back(std::move(one));
  }
  return made;
}

std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace heddle
