#include "heddle/ir/program/compare.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/program/print.h"

namespace heddle {
namespace {

// A table: for each key, its value in words.
using Table = std::map<std::string, std::string>;

std::string line(std::string_view part, const std::string& text) {
  return fmt::format("  {:<10} {}\n", part, text);
}

std::string list_of(const std::vector<std::string>& names, size_t most) {
  const size_t shown = std::min(names.size(), most);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + ptrdiff_t(shown), ", "));
  return shown < names.size() ? text + ", ..." : text;
}

std::string compare_tables(std::string_view part, const Table& first, const Table& second, size_t most) {
  std::vector<std::string> only_first, only_second, changed;
  for (const auto& [key, text] : first)
    if (const auto other = second.find(key); other == second.end())
      only_first.push_back(key);
    else if (other->second != text)
      changed.push_back(key);
  for (const auto& [key, text] : second)
    if (!first.contains(key)) only_second.push_back(key);
  std::string all;
  if (!only_first.empty())
    all += line(part, fmt::format("{} only in the first: {}", only_first.size(), list_of(only_first, most)));
  if (!only_second.empty())
    all +=
        line(part, fmt::format("{} only in the second: {}", only_second.size(), list_of(only_second, most)));
  if (!changed.empty())
    all += line(part, fmt::format("{} changed: {}", changed.size(), list_of(changed, most)));
  for (size_t i = 0; i < std::min(changed.size(), most); ++i)
    all += fmt::format("    {}\n      first   {}\n      second  {}\n", changed[i], first.at(changed[i]),
                       second.at(changed[i]));
  return all;
}

// The parts of a program that are a single number.
Table sizes_of(const Program& p) {
  Table table = {{"name", p.name}, {"arena bytes", std::to_string(p.arena_bytes)}};
  const auto add = [&](const char* name, const auto& value) { table[name] = fmt::format("{}", value); };
  Topology::visit(p.topology, add);
  StepShape::visit(p.shape, add);
  return table;
}

Table opcodes_of(const Program& p) {
  Table table;
  for (const Opcode& opcode : p.opcodes)
    table[opcode.text()] = fmt::format("main op {}, arguments {:016x}", opcode.main, opcode.hash);
  return table;
}

Table buffers_of(const Program& p) {
  Table table;
  for (const auto& [info, offset] : p.buffers)
    table[info.name] =
        fmt::format("{}, {} bytes{}{}", name(info.kind), info.bytes, info.resident ? ", resident" : "",
                    offset >= 0 ? fmt::format(", arena {}", offset) : "");
  return table;
}

Table calls_of(const Program& p) {
  Table table;
  for (const Call& call : p.calls)
    table[call.name] = fmt::format("{} on {}", p.opcodes[call.opcode].text(),
                                   call.live == LiveRows::kAll    ? "all rows"
                                   : call.live == LiveRows::kRows ? "live rows"
                                                                  : "wanted rows");
  return table;
}

// Lists the arguments of calls, such as "layers.0.o: linear.x". Buffers appear by name, because one new
// buffer shifts all indices.
struct ListArgs {
  const Program& program;
  Table& table;
  std::string where;
  ListArgs(const Program& p, Table& t) : program(p), table(t) {}

  std::string buffer_name(u32 buffer) const {
    return buffer < program.buffers.size() ? program.buffers[buffer].info.name : "no buffer";
  }
  std::string tensor_text(const Tensor& t) const {
    const std::span sizes(t.size, size_t(t.rank));
    const std::span strides(t.stride, size_t(t.rank));
    return fmt::format("{} {} by {} of {} + {}", name(t.dtype), sizes, strides, buffer_name(t.buffer),
                       t.offset);
  }
  std::string weight_text(const Weight& w) const {
    return fmt::format("{} in panels of {} x {}, interleave {}, {} matrices, table {}, code {} by {}",
                       tensor_text(w.data), w.panel_rows, w.panel_cols, w.interleave, w.matrices,
                       buffer_name(w.table_buffer), name(w.coding.code), w.coding.group);
  }
  void add(const Field& field, const std::byte* args) {
    if (!field.is_attribute() && field.elements(args).rank == 0) return;
    table[fmt::format("{}.{}", where, field.name)] = field.is_attribute() ? attribute_text(field, args)
                                                     : field.is_weight()  ? weight_text(field.weight(args))
                                                                          : tensor_text(field.tensor(args));
  }
};

