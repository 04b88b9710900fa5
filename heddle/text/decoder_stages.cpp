#include "heddle/text/decoder_stages.h"

#include <charconv>
#include <optional>
#include <utility>

#include "heddle/text/pattern.h"
#include "heddle/text/unicode/byte_level.h"
#include "heddle/text/unicode/space.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

using Memory = DecoderMemory;

// The byte that "<0x41>" stands for, as Rust parses it: two digits in either case, or a plus and one digit.
std::optional<uint8_t> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  std::string_view digits = token.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);
  unsigned value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return uint8_t(value);
}

// Takes the complete characters from `held`, which keeps what may still continue.
std::string take_characters(std::string& held) {
  std::string text;
  std::string_view rest = held;
  while (!rest.empty()) {
    const Utf8Char c = first_char(rest);
    if (c.state == Utf8Char::kIncomplete) break;
    text += c.state == Utf8Char::kValid ? rest.substr(0, c.size) : kReplacement;
    rest.remove_prefix(c.size);
  }
  held.erase(0, held.size() - rest.size());
  return text;
}

// As str::replace of Rust: an empty text is found before, between and after characters.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (!from.empty()) {
    for (size_t at; (at = text.find(from)) != std::string_view::npos; text.remove_prefix(at + from.size()))
      out.append(text.substr(0, at)).append(to);
    return out.append(text);
  }
  while (!text.empty()) {
    const size_t size = first_char(text).size;
    out.append(to).append(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out.append(to);
}

// Takes spaces away that English text does not have, as in `tokenizers`.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) text = replaced(text, from, to);
  return text;
}

// A stage that changes tokens one by one. `in_parts`: tokens come in parts, which it collects.
class TokenStage : public DecoderStage {
 public:
  explicit TokenStage(bool in_parts) : in_parts_(in_parts) {}

  void push(std::string_view text, bool begins, Memory& memory, const Emit& emit) const final {
    if (!in_parts_) return change(text, memory, emit);
    if (begins) take_held(memory, emit);
    memory.holds = true;
    memory.held += text;
  }
  void flush(Memory& memory, const Emit& emit) const final {
    take_held(memory, emit);
    end(memory, emit);
  }

 protected:
  virtual void change(std::string_view token, Memory& memory, const Emit& emit) const = 0;
  virtual void end(Memory&, const Emit&) const {}

 private:
  void take_held(Memory& memory, const Emit& emit) const {
    if (!std::exchange(memory.holds, false)) return;
    const std::string token = std::exchange(memory.held, {});
    change(token, memory, emit);
  }
  bool in_parts_;
};

class Spaces final : public TokenStage {
 public:
  Spaces() : TokenStage(false) {}
  std::optional<std::string> bytes(std::string_view token) const override {
    return fmt::format(" {}", token);
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    emit(fmt::format("{}{}", std::exchange(memory.begun, true) ? " " : "", token), true);
  }
};

class ReplaceStage final : public TokenStage {
 public:
  ReplaceStage(const JsonView& json, bool in_parts) : TokenStage(in_parts), replacer_(json) {}
  std::optional<std::string> bytes(std::string_view token) const override {
    Regex::Scratch scratch;
    return replacer_.run(token, scratch);
  }

 private:
  void change(std::string_view token, Memory&, const Emit& emit) const override {
    Regex::Scratch scratch;
    emit(replacer_.run(token, scratch), true);
  }
  Replacer replacer_;
};

// The replacement stands for a space; in the first token it stands for nothing, if one was put there.
class MetaspaceStage final : public TokenStage {
 public:
  MetaspaceStage(const JsonView& json, bool in_parts) : TokenStage(in_parts) {
    const JsonView replacement = json.at("replacement");
    const auto scheme = json.find("prepend_scheme"), prefix = json.find("add_prefix_space");
    if (scheme) scheme->check_one_of({"always", "first", "never"});
    const bool no_prefix = prefix && !prefix->as_bool();
    if (no_prefix && scheme && scheme->as_string() != "never")
      prefix->fail(ErrorCode::kIo, "this does not go together with prepend_scheme");
    replacement_ = replacement.as_string();
    drops_first_ = !(scheme && scheme->as_string() == "never") && !no_prefix;
  }
  std::optional<std::string> bytes(std::string_view token) const override {
    return replaced(token, replacement_, " ");
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    const bool first = !std::exchange(memory.begun, true);
    emit(replaced(token, replacement_, first && drops_first_ ? "" : " "), true);
  }
  std::string replacement_;
  bool drops_first_ = false;
};

