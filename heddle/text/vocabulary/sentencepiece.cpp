#include "heddle/text/vocabulary/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "heddle/base/base64.h"
#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"
#include "heddle/text/vocabulary/model.h"

namespace heddle {
namespace {

// Fields of a protobuf message, one after another. Every size is checked against what is left.
class Message {
 public:
  Message(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  // Goes to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        number_ = varint();
        return true;
      case 1:
        bytes_ = take(8);
        return true;
      case 2:
        bytes_ = take(varint());
        return true;
      case 5:
        bytes_ = take(4);
        return true;
      default:
        wrong(fmt::format("a field of wire type {}", tag & 7));
    }
  }
  uint64_t field() const { return field_; }
  int64_t number() const { return int64_t(number_); }
  std::string_view bytes() const { return bytes_; }
  std::string text() const {
    if (!is_valid_utf8(bytes_)) wrong("a text that is not UTF-8");
    return std::string(bytes_);
  }
  float real() const {
    if (bytes_.size() != 4) wrong("a score that has not 4 bytes");
    uint32_t bits = 0;
    for (size_t i = 4; i-- > 0;) bits = bits << 8 | uint8_t(bytes_[i]);
    return std::bit_cast<float>(bits);
  }
  Message message() const { return {bytes_, name_}; }

  [[noreturn]] void wrong(std::string_view what) const {
    fail(ErrorCode::kIo,
         "[{}] it has {}: no SentencePiece model; a tokenizer.model that its trainer wrote, or a "
         "tokenizer.json, would "
         "do",
         name_, what);
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = uint8_t(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    wrong("a number of more than 64 bits");
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) wrong(fmt::format("a field of {} bytes where {} are left", size, rest_.size()));
    const std::string_view taken = rest_.substr(0, size_t(size));
    rest_.remove_prefix(size_t(size));
    return taken;
  }

  std::string_view rest_;
  const std::string& name_;
  uint64_t field_ = 0, number_ = 0;
  std::string_view bytes_;
};

constexpr size_t kMostPieceBytes = 1024;  // trainers make pieces of 16 characters

// Numbers of fields in sentencepiece_model.proto.
void read_piece(Message piece, SentencePieceModel::Piece& made) {
  while (piece.next()) {
    if (piece.field() == 1) {
      made.text = piece.text();
      if (made.text.size() > kMostPieceBytes)
        piece.wrong(fmt::format("a piece of {} bytes", made.text.size()));
    }
    if (piece.field() == 2) made.score = piece.real();
    if (piece.field() == 3) {
      if (piece.number() < 1 || piece.number() > 6)
        piece.wrong(fmt::format("a piece of type {}", piece.number()));
      made.type = SentencePieceModel::Type(piece.number());
    }
  }
}

void read_trainer(Message spec, const std::string& name, SentencePieceModel& made) {
  while (spec.next()) {
    switch (spec.field()) {
      case 3:
        if (spec.number() != 1 && spec.number() != 2)
          fail(ErrorCode::kUnsupported, "[{}] its model is of type {}; Unigram (1) and BPE (2) are supported",
               name, spec.number());
        made.is_unigram = spec.number() == 1;
        break;
      case 35:
        made.byte_fallback = spec.number() != 0;
        break;
      case 40:
        made.unknown_id = int32_t(spec.number());
        break;
      case 41:
        made.begin_id = int32_t(spec.number());
        break;
      case 42:
        made.end_id = int32_t(spec.number());
        break;
      case 45:
        made.unknown = spec.text();
        break;
      case 46:
        made.begin = spec.text();
        break;
      case 47:
        made.end = spec.text();
        break;
      default:
        break;
    }
  }
}

// Every way to make a piece of two others, in the order of the pieces, then the shorter left half.
Json merges_of(const std::map<std::string, int64_t>& ids) {
  struct Merge {
    int64_t made;
    size_t left_size, right_size;
    int64_t left_id, right_id;
    std::string left, right;
    auto order() const { return std::tie(made, left_size, right_size, left_id, right_id); }
  };
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    for (size_t at = text.empty() ? 0 : first_char(text).size; at < text.size();
         at += first_char(std::string_view(text).substr(at)).size) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({id, count_characters(left->first), count_characters(right->first), left->second,
                        right->second, left->first, right->first});
    }
  }
  std::ranges::sort(merges, [](const Merge& a, const Merge& b) { return a.order() < b.order(); });
  Json list = Json::array();
  for (const Merge& merge : merges) list.push_back(Json::array({merge.left, merge.right}));
  return list;
}

}  // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string& name) {
  SentencePieceModel made;
  Message model(bytes, name);
  while (model.next()) {
    if (model.field() == 1) read_piece(model.message(), made.pieces.emplace_back());
    if (model.field() == 2) read_trainer(model.message(), name, made);
    if (model.field() == 3) {
      Message spec = model.message();
      while (spec.next()) {
        if (spec.field() == 2) made.charsmap = spec.bytes();
      }
    }
    if (int64_t(made.pieces.size()) > kMaxTokenId)
      model.wrong(fmt::format("more than {} pieces", kMaxTokenId));
  }
  if (made.pieces.empty()) model.wrong("no pieces");
  return made;
}

Json SentencePieceModel::tokenizer(bool as_unigram) const {
  const Json spaces =
      Json::object({{"type", "Replace"}, {"pattern", Json::object({{"String", " "}})}, {"content", "▁"}});
  const Json marks =
      Json::object({{"type", "Replace"}, {"pattern", Json::object({{"String", "▁"}})}, {"content", " "}});
  Json normalizers = Json::array(), decoders = Json::array({marks});
  if (!charsmap.empty())
    normalizers.push_back(
        Json::object({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(charsmap)}}));
  normalizers.push_back(spaces);
  if (byte_fallback) {
    decoders.push_back(Json::object({{"type", "ByteFallback"}}));
    decoders.push_back(Json::object({{"type", "Fuse"}}));
  }
  Json model = Json::object({{"type", as_unigram ? "Unigram" : "BPE"}, {"byte_fallback", byte_fallback}});
  if (as_unigram) {
    Json vocab = Json::array();
    for (const Piece& piece : pieces) vocab.push_back(Json::array({piece.text, double(piece.score)}));
    model["vocab"] = std::move(vocab);
    model["unk_id"] = unknown_id;
  } else {
    std::map<std::string, int64_t> ids;
    for (size_t id = 0; id < pieces.size(); ++id) ids[pieces[id].text] = int64_t(id);
    model["merges"] = merges_of(ids);
    model["vocab"] = Json(ids);
    model["unk_token"] = unknown;
    model["fuse_unk"] = true;
  }
  return Json::object({{"version", "1.0"},
                       {"normalizer", Json::object({{"type", "Sequence"}, {"normalizers", normalizers}})},
                       {"decoder", Json::object({{"type", "Sequence"}, {"decoders", decoders}})},
                       {"model", model}});
}

}  // namespace heddle
