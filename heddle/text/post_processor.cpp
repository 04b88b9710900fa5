#include "heddle/text/post_processor.h"

#include "heddle/text/tokenizer_keys.h"

namespace heddle {
namespace {

constexpr size_t kMostPieces = 1024;

class Reader {
 public:
  explicit Reader(const std::function<bool(int64_t id)>& is_token) : is_token_(is_token) {}

  void add(const JsonView& json, int depth) {
    const std::string_view type = checked_type(Section::kPostProcessor, json);
    if (depth == kMostSequenceLevels)
      json.fail(ErrorCode::kUnsupported, "this Sequence is nested too deeply");
    if (type == "Sequence") {
      const JsonView list = json.at("processors");
      return list.for_each_item([&](const JsonView& item) { add(item, depth + 1); });
    }
    if (type == "ByteLevel") return;  // it changes offsets only
    if (parts_ > 1)
      json.fail(ErrorCode::kUnsupported,
                "a processor after a TemplateProcessing of several pieces is not supported");
    if (type == "TemplateProcessing") return add_template(json);
    const JsonView cls = json.at("cls"), sep = json.at("sep");
    pieces_.insert(pieces_.begin(), id_of(cls));
    pieces_.push_back(id_of(sep));
  }

  std::vector<int32_t> pieces() { return std::move(pieces_); }

 private:
  int32_t read_id(const JsonView& value) const {
    const int64_t id = value.as_int(0, INT32_MAX);
    if (!is_token_(id)) value.fail(ErrorCode::kIo, "no token has this id");
    return int32_t(id);
  }

  // The id of [token, id].
  int32_t id_of(const JsonView& pair) const {
    int32_t id = 0;
    bool second = false;
    pair.for_each_item([&](const JsonView& part) {
      if (second) id = read_id(part);
      second = true;
    });
    return id;
  }

  void add_template(const JsonView& json) {
    const JsonView single = json.at("single"), pair = json.at("pair"), specials = json.at("special_tokens");
    pair.for_each_item(check_template_piece);
    specials.for_each_member([](const std::string&, const JsonView& token) { check_template_token(token); });
    std::vector<int32_t> made;
    single.for_each_item([&](const JsonView& piece) {
      check_template_piece(piece);
      if (const auto sequence = piece.find("Sequence")) {
        const JsonView id = sequence->at("id");
        if (id.as_string() != "A")
          id.fail(ErrorCode::kIo, "the template of a single text has only the sequence A");
        made.insert(made.end(), pieces_.begin(), pieces_.end());
      } else {
        const JsonView special = piece.at("SpecialToken"), id = special.at("id"),
                       entry = specials.at(id.as_string()), ids = entry.at("ids");
        ids.for_each_item([&](const JsonView& value) { made.push_back(read_id(value)); });
      }
      if (made.size() > kMostPieces)
        piece.fail(ErrorCode::kUnsupported, fmt::format("at most {} pieces are supported", kMostPieces));
    });
    pieces_ = std::move(made);
    parts_ = single.size();
  }

  const std::function<bool(int64_t id)>& is_token_;
  std::vector<int32_t> pieces_ = {kTextPiece};
  size_t parts_ = 1;  // that `tokenizers` would hand to the next processor
};

}  // namespace

std::vector<int32_t> read_post_processor(const JsonView& json,
                                         const std::function<bool(int64_t id)>& is_token) {
  Reader reader(is_token);
  reader.add(json, 0);
  return reader.pieces();
}

}  // namespace heddle