class WordPieceStage final : public TokenStage {
 public:
  WordPieceStage(const JsonView& json, bool in_parts) : TokenStage(in_parts) {
    const JsonView prefix = json.at("prefix"), cleanup = json.at("cleanup");
    prefix_ = prefix.as_string();
    cleanup_ = cleanup.as_bool();
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    std::string text(token);
    if (std::exchange(memory.begun, true)) {
      text = token.starts_with(prefix_) ? text.substr(prefix_.size()) : fmt::format(" {}", token);
    }
    emit(cleanup_ ? cleaned_up(std::move(text)) : text, true);
  }
  std::string prefix_;
  bool cleanup_ = false;
};

// One of equal tokens in a row stays; the padding token is nothing.
class CtcStage final : public TokenStage {
 public:
  CtcStage(const JsonView& json, bool in_parts) : TokenStage(in_parts) {
    const JsonView pad = json.at("pad_token"), delimiter = json.at("word_delimiter_token"),
                   cleanup = json.at("cleanup");
    pad_ = pad.as_string();
    delimiter_ = delimiter.as_string();
    cleanup_ = cleanup.as_bool();
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    if (std::exchange(memory.begun, true) && memory.last == token) return;
    memory.last = token;
    std::string text = replaced(token, pad_, "");
    if (cleanup_) text = replaced(cleaned_up(std::move(text)), delimiter_, " ");
    if (!text.empty()) emit(text, true);
  }
  std::string pad_, delimiter_;
  bool cleanup_ = false;
};

// The suffix ends a word, so it stands for a space, but not in the last token.
class BpeStage final : public TokenStage {
 public:
  BpeStage(const JsonView& json, bool in_parts) : TokenStage(in_parts) {
    const JsonView suffix = json.at("suffix");
    suffix_ = suffix.as_string();
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    if (std::exchange(memory.begun, true)) emit(replaced(memory.last, suffix_, " "), true);
    memory.last = token;
  }
  void end(Memory& memory, const Emit& emit) const override {
    if (memory.begun) emit(replaced(memory.last, suffix_, ""), true);
  }
  std::string suffix_;
};

// Tokens of bytes in a row make characters. A run that is not UTF-8 becomes U+FFFD for each of its bytes, so
// nothing of it is certain before it ends.
class ByteFallbackStage final : public TokenStage {
 public:
  using TokenStage::TokenStage;
  std::optional<std::string> bytes(std::string_view token) const override {
    const auto byte = byte_of(token);
    return byte ? std::string(1, char(*byte)) : std::string(token);
  }

 private:
  void change(std::string_view token, Memory& memory, const Emit& emit) const override {
    if (const auto byte = byte_of(token)) {
      memory.last += char(*byte);
      return;
    }
    end(memory, emit);
    emit(token, true);
  }
  void end(Memory& memory, const Emit& emit) const override {
    const std::string bytes = std::exchange(memory.last, {});
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes)) return emit(bytes, true);
    for (size_t i = 0; i < bytes.size(); ++i) emit(kReplacement, true);
  }
};

class StripStage final : public TokenStage {
 public:
  struct Settings {
    std::string character;
    size_t start = 0, stop = 0;
  };
  explicit StripStage(Settings settings) : TokenStage(false), settings_(std::move(settings)) {}

 private:
  void change(std::string_view token, Memory&, const Emit& emit) const override {
    const std::string& c = settings_.character;
    for (size_t i = 0; i < settings_.start && token.starts_with(c); ++i) token.remove_prefix(c.size());
    for (size_t i = 0; i < settings_.stop && token.ends_with(c); ++i) token.remove_suffix(c.size());
    emit(token, true);
  }
  Settings settings_;
};

// Strips one token that comes in parts.
class StreamStripStage final : public DecoderStage {
 public:
  explicit StreamStripStage(StripStage::Settings settings) : settings_(std::move(settings)) {}
  bool fuses() const override { return true; }
  std::optional<std::string> bytes(std::string_view text) const override {
    if (settings_.stop > 0) return {};
    return std::string(text);
  }

