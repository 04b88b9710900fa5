#include "heddle/text/jinja/character_class.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "heddle/text/unicode/regex.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

struct Range {
  uint32_t first, last;
};

// Numeric_Type=Digit of the Unicode Character Database.
constexpr Range kDigits[] = {{0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
                             {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                             {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
                             {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
                             {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

// Numeric_Type=Numeric of letters: ideographs.
constexpr Range kNumerals[] = {
    {0x3405, 0x3405},   {0x3483, 0x3483},   {0x382A, 0x382A},   {0x3B4D, 0x3B4D},   {0x4E00, 0x4E00},
    {0x4E03, 0x4E03},   {0x4E07, 0x4E07},   {0x4E09, 0x4E09},   {0x4E5D, 0x4E5D},   {0x4E8C, 0x4E8C},
    {0x4E94, 0x4E94},   {0x4E96, 0x4E96},   {0x4EBF, 0x4EC0},   {0x4EDF, 0x4EDF},   {0x4EE8, 0x4EE8},
    {0x4F0D, 0x4F0D},   {0x4F70, 0x4F70},   {0x5104, 0x5104},   {0x5146, 0x5146},   {0x5169, 0x5169},
    {0x516B, 0x516B},   {0x516D, 0x516D},   {0x5341, 0x5341},   {0x5343, 0x5345},   {0x534C, 0x534C},
    {0x53C1, 0x53C4},   {0x56DB, 0x56DB},   {0x58F1, 0x58F1},   {0x58F9, 0x58F9},   {0x5E7A, 0x5E7A},
    {0x5EFE, 0x5EFF},   {0x5F0C, 0x5F0E},   {0x5F10, 0x5F10},   {0x62FE, 0x62FE},   {0x634C, 0x634C},
    {0x67D2, 0x67D2},   {0x6F06, 0x6F06},   {0x7396, 0x7396},   {0x767E, 0x767E},   {0x8086, 0x8086},
    {0x842C, 0x842C},   {0x8CAE, 0x8CAE},   {0x8CB3, 0x8CB3},   {0x8D30, 0x8D30},   {0x9621, 0x9621},
    {0x9646, 0x9646},   {0x964C, 0x964C},   {0x9678, 0x9678},   {0x96F6, 0x96F6},   {0xF96B, 0xF96B},
    {0xF973, 0xF973},   {0xF978, 0xF978},   {0xF9B2, 0xF9B2},   {0xF9D1, 0xF9D1},   {0xF9D3, 0xF9D3},
    {0xF9FD, 0xF9FD},   {0x20001, 0x20001}, {0x20064, 0x20064}, {0x200E2, 0x200E2}, {0x20121, 0x20121},
    {0x2092A, 0x2092A}, {0x20983, 0x20983}, {0x2098C, 0x2098C}, {0x2099C, 0x2099C}, {0x20AEA, 0x20AEA},
    {0x20AFD, 0x20AFD}, {0x20B19, 0x20B19}, {0x22390, 0x22390}, {0x22998, 0x22998}, {0x23B1B, 0x23B1B},
    {0x2626D, 0x2626D}, {0x2F890, 0x2F890}};

template <size_t kSize>
bool is_within(const Range (&ranges)[kSize], uint32_t c) {
  const auto* found = std::ranges::upper_bound(ranges, c, {}, &Range::first);
  return found != std::begin(ranges) && c <= std::prev(found)->last;
}

bool matches(const Regex& regex, uint32_t code_point) {
  std::string text;
  append_utf8(code_point, text);
  Regex::Scratch scratch;
  return regex.find(text, 0, scratch).has_value();
}

}  // namespace

bool is_lowercase(uint32_t c) {
  static const Regex regex(R"(\p{Lowercase})");
  return c < 0x80 ? c >= 'a' && c <= 'z' : matches(regex, c);
}
bool is_uppercase(uint32_t c) {
  static const Regex regex(R"(\p{Uppercase})");
  return c < 0x80 ? c >= 'A' && c <= 'Z' : matches(regex, c);
}
bool is_titlecase(uint32_t c) {
  static const Regex regex(R"(\p{Lt})");
  return c >= 0x80 && matches(regex, c);
}
bool is_cased(uint32_t c) {
  static const Regex regex(R"(\p{Cased})");
  return c < 0x80 ? is_lowercase(c) || is_uppercase(c) : matches(regex, c);
}
bool is_case_ignorable(uint32_t c) {
  static const Regex regex(R"(\p{Case_Ignorable})");
  return matches(regex, c);
}
bool is_printable(uint32_t c) {
  static const Regex regex(R"([^\p{C}\p{Z}])");
  return c < 0x7F ? c >= ' ' : matches(regex, c);
}

bool is_alphabetic(uint32_t c) {
  static const Regex regex(R"(\p{L})");
  return c < 0x80 ? is_lowercase(c) || is_uppercase(c) : matches(regex, c);
}
bool is_decimal(uint32_t c) {
  static const Regex regex(R"(\p{Nd})");
  return c < 0x80 ? c >= '0' && c <= '9' : matches(regex, c);
}
bool is_digit(uint32_t c) {
  return is_decimal(c) || is_within(kDigits, c);
}
bool is_numeric(uint32_t c) {
  static const Regex regex(R"(\p{N})");
  return c < 0x80 ? c >= '0' && c <= '9' : matches(regex, c) || is_within(kNumerals, c);
}
bool is_alphanumeric(uint32_t c) {
  return is_alphabetic(c) || is_numeric(c);
}

bool begins_identifier(uint32_t c) {
  static const Regex regex(R"(\p{XID_Start})");
  return c == '_' || (c < 0x80 ? is_alphabetic(c) : matches(regex, c));
}
bool continues_identifier(uint32_t c) {
  static const Regex regex(R"(\p{XID_Continue})");
  return c == '_' || (c < 0x80 ? is_alphanumeric(c) : matches(regex, c));
}

}  // namespace heddle::jinja
