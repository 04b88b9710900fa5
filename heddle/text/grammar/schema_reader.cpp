#include "heddle/text/grammar/schema_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/text/calls/forms.h"
#include "heddle/text/grammar/ecma_pattern.h"
#include "heddle/text/grammar/json_leaves.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// Formats as patterns; days that not every year has are left out.
constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date",
     "^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
     "02-(0[1-9]|1[0-9]|2[0-8]))$"},
    {"time", "^([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
    {"date-time",
     "^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
     "02-(0[1-9]|1[0-9]|2[0-8]))T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,9})?"
     "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
    {"uuid", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
    {"email",
     "^[A-Za-z0-9_+-]+([.][A-Za-z0-9_+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
     "([.][A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$"},
    {"ipv4", "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])([.]|$)){4}"},
};

constexpr std::string_view kAnnotations[] = {
    "title", "description", "default",    "examples", "$schema",   "$id",          "$comment",
    "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "discriminator"};

// Which keywords a type has, besides `type`, `enum` and `const`.
struct TypeKeywords {
  std::string_view type;
  std::vector<std::string_view> keywords;
};
const std::vector<TypeKeywords>& types() {
  static const std::vector<TypeKeywords> all = {
      {"object", {"properties", "required", "additionalProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
      {"integer", {}},
      {"boolean", {}},
      {"null", {}}};
  return all;
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "integer") return value.is_integer();
  return value.kind() == type;
}

class SchemaReader {
 public:
  explicit SchemaReader(const JsonView* root) : root_(root) {}

  JsonGrammar finish(NodeId root) {
    made_.root = root;
    made_.measure();
    made_.flatten();
    return std::move(made_);
  }

  NodeId read(const JsonView& schema) {
    if (schema.value().is_bool()) {
      if (!schema.as_bool()) schema.fail(ErrorCode::kUnsupported, "no value is allowed here");
      return any_value();
    }
    if (!schema.is_object()) schema.fail(ErrorCode::kIo, "a schema is an object, true or false");
    if (++depth_ > kMostLevels) schema.fail(ErrorCode::kUnsupported, "schemas lie too deep in each other");
    check_keywords(schema);
    const NodeId made = read_kind(schema);
    --depth_;
    return made;
  }

  NodeId any_value() {
    if (any_ != kNoNode) return any_;
    any_ = reserve();
    const NodeId object = any_object(), array = add({.kind = JsonNode::kArray, .others = any_});
    set(any_, {.kind = JsonNode::kOneOf,
               .nodes = {any_text(), add_leaf("number", [] { return numbers(false, {}, {}); }),
                         add_texts({"true", "false", "null"}), object, array}});
    return any_;
  }
  NodeId any_object() {
    return add({.kind = JsonNode::kObject, .other_key = other_key({}), .others = any_value()});
  }

  NodeId read_calls(std::span<const CalledTool> tools) {
    JsonNode node{.kind = JsonNode::kOneOf};
    for (const auto& [pieces, arguments] : tools) {
      root_ = &arguments;
      references_.clear();
      if (!arguments.is_object()) arguments.fail(ErrorCode::kIo, "the schema of an object is expected");
      if (const auto type = arguments.find("type")) type->check_one_of({"object"});
      node.nodes.push_back(pieces.style == CallPieces::Style::kTags ? read_tags(pieces, arguments)
                                                                    : read_json_call(pieces, arguments));
    }
    return add(std::move(node));
  }

 private:
  static constexpr int kMostLevels = 200;
  static constexpr size_t kMostNodes = 10'000;

  NodeId reserve() {
    require(made_.nodes.size() < kMostNodes, "[schema] it has more than {} parts; ask for less", kMostNodes);
    made_.nodes.push_back({.kind = JsonNode::kOneOf});
    return NodeId(made_.nodes.size()) - 1;
  }
  void set(NodeId id, JsonNode node) { made_.nodes[id] = std::move(node); }
  NodeId add(JsonNode node) {
    const auto same = std::ranges::find(made_.nodes, node);
    if (same != made_.nodes.end()) return NodeId(same - made_.nodes.begin());
    const NodeId id = reserve();
    set(id, std::move(node));
    return id;
  }
  // A leaf is made once; `name` says what it is.
  template <class Make>
  u32 leaf(const std::string& name, Make&& make) {
    const auto [at, is_new] = leaves_.try_emplace(name, u32(made_.leaves.size()));
    if (is_new) made_.leaves.push_back(std::make_shared<const ByteDfa>(make()));
    return at->second;
  }
  template <class Make>
  NodeId add_leaf(const std::string& name, Make&& make) {
    return add({.leaf = leaf(name, make)});
  }
  u32 text_leaf() {
    return leaf("string", [] { return any_string(); });
  }
  NodeId any_text(u32 least = 0, u32 most = UINT32_MAX) {
    return add({.leaf = text_leaf(), .counts = least > 0 || most < UINT32_MAX, .least = least, .most = most});
  }
  NodeId add_texts(std::vector<std::string> all) {
    std::ranges::sort(all);
    return add_leaf("texts " + fmt::format("{}", fmt::join(all, "\n")), [&] { return dfa_of_texts(all); });
  }
  NodeId key(const std::string& name) {
    return add_leaf("key " + name, [&] { return dfa_of_texts({json_text(name)}); });
  }
  NodeId other_key(std::vector<std::string> names) {
    std::ranges::sort(names);
    return add_leaf("but " + fmt::format("{}", fmt::join(names, "\n")), [&] { return key_but(names); });
  }

  NodeId exactly(const std::string& text) {
    return add_leaf("exactly " + text, [&] { return dfa_of_texts({text}); });
  }
  NodeId sequence(std::vector<NodeId> nodes) {
    return add({.kind = JsonNode::kSequence, .nodes = std::move(nodes)});
  }

  static bool is_annotation(std::string_view name) {
    return std::ranges::find(kAnnotations, name) != std::end(kAnnotations);
  }
  // Throws for keywords that are not done.
  static void check_keywords(const JsonView& schema) {
    schema.for_each_member([](const std::string& name, const JsonView& value) {
      bool known = is_annotation(name) || name.starts_with("x-");
      for (const std::string_view one : {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})
        known |= name == one;
      for (const TypeKeywords& type : types())
        known |= std::ranges::find(type.keywords, name) != type.keywords.end();
      if (!known || name == "multipleOf" || (name == "uniqueItems" && value.as_bool()))
        value.fail(ErrorCode::kUnsupported, fmt::format("the keyword {} is not supported", name));
    });
  }
  // A keyword that says all, but for annotations and those that are named.
  static void check_alone(const JsonView& schema, std::string_view keyword,
                          std::initializer_list<std::string_view> others = {}) {
    schema.for_each_member([&](const std::string& name, const JsonView& value) {
      if (name == keyword || is_annotation(name) || name.starts_with("x-") ||
          std::ranges::find(others, name) != others.end())
        return;
      value.fail(ErrorCode::kUnsupported, fmt::format("{} next to {} is not supported", name, keyword));
    });
  }

  NodeId read_kind(const JsonView& schema) {
    if (schema.find("$ref")) return check_alone(schema, "$ref"), read_reference(schema.at("$ref"));
    if (const auto all = schema.find("allOf")) {
      check_alone(schema, "allOf");
      if (all->size() != 1) all->fail(ErrorCode::kUnsupported, "allOf of one schema is supported");
      NodeId made = kNoNode;
      all->for_each_item([&](const JsonView& one) { made = read(one); });
      return made;
    }
    for (const char* keyword : {"anyOf", "oneOf"})
      if (const auto some = schema.find(keyword)) {
        check_alone(schema, keyword);
        return read_choices(*some, keyword == std::string_view("oneOf"));
      }
    if (schema.contains("const")) {
      check_alone(schema, "const", {"type"});
      return texts(schema, {schema.at("const").value()});
    }
    if (const auto values = schema.find("enum")) {
      check_alone(schema, "enum", {"type"});
      if (!values->is_array()) values->fail(ErrorCode::kIo, "a list of values is expected");
      return texts(schema, values->value().items());
    }
    return read_types(schema);
  }

  NodeId texts(const JsonView& schema, std::vector<Json> values) {
    const std::vector<std::string> allowed = types_of(schema);
    std::erase_if(values, [&](const Json& value) {
      return !allowed.empty() &&
             std::ranges::none_of(allowed, [&](const std::string& type) { return has_type(value, type); });
    });
    if (values.empty()) schema.fail(ErrorCode::kUnsupported, "no value is allowed here");
    std::vector<std::string> all;
    for (const Json& value : values) all.push_back(json_text(value));
    return add_texts(std::move(all));
  }

  // Makes what `make` does; its errors name the schema.
  template <class Make>
  static auto dfa_of(const JsonView& at, Make make) {
    return [&at, make = std::move(make)] {
      try {
        ByteDfa made = make();
        if (made.is_empty()) at.fail(ErrorCode::kUnsupported, "no value is allowed here");
        return made;
      } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with('[')) throw;
        at.fail(ErrorCode::kUnsupported, error.what());
      }
    };
  }

  NodeId read_reference(const JsonView& reference) {
    const std::string& path = reference.as_string();
    const auto [at, is_new] = references_.try_emplace(path, kNoNode);
    if (!is_new) return at->second;
    const NodeId made = at->second = reserve();
    if (!path.starts_with('#'))
      reference.fail(ErrorCode::kUnsupported, "a reference into the schema is expected: #/...");
    find_in(*root_, std::string_view(path).substr(1), reference, [&](const JsonView& schema) {
      // Its node is known before it is read, since it may refer to itself.
      set(made, {.kind = JsonNode::kOneOf, .nodes = {read(schema)}});
    });
    return made;
  }
  template <class Found>
  static void find_in(const JsonView& at, std::string_view path, const JsonView& reference, Found&& found) {
    if (path.empty()) return found(at);
    if (path[0] != '/') reference.fail(ErrorCode::kUnsupported, "a path is expected: #/$defs/name");
    const size_t end = std::min(path.find('/', 1), path.size());
    std::string name(path.substr(1, end - 1));
    for (const auto& [from, to] : {std::pair{"~1", "/"}, {"~0", "~"}})
      for (size_t place = 0; (place = name.find(from, place)) != std::string::npos; ++place)
        name.replace(place, 2, to);
    if (!at.is_object() || !at.contains(name))
      reference.fail(ErrorCode::kIo, "there is nothing at this path");
    const JsonView next = at.at(name);
    find_in(next, path.substr(end), reference, found);
  }

  NodeId read_choices(const JsonView& choices, bool exactly_one) {
    JsonNode node{.kind = JsonNode::kOneOf};
    choices.for_each_item([&](const JsonView& one) { node.nodes.push_back(read(one)); });
    if (node.nodes.empty()) choices.fail(ErrorCode::kIo, "schemas are expected");
    for (size_t i = 0; exactly_one && i < node.nodes.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (!are_disjoint(node.nodes[i], node.nodes[k], 0))
          choices.fail(
              ErrorCode::kUnsupported,
              fmt::format("schemas {} and {} of oneOf may allow the same value; anyOf may be meant", k, i));
    return add(std::move(node));
  }

  // False where a value of both may exist.
  bool are_disjoint(NodeId a, NodeId b, int depth) const {
    constexpr int kMost = 8;
    const JsonNode &x = made_.nodes[a], &y = made_.nodes[b];
    if (depth > kMost) return false;
    for (const auto& [choice, other] : {std::pair{a, b}, {b, a}}) {
      const JsonNode& node = made_.nodes[choice];
      if (node.kind == JsonNode::kOneOf)
        return !node.nodes.empty() && std::ranges::all_of(node.nodes, [&, other = other](NodeId one) {
          return are_disjoint(one, other, depth + 1);
        });
    }
    if (x.kind != y.kind) return true;
    // Spelling differs between leaves, so strings with escapes are the same in more ways than their automata tell.
    if (x.kind == JsonNode::kLeaf) return are_apart(x, y);
    if (x.kind != JsonNode::kObject) return false;
    for (const JsonProperty& one : x.properties)
      for (const JsonProperty& other : y.properties)
        if (one.required && other.required && one.key == other.key &&
            are_disjoint(one.value, other.value, depth + 1))
          return true;
    return false;
  }
  bool are_apart(const JsonNode& x, const JsonNode& y) const {
    const ByteDfa &a = *made_.leaves[x.leaf], &b = *made_.leaves[y.leaf];
    const auto is_text = [](const ByteDfa& dfa) { return dfa.next(ByteDfa::kStart, '"') != ByteDfa::kDead; };
    const auto is_other = [](const ByteDfa& dfa) {
      for (u32 byte = 0; byte < 256; ++byte)
        if (byte != '"' && dfa.next(ByteDfa::kStart, u8(byte)) != ByteDfa::kDead) return true;
      return false;
    };
    const bool numbers_meet = is_other(a) && is_other(b);  // 1 and 1.0 are the same number
    if (numbers_meet) {
      for (const char* digit : {"-", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
        if (a.next(ByteDfa::kStart, u8(*digit)) != ByteDfa::kDead &&
            b.next(ByteDfa::kStart, u8(*digit)) != ByteDfa::kDead)
          return false;
    }
    if (is_text(a) && is_text(b) && (is_spelled_freely(x) || is_spelled_freely(y))) return false;
    return ByteDfa::both(a, b).is_empty();
  }

  bool is_spelled_freely(const JsonNode& node) const {
    const auto found = leaves_.find("string");
    return found != leaves_.end() && found->second == node.leaf;
  }

  static std::vector<std::string> types_of(const JsonView& schema) {
    std::vector<std::string> found;
    const auto take = [&](const JsonView& one) {
      if (std::ranges::find(types(), std::string_view(one.as_string()), &TypeKeywords::type) == types().end())
        one.fail(ErrorCode::kIo, "a type of JSON is expected");
      found.push_back(one.as_string());
    };
    if (const auto type = schema.find("type")) type->is_array() ? type->for_each_item(take) : take(*type);
    return found;
  }

  NodeId read_types(const JsonView& schema) {
    std::vector<std::string> names = types_of(schema);
    for (const TypeKeywords& type : types())
      if (!schema.contains("type") &&
          std::ranges::any_of(type.keywords, [&](std::string_view name) { return schema.contains(name); }))
        names.emplace_back(type.type);
    if (names.empty()) return any_value();
    JsonNode node{.kind = JsonNode::kOneOf};
    for (const std::string& name : names) node.nodes.push_back(read_type(schema, name));
    return node.nodes.size() == 1 ? node.nodes[0] : add(std::move(node));
  }
  NodeId read_type(const JsonView& schema, std::string_view type) {
    if (type == "object") return read_object(schema);
    if (type == "array") return read_array(schema);
    if (type == "string") return read_string(schema);
    if (type == "boolean") return add_texts({"false", "true"});
    if (type == "null") return add_texts({"null"});
    return read_number(schema, type == "integer");
  }
  NodeId read_object(const JsonView& schema) {
    JsonNode node{.kind = JsonNode::kObject};
    std::set<std::string> required;
    if (const auto names = schema.find("required"))
      names->for_each_item([&](const JsonView& name) { required.insert(name.as_string()); });
    std::vector<std::string> names;
    const auto properties = schema.find("properties");
    if (properties)
      properties->for_each_member([&](const std::string& name, const JsonView& value) {
        const bool must = required.erase(name) > 0;
        names.push_back(name);
        if (value.value().is_bool() && !value.as_bool() && !must) return;  // it never comes
        node.properties.push_back({.key = key(name), .value = read(value), .required = must});
      });
    const auto others = schema.find("additionalProperties");
    const bool open = others ? !(others->value().is_bool() && !others->as_bool()) : names.empty();
    if (open) node.others = others ? read(*others) : any_value();
    for (const std::string& name : required) {  // it may have any value that others may have
      if (node.others == kNoNode && others)
        schema.at("required").fail(ErrorCode::kUnsupported, fmt::format("{} is no property", brief(name)));
      names.push_back(name);
      node.properties.push_back(
          {.key = key(name), .value = open ? node.others : any_value(), .required = true});
    }
    if (open) node.other_key = other_key(std::move(names));
    return add(std::move(node));
  }
  NodeId read_array(const JsonView& schema) {
    JsonNode node{.kind = JsonNode::kArray};
    read_counts(schema, "minItems", "maxItems", node);
    if (const auto first = schema.find("prefixItems"))
      first->for_each_item([&](const JsonView& item) { node.nodes.push_back(read(item)); });
    const auto items = schema.find("items");
    if (items && items->value().is_bool() && !items->as_bool())
      node.most = std::min(node.most, u32(node.nodes.size()));
    else if (node.most > node.nodes.size())
      node.others = items ? read(*items) : any_value();
    if (node.least > node.most)
      schema.fail(ErrorCode::kUnsupported, "no value is allowed here: minItems is more than there may be");
    return add(std::move(node));
  }
  static void read_counts(const JsonView& schema, const char* least, const char* most, JsonNode& node) {
    constexpr i64 kMost = 1'000'000'000;
    if (const auto value = schema.find(least)) node.least = u32(value->as_int(0, kMost));
    if (const auto value = schema.find(most)) node.most = u32(value->as_int(0, kMost));
    if (node.least > node.most)
      schema.fail(ErrorCode::kUnsupported,
                  fmt::format("no value is allowed here: {} is more than {}", least, most));
  }

  NodeId read_string(const JsonView& schema) {
    JsonNode counts;
    read_counts(schema, "minLength", "maxLength", counts);
    std::vector<std::string> patterns;
    const auto pattern = schema.find("pattern");
    if (pattern) patterns.push_back(pattern->as_string());
    if (const auto format = schema.find("format")) {
      const auto known = std::ranges::find(kFormats, std::string_view(format->as_string()),
                                           &std::pair<std::string_view, std::string_view>::first);
      if (known == std::end(kFormats))
        format->fail(ErrorCode::kUnsupported,
                     "the formats date, time, date-time, uuid, email and ipv4 are supported");
      patterns.emplace_back(known->second);
    }
    if (patterns.empty()) return any_text(counts.least, counts.most);
    if (counts.least > 0 || counts.most < UINT32_MAX)
      patterns.push_back(fmt::format("^[^]{{{},{}}}$", counts.least,
                                     counts.most < UINT32_MAX ? std::to_string(counts.most) : ""));
    return add_leaf("like " + fmt::format("{}", fmt::join(patterns, "\n")),
                    dfa_of(pattern ? *pattern : schema, [&] {
                      ByteDfa made = dfa_of_pattern(patterns[0], Spelling::kJsonString);
                      for (size_t i = 1; i < patterns.size(); ++i)
                        made = ByteDfa::both(made, dfa_of_pattern(patterns[i], Spelling::kJsonString));
                      return made;
                    }));
  }

  NodeId read_number(const JsonView& schema, bool integer) {
    std::string name = integer ? "integer" : "number";
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (const auto value = schema.find(keyword))
        name += fmt::format(" {} {}", keyword, number_of(*value).dump());
    return add_leaf(name, dfa_of(schema, [&] {
                      const auto bound = [&](const char* keyword, bool open) -> std::optional<NumberBound> {
                        const auto value = schema.find(keyword);
                        if (!value) return {};
                        return NumberBound{decimal_digits(number_of(*value)), open};
                      };
                      const auto above = bound("exclusiveMinimum", true),
                                 below = bound("exclusiveMaximum", true);
                      const ByteDfa made = numbers(integer, bound("minimum", false), bound("maximum", false));
                      return above || below ? ByteDfa::both(made, numbers(integer, above, below)) : made;
                    }));
  }
  static const Json& number_of(const JsonView& value) {
    value.as_number();
    return value.value();
  }

  NodeId read_json_call(const CallPieces& pieces, const JsonView& schema) {
    const NodeId any = read(schema), value = any == any_ ? any_object() : any;
    std::vector<NodeId> nodes{exactly(pieces.begin), value};
    if (!pieces.end.empty()) nodes.push_back(exactly(pieces.end));
    return sequence(std::move(nodes));
  }
  NodeId read_tags(const CallPieces& pieces, const JsonView& schema) {
    check_keywords(schema);
    check_alone(schema, "properties", {"type", "required", "additionalProperties"});
    const auto& [before, between, after] = pieces.tags;
    std::set<std::string> required;
    if (const auto names = schema.find("required"))
      names->for_each_item([&](const JsonView& name) { required.insert(name.as_string()); });
    std::vector<std::pair<NodeId, bool>> values;  // with their tags, and whether they must come
    if (const auto properties = schema.find("properties"))
      properties->for_each_member([&](const std::string& name, const JsonView& value) {
        const NodeId begin = exactly(before + name + between);
        values.emplace_back(sequence({begin, read_tagged(value, after), exactly(after)}),
                            required.erase(name) > 0);
      });
    if (!required.empty())
      schema.at("required")
          .fail(ErrorCode::kUnsupported, fmt::format("{} is no property", brief(Json(*required.begin()))));
    NodeId rest = exactly(pieces.end);
    for (; !values.empty(); values.pop_back()) {
      const auto [value, must] = values.back();
      const NodeId with = sequence({value, rest});
      rest = must ? with : add({.kind = JsonNode::kOneOf, .nodes = {with, rest}});
    }
    return sequence({exactly(pieces.begin), rest});
  }
  // A value as it stands before the tag `after`: strings have no quotes.
  NodeId read_tagged(const JsonView& schema, std::string_view after) {
    const TagValue kind = tag_value_of(schema.value());
    if (kind == TagValue::kOther) return read(schema);
    check_keywords(schema);
    std::vector<std::string> all;
    if (const auto one = schema.find("const")) all.push_back(one->as_string());
    if (const auto values = schema.find("enum"))
      values->for_each_item(
          [&](const JsonView& value) { all.push_back(value.is_null() ? "null" : value.as_string()); });
    if (!all.empty()) return add_texts(std::move(all));
    for (const char* keyword : {"pattern", "format"})
      if (const auto found = schema.find(keyword))
        found->fail(ErrorCode::kUnsupported,
                    fmt::format("the keyword {} is not supported where arguments have tags", keyword));
    after.remove_prefix(std::min(after.find('<'), after.size()));
    const std::string mark(after.substr(0, after.find('>') + 1)), any = "[^]*";
    JsonNode counts;
    read_counts(schema, "minLength", "maxLength", counts);
    const std::string text = fmt::format("[^]{{{},{}}}", counts.least,
                                         counts.most < UINT32_MAX ? std::to_string(counts.most) : "");
    return add_leaf(fmt::format("{} before {}", text, mark), dfa_of(schema, [&] {
                      return ByteDfa::without(dfa_of_pattern(text, Spelling::kPlain),
                                              dfa_of_pattern(any + mark + any, Spelling::kPlain));
                    }));
  }

  const JsonView* root_;
  JsonGrammar made_;
  NodeId any_ = kNoNode;
  int depth_ = 0;
  std::map<std::string, NodeId> references_;
  std::map<std::string, u32> leaves_;
};

}  // namespace

JsonGrammar read_schema(const JsonView& schema) {
  SchemaReader reader(&schema);
  const NodeId root = reader.read(schema);
  return reader.finish(root);
}

JsonGrammar read_calls(std::span<const CalledTool> tools) {
  SchemaReader reader(nullptr);
  const NodeId root = reader.read_calls(tools);
  return reader.finish(root);
}

JsonGrammar any_object() {
  SchemaReader reader(nullptr);
  const NodeId root = reader.any_object();
  return reader.finish(root);
}

}  // namespace heddle
