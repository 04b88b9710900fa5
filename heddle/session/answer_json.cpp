#include "heddle/session/answer_json.h"

namespace heddle {

Json json_of(const Answer& answer) {
  const std::span<const i32> prompt = answer.prompt();
  Json made = Json::object({{"text", answer.text()},
                            {"finish_reason", answer.reason()},
                            {"prompt_tokens", std::vector(prompt.begin(), prompt.end())},
                            {"tokens", answer.tokens()}});
  if (!answer.reasoning().empty()) made["reasoning_content"] = answer.reasoning();
  for (const TokenLogprobs& token : answer.logprobs()) {
    Json one = Json::object({{"logprob", token.chosen}});
    for (const auto& [id, logprob] : token.likeliest) one["top"].push_back(Json::array({id, logprob}));
    made["logprobs"].push_back(std::move(one));
  }
  return made;
}

}  // namespace heddle