  void push(std::string_view text, bool, Memory& memory, const Emit& emit) const override {
    const std::string& c = settings_.character;
    while (!memory.begun && !text.empty()) {
      memory.begun = memory.count == settings_.start || !text.starts_with(c);
      if (memory.begun) break;
      ++memory.count;
      text.remove_prefix(c.size());
    }
    memory.held += text;
    size_t end = memory.held.size();
    for (size_t i = 0; i < settings_.stop && std::string_view(memory.held).substr(0, end).ends_with(c); ++i)
      end -= c.size();
    emit(memory.held.substr(0, end), !std::exchange(memory.holds, true));
    memory.held.erase(0, end);
  }
  void flush(Memory&, const Emit&) const override {}  // what is held is stripped

 private:
  StripStage::Settings settings_;
};

class FuseStage final : public DecoderStage {
 public:
  bool fuses() const override { return true; }
  std::optional<std::string> bytes(std::string_view text) const override { return std::string(text); }
  void push(std::string_view text, bool, Memory& memory, const Emit& emit) const override {
    emit(text, !std::exchange(memory.begun, true));
  }
  void flush(Memory&, const Emit&) const override {}
};

// All tokens together are bytes, which make one text.
class ByteLevelStage final : public DecoderStage {
 public:
  explicit ByteLevelStage(bool in_parts) : in_parts_(in_parts) {}
  bool fuses() const override { return true; }
  std::optional<std::string> bytes(std::string_view token) const override {
    return byte_level_decode(token).value_or(std::string(token));
  }
  void push(std::string_view text, bool begins, Memory& memory, const Emit& emit) const override {
    if (!in_parts_) {
      memory.held += byte_level_decode(text).value_or(std::string(text));
      emit(take_characters(memory.held), !std::exchange(memory.begun, true));
      return;
    }
    // A token spells bytes as a whole or not at all.
    if (begins) spell(memory);
    memory.last += text;
  }
  void flush(Memory& memory, const Emit& emit) const override {
    spell(memory);
    emit(to_valid_utf8(memory.held), !memory.begun);
  }

 private:
  static void spell(Memory& memory) {
    const std::string token = std::exchange(memory.last, {});
    memory.held += byte_level_decode(token).value_or(token);
  }
  bool in_parts_;
};

std::unique_ptr<const DecoderStage> make_strip(const JsonView& json, bool fused) {
  const JsonView content = json.at("content"), start = json.at("start"), stop = json.at("stop");
  StripStage::Settings settings{.character = content.as_string(),
                                .start = size_t(start.as_int(0, INT64_MAX)),
                                .stop = size_t(stop.as_int(0, INT64_MAX))};
  if (fused) return std::make_unique<const StreamStripStage>(std::move(settings));
  return std::make_unique<const StripStage>(std::move(settings));
}

template <class Stage>
std::unique_ptr<const DecoderStage> make(const JsonView& json, bool fused) {
  if constexpr (std::is_constructible_v<Stage, const JsonView&, bool>) {
    return std::make_unique<const Stage>(json, fused);
  } else if constexpr (std::is_constructible_v<Stage, bool>) {
    return std::make_unique<const Stage>(fused);
  } else {
    return std::make_unique<const Stage>();
  }
}

}  // namespace

std::unique_ptr<const DecoderStage> make_decoder_stage(std::string_view type, const JsonView& json,
                                                       bool fused) {
  constexpr std::pair<std::string_view, std::unique_ptr<const DecoderStage> (*)(const JsonView&, bool)>
      kStages[] = {{"BPEDecoder", make<BpeStage>},
                   {"ByteLevel", make<ByteLevelStage>},
                   {"WordPiece", make<WordPieceStage>},
                   {"Metaspace", make<MetaspaceStage>},
                   {"CTC", make<CtcStage>},
                   {"Replace", make<ReplaceStage>},
                   {"Fuse", make<FuseStage>},
                   {"Strip", make_strip},
                   {"ByteFallback", make<ByteFallbackStage>}};
  for (const auto& [name, build] : kStages) {
    if (name == type) return build(json, fused);
  }
  json.fail(ErrorCode::kUnsupported, fmt::format("a decoder of type {} is not supported", type));
}

std::unique_ptr<const DecoderStage> make_spaces() {
  return std::make_unique<const Spaces>();
}

}  // namespace heddle
