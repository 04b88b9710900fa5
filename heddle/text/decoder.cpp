#include "heddle/text/decoder.h"

#include <charconv>
#include <utility>

#include "heddle/text/byte_level.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr int kMaxDepth = 16;

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

}  // namespace

Decoder::Decoder(const JsonView& json) {
  add(json, 0);
}

// Accepts the stages of a Sequence in the order that files use: Replace or Metaspace, ByteFallback, Fuse,
// Strip; or ByteLevel alone.
void Decoder::add(const JsonView& json, int depth) {
  const JsonView type = json.at("type");
  const std::string& name = type.as_string();
  const bool nothing_yet =
      replacers_.empty() && !byte_level_ && !byte_fallback_ && !fuse_ && metaspace_.empty();
  if (depth == kMaxDepth) type.fail(ErrorCode::kUnsupported, "this Sequence is nested too deeply");
  if (name == "Sequence") {
    const JsonView list = json.at("decoders");
    if (list.size() == 0) list.fail(ErrorCode::kUnsupported, "a sequence of no decoders is not supported");
    list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
  } else if (name == "ByteLevel" && nothing_yet) {
    byte_level_ = true;
  } else if (name == "Replace" && !byte_level_ && !byte_fallback_ && !fuse_ && metaspace_.empty()) {
    replacers_.emplace_back(json);
  } else if (name == "Metaspace" && nothing_yet) {
    const JsonView replacement = json.at("replacement");
    const auto scheme = json.find("prepend_scheme"), prefix = json.find("add_prefix_space");
    metaspace_ = replacement.as_string();
    drops_first_ = !(scheme && scheme->as_string() == "never") && !(prefix && !prefix->as_bool());
    if (metaspace_.empty()) replacement.fail(ErrorCode::kIo, "one character is expected");
  } else if (name == "ByteFallback" && !byte_level_ && !byte_fallback_ && !fuse_) {
    byte_fallback_ = true;
  } else if (name == "Fuse" && !byte_level_) {
    fuse_ = true;
  } else if (name == "Strip" && fuse_ && most_ == 0) {
    add_strip(json);
  } else {
    type.fail(ErrorCode::kUnsupported,
              "ByteLevel, or Replace, Metaspace, ByteFallback, Fuse and Strip in this order are supported");
  }
}

void Decoder::add_strip(const JsonView& json) {
  constexpr int64_t kMost = 1000;
  const JsonView content = json.at("content"), start = json.at("start"), stop = json.at("stop");
  strip_ = content.as_string();
  if (strip_.empty() || first_char(strip_).size != strip_.size()) {
    content.fail(ErrorCode::kIo, "one character is expected");
  }
  most_ = int(start.as_int(0, kMost));
  if (stop.as_int(0, kMost) != 0)
    stop.fail(ErrorCode::kUnsupported, "to strip the end is not supported; 0 is");
}

Piece Decoder::piece_of(const std::string& token) const {
  if (byte_level_) return {.text = byte_level_decode(token).value_or(token)};
  Regex::Scratch scratch;
  Piece piece{.text = token};
  for (const Replacer& replacer : replacers_) piece.text = replacer.run(piece.text, scratch);
  if (!metaspace_.empty()) {
    if (drops_first_) piece.first = Replacer(metaspace_, "").run(piece.text, scratch);
    piece.text = Replacer(metaspace_, " ").run(piece.text, scratch);
  }
  if (byte_fallback_) piece.byte = byte_of(piece.text);
  return piece;
}

std::string Decoder::push(const Piece& piece, State& state) const {
  const bool first = !std::exchange(state.begun, true);
  if (byte_level_) {
    state.held += piece.text;
    return take_characters(state.held);
  }
  if (piece.byte) {
    state.bytes += char(*piece.byte);
    return {};
  }
  return strip(take_bytes(state) + (first && piece.first ? *piece.first : piece.text), state);
}

std::string Decoder::flush(State& state) const {
  std::string text =
      byte_level_ ? to_valid_utf8(std::exchange(state.held, {})) : strip(take_bytes(state), state);
  state = {};
  return text;
}

// A run that is not UTF-8 becomes U+FFFD for each of its bytes, so nothing of it is certain before it ends.
std::string Decoder::take_bytes(State& state) {
  std::string bytes = std::exchange(state.bytes, {});
  if (is_valid_utf8(bytes)) return bytes;
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) text += kReplacement;
  return text;
}

std::string Decoder::strip(std::string text, State& state) const {
  size_t at = 0;
  while (state.strips && at < text.size()) {
    state.strips = state.stripped < most_ && std::string_view(text).substr(at).starts_with(strip_);
    if (!state.strips) break;
    ++state.stripped;
    at += strip_.size();
  }
  return at == 0 ? std::move(text) : text.substr(at);
}

}  // namespace heddle