// Lists calls that the other program has too, by name and chain.
Table arguments_of(const Program& p, const Table& mine, const Table& other) {
  Table table;
  ListArgs list(p, table);
  for (const Call& call : p.calls) {
    if (const auto same = other.find(call.name); same == other.end() || same->second != mine.at(call.name))
      continue;
    Node node = p.node_of(call);
    for (const Part& part : node.parts) {
      list.where = fmt::format("{}: {}", call.name, part.op->name);
      for (const Field& field : part.op->fields) list.add(field, part.args.data());
    }
  }
  return table;
}

Table homes_of(const Program& p) {
  Table table;
  for (const Home& home : p.homes) {
    const std::string buffer = home.buffer < p.buffers.size() ? p.buffers[home.buffer].info.name
                                                              : fmt::format("row share {}", home.buffer);
    table[fmt::format("{} [{}, {}) of each {}", buffer, home.begin, home.end, home.period)] =
        fmt::format("worker {}", home.worker);
  }
  return table;
}

// Tiles that do the same work (a call's name and the tile's place), and the workers that have them.
std::map<std::string, std::vector<u32>> tiles_of(const Program& p) {
  std::map<std::string, std::vector<u32>> tiles;
  for (u32 w = 0; w < p.workers.size(); ++w)
    for (const Instruction& i : p.workers[w])
      if (i.opcode < kNopOpcode && i.call < p.calls.size())
        tiles[fmt::format("{} {}", p.calls[i.call].name, std::span(i.tile))].push_back(w);
  return tiles;
}

std::string compare_tiles(const Program& first, const Program& second) {
  const auto a = tiles_of(first), b = tiles_of(second);
  size_t both = 0, moved = 0, only_first = 0;
  for (const auto& [key, workers] : a) {
    const auto other = b.find(key);
    if (other == b.end()) {
      ++only_first;
      continue;
    }
    ++both;
    if (other->second != workers) ++moved;
  }
  const size_t only_second = b.size() - both;
  if (moved + only_first + only_second == 0) return "";
  return line("tiles",
              fmt::format("{} in both, {} of them on another worker; {} only in the first, {} only in "
                          "the second",
                          both, moved, only_first, only_second));
}

// Counters have different numbers in any two programs that differ. So streams are compared by their work, and
// waits only where the work agrees.
std::string compare_streams(const Program& first, const Program& second) {
  const size_t workers = std::min(first.workers.size(), second.workers.size());
  size_t differ = 0;
  std::string text;
  for (size_t w = 0; w < workers; ++w) {
    const auto &a = first.workers[w], &b = second.workers[w];
    size_t at = 0;
    while (at < std::min(a.size(), b.size()) &&
           print_instruction(first, a[at]) == print_instruction(second, b[at]))
      ++at;
    if (at == a.size() && at == b.size()) continue;
    if (differ++ > 0) continue;
    const auto show = [&](const Program& p, const std::vector<Instruction>& stream) {
      return at < stream.size() && stream[at].opcode != kEndOpcode ? print_instruction(p, stream[at])
                                                                   : "its end";
    };
    text = fmt::format("    worker {}, instruction {}\n      first   {}\n      second  {}\n", w, at,
                       show(first, a), show(second, b));
  }
  if (differ == 0) return "";
  return line("streams", fmt::format("{} of {} workers differ; the first:", differ, workers)) + text;
}

std::string totals_text(const Program& p) {
  std::string text;
  for (const CounterInfo& counter : p.counters) text += fmt::format("{} ", counter.total);
  return text;
}

}  // namespace

std::string print_differences(const Program& first, const Program& second, size_t most) {
  if (serialise_program(first) == serialise_program(second)) return "";
  const Table calls = calls_of(first), other_calls = calls_of(second);
  std::string text = compare_tables("sizes", sizes_of(first), sizes_of(second), most) +
                     compare_tables("opcodes", opcodes_of(first), opcodes_of(second), most) +
                     compare_tables("buffers", buffers_of(first), buffers_of(second), most) +
                     compare_tables("calls", calls, other_calls, most) +
                     compare_tables("arguments", arguments_of(first, calls, other_calls),
                                    arguments_of(second, other_calls, calls), most) +
                     compare_tables("homes", homes_of(first), homes_of(second), most);
  if (totals_text(first) != totals_text(second))
    text += line("counters", fmt::format("{} in the first, {} in the second", first.counters.size(),
                                         second.counters.size()));
  text += compare_tiles(first, second) + compare_streams(first, second);
  if (text.empty()) text = line("order", "the same tables, numbered in another order");
  return text;
}

}  // namespace heddle
