#include "heddle/text/grammar/answer_grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/text/grammar/json_leaves.h"

namespace heddle {
namespace {

constexpr size_t kMostWays = 256;
constexpr size_t kMostKnown = 512;  // places of leaves whose tokens are kept: 16 KiB each, of 128,000 tokens
constexpr size_t kMostPrepared = 32;
constexpr size_t kManyLinks = 4096;

bool is_space(u8 byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

// White space between parts: a space, or a line's end and what indents the next line, so that no answer goes on with nothing else.
// Returns what follows `spaces`: 0: nothing came, 1: a space, more: a line's end, and so many after it; or kNoMoreSpaces.
constexpr u8 kNoMoreSpaces = 255;
u8 after_space(u8 spaces, u8 byte, u32 depth) {
  constexpr u32 kEachLevel = 8, kMost = 64;
  if (spaces == 0) return byte == ' ' ? 1 : byte == '\n' ? 2 : kNoMoreSpaces;
  if (depth == 0) return spaces == 2 && byte == '\n' ? 3 : kNoMoreSpaces;  // an empty line before the value
  const bool indents =
      spaces >= 2 && (byte == ' ' || byte == '\t') && u32(spaces) < 2 + std::min(kEachLevel * depth, kMost);
  return indents ? u8(spaces + 1) : kNoMoreSpaces;
}

void set_bit(i32 token, std::span<u32> words) {
  if (const size_t word = size_t(token) / 32; word < words.size()) words[word] |= 1u << (token % 32);
}

}  // namespace

bool AnswerGrammar::step(const JsonNode& node, LeafPlace& place, u8 byte) const {
  const ByteDfa& dfa = *grammar_.leaves[node.leaf];
  place.state = dfa.next(place.state, byte);
  if (place.state == ByteDfa::kDead) return false;
  if (!node.counts) return true;
  if (dfa.accepts(place.state)) return u32(place.count) >= node.least;
  const bool begins = place.count >= 0 && u32(place.count) >= node.most;  // a character too many
  place.count += place.state == kStringCharacter;
  return !begins;
}

template <class Inside, class Exit>
void AnswerGrammar::walk(const JsonNode& node, const LeafPlace& place, u32 begin, u32 end, Inside&& inside,
                         Exit&& exit) const {
  if (begin == end) return;
  const auto& nodes = trie_->nodes();
  std::array<LeafPlace, TokenTrie::kMostBytes + 1> at;  // by depth
  at[size_t(nodes[begin].depth) - 1] = place;
  for (u32 i = begin; i < end;) {
    const TokenTrie::Node& one = nodes[i];
    LeafPlace next = at[size_t(one.depth) - 1];
    if (!step(node, next, one.byte)) {
      i = one.next;
      continue;
    }
    at[one.depth] = next;
    inside(i);
    if (i + 1 < one.next && accepts(node, next)) exit(i);
    ++i;
  }
}

AnswerGrammar::AnswerGrammar(JsonGrammar grammar, std::shared_ptr<const TokenTrie> trie)
    : grammar_(std::move(grammar)), trie_(std::move(trie)) {
  for (const JsonNode& node : grammar_.nodes) {
    LeafPlace place;
    if (known_.size() < kMostPrepared && node.kind == JsonNode::kLeaf && step(node, place, '"'))
      tokens_of(node, place);
  }
}

std::shared_ptr<const AnswerGrammar::LeafTokens> AnswerGrammar::tokens_of(const JsonNode& node,
                                                                          const LeafPlace& place) const {
  // A token has no more characters than bytes, so counts further from the limits are alike.
  const u32 far = trie_->longest() + 1, count = u32(std::max(place.count, 0));
  const auto left = [&](u32 limit) { return std::min(std::max(limit, count) - count, far); };
  const Key key{node.leaf, place.state, node.counts ? left(node.least) : 0,
                node.counts ? left(node.most) : far};
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown && !known_.contains(key)) known_.clear();
  auto& known = known_[key];
  if (known) return known;
  auto made = std::make_shared<LeafTokens>();
  size_t tokens = 0;
  made->bits.resize(size_t(trie_->size() + 31) / 32);
  walk(
      node, place, 0, u32(trie_->nodes().size()),
      [&](u32 i) {
        for (const i32 token : trie_->tokens_of(i)) set_bit(token, made->bits), ++tokens;
      },
      [&](u32 i) { made->exits.push_back(i); });
  if (tokens < made->bits.size()) {
    for (i32 token = 0; token < trie_->size(); ++token)
      if ((made->bits[size_t(token) / 32] >> (token % 32) & 1) != 0) made->few.push_back(token);
    made->bits = {};
  }
  return known = std::move(made);
}

GrammarState::GrammarState(std::shared_ptr<const AnswerGrammar> grammar) : grammar_(std::move(grammar)) {
  links_.push_back({.frame = {}, .parent = 0, .depth = 0});
  if (grammar_->grammar().begins_with_spaces)
    ways_ = {0};
  else
    enter(grammar_->grammar().root, replace(0, {.phase = Frame::kAfter}), ways_);
}

u32 GrammarState::push(const Frame& frame, u32 parent, u32 more_depth) const {
  links_.push_back({frame, parent, links_[parent].depth + more_depth});
  return u32(links_.size()) - 1;
}

// Pushes a link like this one, with another frame.
u32 GrammarState::replace(u32 link, const Frame& frame) const {
  const Link old = links_[link];
  links_.push_back({frame, old.parent, old.depth});
  return u32(links_.size()) - 1;
}

bool GrammarState::are_same(u32 a, u32 b) const {
  for (; a != b; a = links_[a].parent, b = links_[b].parent)
    if (!(links_[a].frame == links_[b].frame))
      return false;
    else if (links_[a].frame.kind == Frame::kRoot)
      return true;
  return true;
}

// True if the node's flattest value is not too deep inside of `link`.
bool GrammarState::fits(NodeId node, u32 link) const {
  return node != kNoNode &&
         u64(links_[link].depth) + grammar_->grammar().depths[node] <= JsonGrammar::kMostDepth;
}

// Begins a value of the node inside of `parent`.
void GrammarState::enter(NodeId id, u32 parent, Ways& out) const {
  const JsonGrammar& grammar = grammar_->grammar();
  const JsonNode& node = grammar.nodes[id];
  if (!fits(id, parent)) return;
  switch (node.kind) {
    case JsonNode::kLeaf:
      out.push_back(push({.kind = Frame::kLeaf, .place = ByteDfa::kStart, .node = id}, parent));
      break;
    case JsonNode::kObject:
      out.push_back(push({.kind = Frame::kObject, .node = id}, parent, 1));
      break;
    case JsonNode::kArray:
      out.push_back(push({.kind = Frame::kArray, .node = id}, parent, 1));
      break;
    case JsonNode::kOneOf:
      for (const NodeId one : node.nodes) enter(one, parent, out);
      break;
    case JsonNode::kSequence:
      enter(node.nodes[0], push({.kind = Frame::kSequence, .place = 1, .node = id}, parent), out);
  }
}

// Goes on in `link`, after what was inside of it.
void GrammarState::resume(u32 link, Ways& out) const {
  const Link now = links_[link];
  if (now.frame.kind != Frame::kSequence) {
    out.push_back(link);
    return;
  }
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  if (now.frame.place == node.nodes.size()) return resume(now.parent, out);
  Frame next = now.frame;
  ++next.place;
  enter(node.nodes[now.frame.place], replace(link, next), out);
}

void GrammarState::enter_and_step(NodeId node, u32 parent, u8 byte, Ways& out) const {
  Ways begun;
  enter(node, parent, begun);
  for (const u32 one : begun) step(one, byte, out);
}

void GrammarState::step(u32 link, u8 byte, Ways& out) const {
  const Frame frame = links_[link].frame;
  if (frame.kind == Frame::kLeaf) return step_leaf(link, byte, out);
  const bool has_spaces =
      frame.kind == Frame::kRoot ? frame.phase == Frame::kOpen : frame.phase != Frame::kOpen;
  if (is_space(byte) && has_spaces) {
    Frame next = frame;
    next.spaces = after_space(frame.spaces, byte, links_[link].depth);
    if (next.spaces != kNoMoreSpaces) out.push_back(replace(link, next));
    return;
  }
  if (frame.kind == Frame::kObject) return step_object(link, byte, out);
  if (frame.kind == Frame::kArray) return step_array(link, byte, out);
  if (frame.phase == Frame::kOpen)
    enter_and_step(grammar_->grammar().root, replace(link, {.phase = Frame::kAfter}), byte, out);
}

void GrammarState::step_leaf(u32 link, u8 byte, Ways& out) const {
  const Link now = links_[link];
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  AnswerGrammar::LeafPlace place{now.frame.place, now.frame.count};
  if (grammar_->accepts(node, place)) {
    Ways after;
    resume(now.parent, after);
    for (const u32 one : after) step(one, byte, out);
  }
  if (!grammar_->step(node, place, byte)) return;
  if (!grammar_->grammar().leaves[node.leaf]->goes_on(place.state)) return resume(now.parent, out);
  Frame next = now.frame;
  next.place = place.state, next.count = place.count;
  out.push_back(replace(link, next));
}

// True if no property is still to come.
bool GrammarState::may_close(const Frame& frame) const {
  const auto& properties = grammar_->grammar().nodes[frame.node].properties;
  return std::none_of(properties.begin() + frame.place, properties.end(),
                      [](const JsonProperty& one) { return one.required; });
}

bool GrammarState::has_more_keys(u32 link) const {
  const Frame& frame = links_[link].frame;
  const JsonNode& node = grammar_->grammar().nodes[frame.node];
  for (size_t i = frame.place; i < node.properties.size(); ++i) {
    if (fits(node.properties[i].value, link)) return true;
    if (node.properties[i].required) return false;
  }
  return fits(node.others, link);
}

// Begins a key: of the properties up to the first one that is required, or another.
void GrammarState::step_keys(u32 link, u8 byte, Ways& out) const {
  const Link now = links_[link];
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  const auto begin = [&](NodeId key, NodeId value, const Frame& next) {
    if (fits(value, link)) enter_and_step(key, replace(link, next), byte, out);
  };
  Frame next = now.frame;
  next.phase = Frame::kColon, next.spaces = 0;
  for (next.place = now.frame.place + 1; next.place <= node.properties.size(); ++next.place) {
    const JsonProperty& property = node.properties[next.place - 1];
    begin(property.key, property.value, next);
    if (property.required) return;
  }
  next.place = u32(node.properties.size()), next.is_other = true;
  begin(node.other_key, node.others, next);
}

void GrammarState::step_object(u32 link, u8 byte, Ways& out) const {
  const Link now = links_[link];
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  Frame next = now.frame;
  next.spaces = 0;
  const auto go_to = [&](Frame::Phase phase) {
    next.phase = phase;
    return replace(link, next);
  };
  switch (now.frame.phase) {
    case Frame::kOpen:
      if (byte == '{') out.push_back(go_to(Frame::kFirst));
      return;
    case Frame::kFirst:
    case Frame::kNext:
      if (byte == '}' && now.frame.phase == Frame::kFirst && may_close(now.frame))
        return resume(now.parent, out);
      return step_keys(link, byte, out);
    case Frame::kColon:
      if (byte == ':') out.push_back(go_to(Frame::kValue));
      return;
    case Frame::kValue:
      return enter_and_step(now.frame.is_other ? node.others : node.properties[now.frame.place - 1].value,
                            go_to(Frame::kAfter), byte, out);
    case Frame::kAfter:
      if (byte == '}' && may_close(now.frame)) return resume(now.parent, out);
      if (byte == ',' && has_more_keys(link)) out.push_back(go_to(Frame::kNext));
  }
}

void GrammarState::step_array(u32 link, u8 byte, Ways& out) const {
  const Link now = links_[link];
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  Frame next = now.frame;
  next.spaces = 0;
  const auto go_to = [&](Frame::Phase phase) {
    next.phase = phase;
    return replace(link, next);
  };
  const NodeId item = next.place < node.nodes.size() ? node.nodes[next.place] : node.others;
  const bool has_more = next.place < node.most && fits(item, link);
  switch (now.frame.phase) {
    case Frame::kOpen:
      if (byte == '[') out.push_back(go_to(Frame::kFirst));
      return;
    case Frame::kAfter:
      if (byte == ']' && next.place >= node.least) return resume(now.parent, out);
      if (byte == ',' && has_more) out.push_back(go_to(Frame::kNext));
      return;
    default:
      if (byte == ']' && now.frame.phase == Frame::kFirst && node.least == 0) return resume(now.parent, out);
      // Beyond what the node tells apart, all places are one, so that ways stay the same.
      if (!has_more) return;
      if (next.place <
          std::max<u64>({node.nodes.size(), node.least, node.most == UINT32_MAX ? 0 : node.most}))
        ++next.place;
      return enter_and_step(item, go_to(Frame::kAfter), byte, out);
  }
}

bool GrammarState::step(u8 byte) {
  Ways next;
  for (const u32 way : ways_) step(way, byte, next);
  ways_.clear();
  for (const u32 way : next)
    if (std::ranges::none_of(ways_, [&](u32 other) { return are_same(way, other); })) ways_.push_back(way);
  require(
      ways_.size() <= kMostWays,
      "[grammar] the answer may be one of more than {} things that begin alike; schemas in anyOf that differ "
      "sooner are told apart",
      kMostWays);
  return !ways_.empty();
}

bool GrammarState::accept(std::string_view text) {
  const Ways before = ways_;
  const size_t links = links_.size();
  for (const char byte : text)
    if (!step(u8(byte))) {
      ways_ = before;
      links_.resize(links);
      return false;
    }
  if (links_.size() > kManyLinks) compact();
  return true;
}

void GrammarState::accept(i32 token) {
  const std::string_view text = grammar_->trie().text(token);
  HEDDLE_CHECK(!text.empty() && accept(text));
}

// Keeps the links that ways have.
void GrammarState::compact() {
  std::vector<Link> old = std::exchange(links_, {});
  std::map<u32, u32> moved;
  for (u32& way : ways_) {
    std::vector<u32> path{way};
    while (old[path.back()].frame.kind != Frame::kRoot && !moved.contains(path.back()))
      path.push_back(old[path.back()].parent);
    for (; !path.empty(); path.pop_back()) {
      const auto [at, is_new] = moved.try_emplace(path.back(), u32(links_.size()));
      if (!is_new) continue;
      const Link link = old[path.back()];
      links_.push_back({link.frame, link.frame.kind == Frame::kRoot ? 0 : moved.at(link.parent), link.depth});
    }
    way = moved.at(way);
  }
}

bool GrammarState::is_complete() const {
  const auto ends = [&](u32 link) {
    return links_[link].frame.kind == Frame::kRoot && links_[link].frame.phase == Frame::kAfter;
  };
  const size_t links = links_.size();
  Ways after;
  for (const u32 way : ways_) {
    const Link link = links_[way];
    if (link.frame.kind != Frame::kLeaf)
      after.push_back(way);
    else if (grammar_->accepts(grammar_->grammar().nodes[link.frame.node],
                               {link.frame.place, link.frame.count}))
      resume(link.parent, after);
  }
  const bool complete = std::ranges::any_of(after, ends);
  links_.resize(links);
  return complete;
}

bool GrammarState::mask(std::span<const i32> ends, std::span<u32> words) const {
  std::ranges::fill(words, 0u);
  const size_t links = links_.size();
  for (const u32 way : ways_) walk(way, 0, u32(grammar_->trie().nodes().size()), words);
  links_.resize(links);
  const bool complete = is_complete();
  for (const i32 end : ends) {
    if (size_t(end) / 32 >= words.size()) continue;
    u32& word = words[size_t(end) / 32];
    word = (word & ~(1u << (end % 32))) | u32(complete) << (end % 32);
  }
  return std::ranges::any_of(words, [](u32 word) { return word != 0; });
}

// Allows the tokens of nodes in [begin, end) that `link` goes on with.
void GrammarState::walk(u32 link, u32 begin, u32 end, std::span<u32> words) const {
  if (links_[link].frame.kind == Frame::kLeaf) return walk_leaf(link, begin, end, words);
  const auto& nodes = grammar_->trie().nodes();
  for (u32 i = begin; i < end; i = nodes[i].next) {
    const size_t links = links_.size();
    Ways next;
    step(link, nodes[i].byte, next);
    if (!next.empty()) allow(i, words);
    if (i + 1 < nodes[i].next)
      for (const u32 way : next) walk(way, i + 1, nodes[i].next, words);
    links_.resize(links);
  }
}

void GrammarState::allow(u32 node, std::span<u32> words) const {
  for (const i32 token : grammar_->trie().tokens_of(node)) set_bit(token, words);
}

void GrammarState::walk_leaf(u32 link, u32 begin, u32 end, std::span<u32> words) const {
  const Link now = links_[link];
  const JsonNode& node = grammar_->grammar().nodes[now.frame.node];
  const AnswerGrammar::LeafPlace place{now.frame.place, now.frame.count};
  const auto& nodes = grammar_->trie().nodes();
  const size_t links = links_.size();
  Ways after;
  resume(now.parent, after);
  const auto exit = [&](u32 i) {
    for (const u32 way : after) walk(way, i + 1, nodes[i].next, words);
  };
  if (begin == 0 && end == nodes.size()) {
    const auto known = grammar_->tokens_of(node, place);
    for (size_t i = 0; i < std::min(known->bits.size(), words.size()); ++i) words[i] |= known->bits[i];
    for (const i32 token : known->few) set_bit(token, words);
    for (const u32 i : known->exits) exit(i);
  } else {
    grammar_->walk(
        node, place, begin, end, [&](u32 i) { allow(i, words); }, exit);
  }
  if (grammar_->accepts(node, place))
    for (const u32 way : after) walk(way, begin, end, words);
  links_.resize(links);
}

}  // namespace heddle
