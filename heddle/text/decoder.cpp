#include "heddle/text/decoder.h"

#include "heddle/text/decoder_stages.h"
#include "heddle/text/tokenizer_keys.h"

namespace heddle {

Decoder::Decoder() {
  add(make_spaces());
}

Decoder::Decoder(const JsonView& json) {
  add(json, 0);
}

void Decoder::add(std::unique_ptr<const DecoderStage> stage) {
  fused_ = fused_ || stage->fuses();
  stages_.push_back(std::move(stage));
}

void Decoder::add(const JsonView& json, int depth) {
  const std::string_view type = checked_type(Section::kDecoder, json);
  if (stages_.size() == kMostStages || depth == kMostSequenceLevels) {
    json.fail(ErrorCode::kUnsupported,
              fmt::format("at most {} stages and {} levels of Sequence are supported", kMostStages,
                          kMostSequenceLevels));
  }
  if (type != "Sequence") return add(make_decoder_stage(type, json, fused_));
  const JsonView list = json.at("decoders");
  list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
}

void Decoder::pass(size_t stage, std::string_view text, bool begins, State& state, std::string& out) const {
  if (stage == stages_.size()) {
    out += text;
    return;
  }
  stages_[stage]->push(text, begins, state.stages[stage], [&](std::string_view made, bool is_new) {
    pass(stage + 1, made, is_new, state, out);
  });
}

std::string Decoder::push(std::string_view token, State& state) const {
  state.stages.resize(stages_.size());
  std::string out;
  pass(0, token, true, state, out);
  return out;
}

std::optional<std::string> Decoder::token_bytes(std::string_view token) const {
  std::optional<std::string> bytes(token);
  for (const auto& stage : stages_)
    if (bytes) bytes = stage->bytes(*bytes);
  return bytes;
}

std::string Decoder::flush(State& state) const {
  state.stages.resize(stages_.size());
  std::string out;
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i]->flush(state.stages[i],
                      [&](std::string_view made, bool is_new) { pass(i + 1, made, is_new, state, out); });
  }
  state = {};
  return out;
}

}  // namespace heddle
