// The values of JSON that a schema allows, as a graph of nodes: leaves are automata, objects and arrays lie in each other, and may again
// have what they lie in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/text/grammar/byte_dfa.h"

namespace heddle {

// A node, by its place in JsonGrammar::nodes.
using NodeId = u32;
constexpr NodeId kNoNode = UINT32_MAX;

struct JsonProperty {
  NodeId key = kNoNode;  // a leaf: the name in quotes
  NodeId value = kNoNode;
  bool required = false;
  bool operator==(const JsonProperty&) const = default;
};

struct JsonNode {
  enum Kind : u8 { kLeaf, kObject, kArray, kOneOf, kSequence } kind = kLeaf;
  // kLeaf: an automaton; and how many characters a string has, where the automaton does not say so.
  u32 leaf = 0;
  bool counts = false;
  u32 least = 0, most = UINT32_MAX;  // characters, or items of an array
  // kObject: properties come in this order, and then others.
  std::vector<JsonProperty> properties = {};
  NodeId other_key = kNoNode;
  // Values of other properties, or items after the first ones; kNoNode: there are none.
  NodeId others = kNoNode;
  // The first items of an array, the choices of kOneOf, or what follows one another, with nothing between (kSequence).
  std::vector<NodeId> nodes = {};

  bool operator==(const JsonNode&) const = default;
};

struct JsonGrammar {
  // Levels of objects and arrays in a value.
  static constexpr u32 kMostDepth = 32;

  std::vector<JsonNode> nodes;
  std::vector<std::shared_ptr<const ByteDfa>> leaves;
  std::vector<u32> depths;  // for each node, the levels of its flattest value
  NodeId root = kNoNode;
  bool begins_with_spaces = true;  // white space may come before the value

  // Sets `depths`. A node that needs too many levels has no value; throws Error(kUnsupported) where the root is one.
  void measure();
  // Choices of choices become one list, each in it once.
  void flatten();
};

}  // namespace heddle
