// The tile bodies of the ops, compiled for one kind of block: a table by op name, and the chain that
// composes them at run time.
#pragma once

#include <span>
#include <string_view>

#include "heddle/ir/args.h"

namespace heddle {

template <class Block>
struct Chain;

// The functions of one op's body for blocks of type Block. A function that the body does not have is null.
template <class Block>
struct BodyEntry {
  const char* op;
  void (*stream)(Block&, const std::byte* args, const TileCoord&);
  void (*run)(Block&, const std::byte* args, const TileCoord&, Chain<Block>&);
  void (*prologue)(Block&, const std::byte* args, i32 row, typename Block::View out);
  void (*epilogue)(Block&, const std::byte* args, typename Block::Fragment&);
};

// A call's chain: [prologue] main [epilogues...], each with its bound arguments.
template <class Block>
struct Chain {
  struct Link {
    const BodyEntry<Block>* body;
    const std::byte* args;
  };
  std::span<const Link> links;
  size_t main = 0;

  bool has_prologue() const { return main > 0; }
  void prologue(Block& block, i32 row, typename Block::View out) {
    links[0].body->prologue(block, links[0].args, row, out);
  }
  void epilogues(Block& block, typename Block::Fragment& fragment) {
    for (const Link& link : links.subspan(main + 1)) link.body->epilogue(block, link.args, fragment);
  }
  void stream(Block& block, const TileCoord& tile) {
    if (links[main].body->stream) links[main].body->stream(block, links[main].args, tile);
  }
  void run(Block& block, const TileCoord& tile) {
    links[main].body->run(block, links[main].args, tile, *this);
  }
};

// Fills an entry with the functions that a body has.
template <class Body, class Args, class Block>
constexpr BodyEntry<Block> body_entry(const char* op) {
  BodyEntry<Block> entry{op, nullptr, nullptr, nullptr, nullptr};
  if constexpr (requires(Block& b, const Args& a, const TileCoord& t) { Body::stream(b, a, t); })
    entry.stream = [](Block& b, const std::byte* args, const TileCoord& t) {
      Body::stream(b, as<Args>(args), t);
    };
  if constexpr (requires(Block& b, const Args& a, const TileCoord& t, Chain<Block>& c) {
                  Body::run(b, a, t, c);
                })
    entry.run = [](Block& b, const std::byte* args, const TileCoord& t, Chain<Block>& c) {
      Body::run(b, as<Args>(args), t, c);
    };
  else
    entry.run = [](Block& b, const std::byte* args, const TileCoord& t, Chain<Block>&) {
      Body::run(b, as<Args>(args), t);
    };
  if constexpr (requires(Block& b, const Args& a, typename Block::View v) { Body::prologue(b, a, i32(), v); })
    entry.prologue = [](Block& b, const std::byte* args, i32 row, typename Block::View out) {
      Body::prologue(b, as<Args>(args), row, out);
    };
  if constexpr (requires(Block& b, const Args& a, typename Block::Fragment& f) { Body::epilogue(b, a, f); })
    entry.epilogue = [](Block& b, const std::byte* args, typename Block::Fragment& f) {
      Body::epilogue(b, as<Args>(args), f);
    };
  return entry;
}

template <class Block>
const BodyEntry<Block>* find_body(std::span<const BodyEntry<Block>> table, std::string_view op) {
  for (const BodyEntry<Block>& entry : table)
    if (op == entry.op) return &entry;
  return nullptr;
}

}  // namespace heddle
