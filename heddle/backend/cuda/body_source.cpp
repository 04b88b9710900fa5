#include "heddle/backend/cuda/body_source.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/args.h>
#include <fmt/format.h>

namespace heddle::cuda {
namespace {

constexpr const char* kProgram = R"({headers}
{block}
namespace heddle::device {{
#include "heddle/tile/math.cuh"
{bodies}
struct AllArgs {{
{arguments}}};
// What stands around a main op. Whether there is a prologue is known at run time only, so that all of it is kept.
struct Chain {{
  const AllArgs& all;
  bool has_prologue() const {{ return all.prologue; }}
  void prologue(Block& block, i32 row, View out) {{
{prologues}  }}
  void epilogues(Block& block, Matrix& fragment) {{
{epilogues}  }}
}};
template <class Body, class Args>
void run(Block& block, const Args& args, const TileCoord& tile, Chain& chain) {{
  if constexpr (requires {{ Body::stream(block, args, tile); }}) Body::stream(block, args, tile);
  if constexpr (requires {{ Body::run(block, args, tile, chain); }})
    Body::run(block, args, tile, chain);
  else
    Body::run(block, args, tile);
}}
extern "C" __global__ void {op}_tile(const AllArgs* all, TileCoord tile) {{
  Block block;
  Chain chain{{*all}};
  run<{op}::Body>(block, all->{op}_args, tile, chain);
}}
}}  // namespace heddle::device
)";

// One line for each op, written with {op} and {args}.
std::string lines(const char* format, const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops)
    text += fmt::format(fmt::runtime(format), fmt::arg("op", op), fmt::arg("args", args_struct(op))) + "\n";
  return text;
}

}  // namespace

std::string args_struct(const std::string& op) {
  std::string name;
  bool first = true;
  for (const char letter : op) {
    if (letter != '_') name += first ? char(std::toupper(letter)) : letter;
    first = letter == '_';
  }
  return name;
}

std::string body_source(const OpSpec& op, std::span<const OpSpec* const> all) {
  std::vector<std::string> used = {op.name}, prologues, epilogues;
  for (const OpSpec* other : all) {
    if (!op.traits.main || other == &op) continue;
    if (other->traits.prologue) prologues.push_back(other->name);
    if (other->traits.epilogue) epilogues.push_back(other->name);
    if (other->traits.prologue || other->traits.epilogue) used.push_back(other->name);
  }
  std::sort(used.begin(), used.end());
  return fmt::format(
      kProgram, fmt::arg("op", op.name), fmt::arg("block", fmt::format("#include \"{}\"", kBlockHeader)),
      fmt::arg("headers", lines("#include \"heddle/ops/{op}/{op}.h\"", used)),
      fmt::arg("bodies", lines("#include \"heddle/ops/{op}/{op}.cuh\"", used)),
      fmt::arg("arguments", "  bool prologue;\n" + lines("  {args} {op}_args;", used)),
      fmt::arg("prologues", lines("    {op}::Body::prologue(block, all.{op}_args, row, out);", prologues)),
      fmt::arg("epilogues", lines("    {op}::Body::epilogue(block, all.{op}_args, fragment);", epilogues)));
}

}  // namespace heddle::cuda
