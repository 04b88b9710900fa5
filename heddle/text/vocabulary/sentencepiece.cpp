#include "heddle/text/vocabulary/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
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

using Names = std::map<int64_t, std::string>;

// A way to make a piece of two others.
struct Merge {
  int64_t made;  // ids
  int64_t left_id, right_id;
  std::string left, right;
};

std::vector<Merge> merges_of(const std::map<std::string, int64_t>& ids) {
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    for (size_t at = text.empty() ? 0 : first_char(text).size; at < text.size();
         at += first_char(std::string_view(text).substr(at)).size) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({id, left->second, right->second, left->first, right->first});
    }
  }
  return merges;
}

Json as_json(const std::vector<Merge>& merges) {
  Json list = Json::array();
  for (const Merge& merge : merges) list.push_back(Json::array({merge.left, merge.right}));
  return list;
}

// In the order of the pieces, then the shorter left half.
Json merges_by_id(const std::map<std::string, int64_t>& ids) {
  std::vector<Merge> merges = merges_of(ids);
  std::ranges::sort(merges, {}, [](const Merge& merge) {
    return std::tuple(merge.made, count_characters(merge.left), count_characters(merge.right), merge.left_id,
                      merge.right_id);
  });
  return as_json(merges);
}

// Texts of the pieces, with their new names. A name that another piece keeps is none.
std::vector<std::string> texts_of(const SentencePieceModel& model, const Names& names) {
  std::set<std::string_view> kept;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (!names.contains(int64_t(id))) kept.insert(model.pieces[id].text);
  std::vector<std::string> texts;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const auto name = names.find(int64_t(id));
    const bool renamed = name != names.end() && !kept.contains(name->second);
    texts.push_back(renamed ? name->second : model.pieces[id].text);
  }
  return texts;
}

Json replace(const char* kind, std::string_view from, std::string_view to) {
  return Json::object({{"type", "Replace"}, {"pattern", Json::object({{kind, from}})}, {"content", to}});
}

Json sequence_of(const char* name, Json stages) {
  return Json::object({{"type", "Sequence"}, {name, std::move(stages)}});
}

// A pattern of Oniguruma that matches one of the texts, the longest first.
std::string any_of(std::vector<std::string> texts) {
  constexpr std::string_view kOperators = R"(\.+*?()[]{}|^$)";
  std::ranges::stable_sort(texts, std::ranges::greater(), count_characters);
  std::string pattern;
  for (const std::string& text : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text) {
      if (kOperators.find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

Json normalizers_of(const SentencePieceModel& model, bool legacy) {
  Json stages = Json::array();
  if (!model.charsmap.empty())
    stages.push_back(
        Json::object({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}}));
  if (model.removes_spaces) {
    stages.push_back(replace("Regex", R"(\A +| +\z)", ""));
    stages.push_back(replace("Regex", " {2,}", " "));
  }
  if (model.escapes_spaces) stages.push_back(replace("String", " ", "▁"));
  // Metaspace puts no prefix before a text that begins with one; SentencePiece does.
  if (model.dummy_prefix && legacy) stages.push_back(replace("Regex", R"(\A▁)", "▁▁"));
  return sequence_of("normalizers", std::move(stages));
}

Json pre_tokenizers_of(const SentencePieceModel& model, std::vector<std::string> whole, bool legacy) {
  Json stages = Json::array();
  if (model.dummy_prefix)
    stages.push_back(Json::object({{"type", "Metaspace"},
                                   {"replacement", "▁"},
                                   {"prepend_scheme", legacy ? "always" : "first"},
                                   {"split", false}}));
  if (!whole.empty())
    stages.push_back(Json::object({{"type", "Split"},
                                   {"pattern", Json::object({{"Regex", any_of(std::move(whole))}})},
                                   {"behavior", "Isolated"},
                                   {"invert", false}}));
  return stages.size() == 0 ? Json() : sequence_of("pretokenizers", std::move(stages));
}

Json decoders_of(const SentencePieceModel& model) {
  Json stages = Json::array({replace("String", "▁", " ")});
  if (model.byte_fallback) stages.push_back(Json::object({{"type", "ByteFallback"}}));
  if (model.byte_fallback || model.dummy_prefix) stages.push_back(Json::object({{"type", "Fuse"}}));
  if (model.dummy_prefix)
    stages.push_back(Json::object({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}));
  return sequence_of("decoders", std::move(stages));
}

std::map<std::string, int64_t> ids_of(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> ids;
  for (size_t id = 0; id < texts.size(); ++id) ids[texts[id]] = int64_t(id);
  return ids;
}

// Only normal pieces merge: the one with the highest score first.
Json bpe_of(const SentencePieceModel& model, const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> normal;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (model.pieces[id].type == SentencePieceModel::Type::kNormal) normal[texts[id]] = int64_t(id);
  std::vector<Merge> merges = merges_of(normal);
  std::ranges::sort(merges, {}, [&](const Merge& merge) {
    return std::tuple<float, int64_t, const std::string&, const std::string&>(
        -model.pieces[size_t(merge.made)].score, merge.made, merge.left, merge.right);
  });
  return Json::object({{"type", "BPE"},
                       {"unk_token", model.unknown},
                       {"fuse_unk", true},
                       {"byte_fallback", model.byte_fallback},
                       {"vocab", Json(ids_of(texts))},
                       {"merges", as_json(merges)}});
}

Json unigram_of(const SentencePieceModel& model) {
  Json vocab = Json::array();
  for (const SentencePieceModel::Piece& piece : model.pieces)
    vocab.push_back(Json::array({piece.text, double(piece.score)}));
  return Json::object({{"type", "Unigram"},
                       {"byte_fallback", model.byte_fallback},
                       {"vocab", vocab},
                       {"unk_id", model.unknown_id}});
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
        if (spec.field() == 3) made.dummy_prefix = spec.number() != 0;
        if (spec.field() == 4) made.removes_spaces = spec.number() != 0;
        if (spec.field() == 5) made.escapes_spaces = spec.number() != 0;
      }
    }
    if (int64_t(made.pieces.size()) > kMaxTokenId)
      model.wrong(fmt::format("more than {} pieces", kMaxTokenId));
  }
  if (made.pieces.empty()) model.wrong("no pieces");
  return made;
}

Json SentencePieceModel::vocabulary() const {
  const std::map<std::string, int64_t> ids = ids_of(texts_of(*this, {}));
  return Json::object(
      {{"version", "1.0"},
       {"model", Json::object({{"type", "BPE"}, {"vocab", Json(ids)}, {"merges", merges_by_id(ids)}})}});
}

Json SentencePieceModel::tokenizer(const Names& names, bool legacy) const {
  const std::vector<std::string> texts = texts_of(*this, is_unigram ? Names() : names);
  std::vector<std::string> whole;  // SentencePiece never cuts these, nor merges them
  for (size_t id = 0; id < pieces.size(); ++id)
    if (pieces[id].type == Type::kUserDefined) whole.push_back(texts[id]);
  Json model = is_unigram ? unigram_of(*this) : bpe_of(*this, texts);
  if (!is_unigram) model["ignore_merges"] = !whole.empty();
  return Json::object({{"version", "1.0"},
                       {"normalizer", normalizers_of(*this, legacy)},
                       {"pre_tokenizer", pre_tokenizers_of(*this, std::move(whole), legacy)},
                       {"decoder", decoders_of(*this)},
                       {"model", std::move(model)}});
}

}  // namespace heddle
