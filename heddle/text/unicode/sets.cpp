// Reads the tables of sets of characters, at their first use.
#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

#include "heddle/base/invariant.h"
#include "heddle/text/unicode/character_sets.h"
#include "heddle/text/unicode/code_set.h"
#include "heddle/text/unicode/set_sources.h"

namespace heddle {
namespace {

// Takes the part of a text before the next `mark`, and the mark.
std::string_view take(std::string_view& text, char mark) {
  const std::string_view part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

uint32_t number(std::string_view text, int base) {
  uint32_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  HEDDLE_CHECK(read.ec == std::errc() && read.ptr == text.data() + text.size());
  return value;
}

class Tables {
 public:
  Tables() {
    for (const EmbeddedFile& file : set_sources()) {
      std::string_view text = file.text;
      while (!text.empty()) add(take(text, '\n'));
    }
    for (const NamedRanges& run : kinds_["run"])
      for (const CodeRange& range : run.ranges)
        scripts_.push_back({range.first, range.last, number(run.name, 10)});
    std::ranges::sort(scripts_, {}, &ScriptRange::first);
  }
  static const Tables& all() {
    static const Tables tables;
    return tables;
  }

  const std::vector<NamedRanges>& of_kind(std::string_view kind) const { return kinds_.at(kind); }
  std::span<const CodeRange> of_stage(std::string_view name) const {
    return std::ranges::find(of_kind("stage"), name, &NamedRanges::name)->ranges;
  }
  std::span<const ScriptRange> scripts() const { return scripts_; }

 private:
  void add(std::string_view line) {
    std::vector<NamedRanges>& kind = kinds_[take(line, ' ')];
    std::string_view names = take(line, ' ');
    std::vector<CodeRange>& ranges = ranges_.emplace_back();
    while (!line.empty()) {
      std::string_view range = take(line, ' ');
      const uint32_t first = number(take(range, '-'), 16);
      ranges.push_back({first, range.empty() ? first : number(range, 16)});
    }
    while (!names.empty()) kind.push_back({take(names, ','), ranges});
  }

  std::map<std::string_view, std::vector<NamedRanges>> kinds_;
  std::deque<std::vector<CodeRange>> ranges_;
  std::vector<ScriptRange> scripts_;
};

}  // namespace

std::span<const NamedRanges> script_names() {
  return Tables::all().of_kind("script");
}
std::span<const NamedRanges> property_names() {
  return Tables::all().of_kind("property");
}
std::span<const NamedRanges> block_names() {
  return Tables::all().of_kind("block");
}
std::span<const NamedRanges> letter_names() {
  return Tables::all().of_kind("letter");
}
std::span<const NamedRanges> category_names() {
  return Tables::all().of_kind("category");
}

std::span<const CodeRange> cleaned() {
  static const auto ranges = Tables::all().of_stage("cleaned");
  return ranges;
}
std::span<const CodeRange> clean_spaces() {
  static const auto ranges = Tables::all().of_stage("clean_spaces");
  return ranges;
}
std::span<const CodeRange> ideographs() {
  static const auto ranges = Tables::all().of_stage("ideographs");
  return ranges;
}
std::span<const CodeRange> nonspacing_marks() {
  static const auto ranges = Tables::all().of_stage("nonspacing_marks");
  return ranges;
}
std::span<const CodeRange> marks() {
  static const auto ranges = Tables::all().of_stage("marks");
  return ranges;
}
std::span<const CodeRange> nmt_removed() {
  static const auto ranges = Tables::all().of_stage("nmt_removed");
  return ranges;
}
std::span<const CodeRange> nmt_spaces() {
  static const auto ranges = Tables::all().of_stage("nmt_spaces");
  return ranges;
}
std::span<const ScriptRange> scripts() {
  return Tables::all().scripts();
}

}  // namespace heddle
