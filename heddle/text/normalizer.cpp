#include "heddle/text/normalizer.h"

#include <memory>
#include <optional>
#include <utility>

#include "heddle/base/base64.h"
#include "heddle/text/pattern.h"
#include "heddle/text/tokenizer_keys.h"
#include "heddle/text/unicode/byte_level.h"
#include "heddle/text/unicode/char_map.h"
#include "heddle/text/unicode/character_sets.h"
#include "heddle/text/unicode/normal_form.h"
#include "heddle/text/unicode/space.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

using Stage = Normalizer::Stage;
using Run = Normalizer::Run;

bool flag(const JsonView& json, std::string_view key) {
  const JsonView value = json.at(key);
  return value.as_bool();
}

// Calls change(code point, character, out) for each character.
template <class Change>
std::string each_character(std::string_view text, Change&& change) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = first_char(text);
    change(c.code_point, text.substr(0, c.size), out);
    text.remove_prefix(c.size);
  }
  return out;
}

std::string without(std::string_view text, std::span<const CodeRange> removed,
                    std::span<const CodeRange> spaces, Run& run) {
  if (!text.empty() && find_range(removed, first_char(text).code_point)) run.keeps_front = false;
  return each_character(text, [&](uint32_t c, std::string_view character, std::string& out) {
    if (find_range(spaces, c))
      out += ' ';
    else if (!find_range(removed, c))
      out += character;
  });
}

template <NormalForm kForm>
Stage make_form(const JsonView&) {
  return [](std::string_view text, Run&) { return to_normal_form(text, kForm); };
}

Stage make_prepend(const JsonView& json) {
  const JsonView prepend = json.at("prepend");
  return [text = prepend.as_string()](std::string_view rest, Run&) {
    return rest.empty() ? std::string() : text + std::string(rest);
  };
}

Stage make_replace(const JsonView& json) {
  return [replacer = std::make_shared<const Replacer>(json)](std::string_view text, Run& run) {
    return replacer->run(text, run.scratch, &run.keeps_front);
  };
}

Stage make_lowercase(const JsonView&) {
  return [](std::string_view text, Run&) { return to_lower_case(text); };
}

Stage make_strip(const JsonView& json) {
  return
      [left = flag(json, "strip_left"), right = flag(json, "strip_right")](std::string_view text, Run& run) {
        const size_t spaces = left ? leading_space(text) : 0;
        if (spaces > 0) run.keeps_front = false;
        text.remove_prefix(spaces);
        return std::string(right ? text.substr(0, trailing_space(text)) : text);
      };
}

Stage make_strip_accents(const JsonView&) {
  return [](std::string_view text, Run& run) { return without(text, marks(), {}, run); };
}

Stage make_nmt(const JsonView&) {
  return [](std::string_view text, Run& run) { return without(text, nmt_removed(), nmt_spaces(), run); };
}

Stage make_byte_level(const JsonView&) {
  return [](std::string_view text, Run&) { return byte_level_encode(text); };
}

Stage make_precompiled(const JsonView& json) {
  const JsonView encoded = json.at("precompiled_charsmap");
  const auto bytes = from_base64(encoded.as_string());
  if (!bytes) encoded.fail(ErrorCode::kIo, "base64 is expected");
  try {
    return [map = std::make_shared<const CharMap>(*bytes)](std::string_view text, Run&) {
      return map->run(text);
    };
  } catch (const Error& error) {
    encoded.fail(error.code(), error.what());
  }
}

Stage make_bert(const JsonView& json) {
  const auto accents = json.find("strip_accents");
  const bool clean = flag(json, "clean_text"), apart = flag(json, "handle_chinese_chars"),
             lower = flag(json, "lowercase"), strip = accents ? accents->as_bool() : lower;
  return [=](std::string_view text, Run& run) {
    std::string made(text);
    if (clean) made = without(made, cleaned(), clean_spaces(), run);
    if (apart) {
      made = each_character(made, [](uint32_t c, std::string_view character, std::string& out) {
        const bool alone = find_range(ideographs(), c) != nullptr;
        out.append(alone ? " " : "").append(character).append(alone ? " " : "");
      });
    }
    if (strip) made = without(to_normal_form(made, NormalForm::kNfd), nonspacing_marks(), {}, run);
    return lower ? to_lower_case(made) : made;
  };
}

}  // namespace

void Normalizer::add(const JsonView& json, int depth) {
  constexpr std::pair<std::string_view, Stage (*)(const JsonView&)> kStages[] = {
      {"BertNormalizer", make_bert},
      {"Strip", make_strip},
      {"StripAccents", make_strip_accents},
      {"NFC", make_form<NormalForm::kNfc>},
      {"NFD", make_form<NormalForm::kNfd>},
      {"NFKC", make_form<NormalForm::kNfkc>},
      {"NFKD", make_form<NormalForm::kNfkd>},
      {"Lowercase", make_lowercase},
      {"Nmt", make_nmt},
      {"Precompiled", make_precompiled},
      {"Replace", make_replace},
      {"Prepend", make_prepend},
      {"ByteLevel", make_byte_level}};
  const std::string_view type = checked_type(Section::kNormalizer, json);
  if (stages_.size() == kMostStages || depth == kMostSequenceLevels) {
    json.fail(ErrorCode::kUnsupported,
              fmt::format("at most {} stages and {} levels of Sequence are supported", kMostStages,
                          kMostSequenceLevels));
  }
  if (type == "Sequence") {
    const JsonView list = json.at("normalizers");
    list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
  }
  for (const auto& [name, make] : kStages) {
    if (name == type) stages_.push_back(make(json));
  }
}

std::string Normalizer::run(std::string_view text, Run& run) const {
  std::string result;
  for (const Stage& stage : stages_) text = result = stage(text, run);
  return result;
}

}  // namespace heddle
