#include "heddle/text/normalizer.h"

#include <memory>
#include <optional>

#include "heddle/text/pattern.h"
#include "heddle/text/unicode/normal_form.h"
#include "heddle/text/unicode/space.h"

namespace heddle {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxStages = 64;

std::optional<NormalForm> form_of(std::string_view type) {
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  return std::nullopt;
}

bool flag(const JsonView& json, std::string_view key) {
  const JsonView value = json.at(key);
  return value.as_bool();
}

}  // namespace

void Normalizer::add(const JsonView& json, int depth) {
  const JsonView type = json.at("type");
  if (stages_.size() == kMaxStages || depth == kMaxDepth) {
    json.fail(ErrorCode::kUnsupported,
              fmt::format("{} stages and {} levels of Sequence are the most", kMaxStages, kMaxDepth));
  }
  const std::string& name = type.as_string();
  if (name == "Sequence") {
    const JsonView list = json.at("normalizers");
    list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
  } else if (name == "Prepend") {
    const JsonView prepend = json.at("prepend");
    stages_.emplace_back([text = prepend.as_string()](std::string_view rest, Regex::Scratch&) {
      return rest.empty() ? std::string() : text + std::string(rest);
    });
  } else if (name == "Replace") {
    stages_.emplace_back(
        [replacer = std::make_shared<const Replacer>(json)](std::string_view text, Regex::Scratch& scratch) {
          return replacer->run(text, scratch);
        });
  } else if (name == "Lowercase") {
    stages_.emplace_back([](std::string_view text, Regex::Scratch&) { return to_lower_case(text); });
  } else if (name == "Strip") {
    stages_.emplace_back([left = flag(json, "strip_left"), right = flag(json, "strip_right")](
                             std::string_view text, Regex::Scratch&) {
      if (left) text.remove_prefix(leading_space(text));
      return std::string(right ? text.substr(0, trailing_space(text)) : text);
    });
  } else if (const auto form = form_of(name)) {
    stages_.emplace_back(
        [form](std::string_view text, Regex::Scratch&) { return to_normal_form(text, *form); });
  } else {
    type.fail(ErrorCode::kUnsupported,
              "only Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase and Strip are supported");
  }
}

std::string Normalizer::run(std::string_view text, Regex::Scratch& scratch) const {
  std::string result;
  for (const Stage& stage : stages_) text = result = stage(text, scratch);
  return result;
}

}  // namespace heddle
