// heddle layout: prints who holds what in the fragments of an instruction, and where the elements of a tile lie on chip, as tables; for
// an op's whole kernel, its launches and the boxes that it copies.
#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include <fmt/ranges.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/near_names.h"
#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {
namespace {

struct LayoutFlags {
  std::string what, config, part = "sums", major = "k";
  i32 span = 128, depth = 64, box = 0, rows = 16, cols = 0;
  bool json = false;
};

// A table that is shown in part: its upper left.
struct Table {
  std::string title;  // what a cell is, too
  i32 rows, cols;
  std::function<std::string(i32 row, i32 col)> cell;
  Json facts;  // for JSON
};

void print_table(const LayoutFlags& flags, const Table& table) {
  constexpr size_t kRowNumber = 5;
  size_t width = 4;
  const i32 shown_rows = std::min(table.rows, flags.rows);
  i32 shown_cols = std::min(table.cols, flags.cols > 0 ? flags.cols : 16);
  for (i32 row = 0; row < shown_rows; ++row)
    for (i32 col = 0; col < shown_cols; ++col) width = std::max(width, table.cell(row, col).size());
  // As many columns as fit, unless a number was asked for.
  if (flags.cols == 0)
    shown_cols = std::min(shown_cols, std::max(1, i32((output_columns() - kRowNumber) / (width + 1))));
  std::string text = table.title + "\n" + std::string(kRowNumber, ' ');
  for (i32 col = 0; col < shown_cols; ++col) text += fmt::format(" {:>{}}", col, width);
  for (i32 row = 0; row < shown_rows; ++row) {
    text += fmt::format("\n{:>4} ", row);
    for (i32 col = 0; col < shown_cols; ++col) text += fmt::format(" {:>{}}", table.cell(row, col), width);
  }
  print(text + "\n");
  if (shown_rows < table.rows || shown_cols < table.cols)
    print("{} of {} rows and {} of {} columns; --rows and --cols show more\n", shown_rows, table.rows,
          shown_cols, table.cols);
}

// All cells, by row.
Json json_of(const Table& table) {
  Json made = table.facts, cells = Json::array();
  for (i32 row = 0; row < table.rows; ++row) {
    Json line = Json::array();
    for (i32 col = 0; col < table.cols; ++col) line.push_back(table.cell(row, col));
    cells.push_back(line);
  }
  made["rows"] = table.rows, made["cols"] = table.cols, made["cells"] = cells;
  return made;
}

void show(const LayoutFlags& flags, const Table& table) {
  flags.json ? print_json(json_of(table)) : print_table(flags, table);
}

Table table_of(const tile::Distribution& who, const std::string& what) {
  return {.title = fmt::format("{}: {} x {}, {} threads hold {} elements each\na cell is thread.element",
                               what, who.rows, who.cols, who.threads(), who.each()),
          .rows = who.rows,
          .cols = who.cols,
          .cell =
              [who](i32 row, i32 col) {
                const tile::Owner owner = who.owner(row + who.rows * col);
                return fmt::format("{}.{}", owner.thread, owner.index);
              },
          .facts = Json::object({{"what", what},
                                 {"cell", "thread.element"},
                                 {"threads", who.threads()},
                                 {"elements_each", who.each()}})};
}

Table table_of(const tile::OperandTile& tile, const std::string& what) {
  return {.title = fmt::format("{}: {} x {}, {} bytes on chip\na cell is bank:byte", what, tile.rows,
                               tile.depth, tile.bytes()),
          .rows = tile.rows,
          .cols = tile.depth,
          .cell =
              [tile](i32 row, i32 k) {
                const i32 at = tile.place(row, k) * tile.element_bytes;
                return fmt::format("{}:{}", at / 4 % 32, at);
              },
          .facts = Json::object({{"what", what}, {"cell", "bank:byte"}, {"bytes", tile.bytes()}})};
}

// The number after `letter`, which is taken off the text.
std::optional<i32> take_number(std::string_view& text, char letter) {
  i32 number = 0;
  if (text.empty() || text[0] != letter) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

struct AtomName {
  const char* name;
  i32 element_bytes;
};
constexpr AtomName kAtomTypes[] = {{"bf16", 2}, {"f16", 2}, {"tf32", 4}, {"e4m3", 1}, {"e5m2", 1}};

// "wgmma.m64n64k16.bf16"; nothing where it is no such name.
std::optional<tile::Atom> parse_atom(std::string_view text) {
  const bool is_group = text.starts_with("wgmma.");
  if (!is_group && !text.starts_with("mma.")) return std::nullopt;
  text.remove_prefix(text.find('.') + 1);
  const std::optional<i32> m = take_number(text, 'm'), n = take_number(text, 'n'), k = take_number(text, 'k');
  if (!m || !n || !k || text.empty()) return std::nullopt;
  for (const AtomName& type : kAtomTypes) {
    if (text.substr(1) != type.name) continue;
    tile::Atom atom =
        is_group ? tile::wgmma_atom(*n, type.element_bytes) : tile::mma_atom(type.element_bytes);
    if (atom.exists() && atom.m == *m && atom.n == *n && atom.k() == *k) return atom;
  }
  return std::nullopt;
}

void print_atom(const LayoutFlags& flags, tile::Atom atom) {
  const std::string what = flags.what + " " + flags.part;
  const auto major = flags.major == "k" ? tile::Major::kK : tile::Major::kOuter;
  require(flags.major == "k" || flags.major == "outer", "[layout] --major is '{}'; must be k or outer",
          flags.major);
  if (flags.part == "sums") return show(flags, table_of(atom.sums(), what));
  if (flags.part == "left") return show(flags, table_of(atom.left_fragment(), what));
  if (flags.part == "right") {
    require(atom.kind == tile::MmaKind::kWarp,
            "[layout] {} reads its right operand on chip: --part right-tile", flags.what);
    return show(flags, table_of(atom.right_fragment(), what));
  }
  const bool is_left = flags.part == "left-tile";
  require(is_left || flags.part == "right-tile",
          "[layout] --part is '{}'; must be sums, left, right, left-tile or right-tile", flags.part);
  require(flags.span == 128 || flags.span == 64 || flags.span == 32 || flags.span == 16,
          "[layout] --span is {}; must be 128, 64, 32 or 16", flags.span);
  require(major == tile::Major::kK || atom.element_bytes == 2,
          "[layout] --major outer is for 16-bit types; {} is not", flags.what);
  const tile::OperandTile tile{is_left ? atom.m : atom.n, flags.depth, atom.element_bytes, major, flags.span};
  require(flags.depth > 0 && tile.exists() && flags.depth % atom.k() == 0,
          "[layout] a tile of {} x {} elements of {} bytes is not made of spans of {} bytes", tile.rows,
          tile.depth, tile.element_bytes, tile.span);
  const tile::Descriptor d = tile::descriptor(tile);
  const i32 step = flags.depth > atom.k() ? tile::step_bytes(tile, 1) : 0;
  Table table = table_of(tile, what);
  table.facts["descriptor"] = Json::object(
      {{"bits", fmt::format("{:#018x}", d.bits())}, {"lead", d.lead}, {"stride", d.stride}, {"step", step}});
  show(flags, table);
  if (!flags.json)
    print("descriptor {:#018x}: lead {} bytes, stride {}; the next {} of k is {} bytes on\n", d.bits(),
          d.lead, d.stride, atom.k(), step);
}

// The plan of the first case that runs as a whole kernel and has this configuration, if one is named.
KernelPlan find_plan(const OpSpec& op, const std::string& config) {
  const KernelTarget target{
      .arch = 90, .multiprocessors = 132, .shared_bytes = 227 << 10, .tensor_maps = true};
  std::string why, known;
  for (Case& test : op.cases()) {
    op.infer(test.args.data());
    KernelPlan first = op.kernel(test.args.data(), target, {});
    if (!first.why_not.empty()) {
      why = first.why_not;
      continue;
    }
    if (config.empty()) return first;
    for (const OpConfig& other : configs_of(op, test.args.data(), {.gpu = true, .kernels = &target})) {
      if (!is_of_kernel(other)) continue;
      if (other.text() == config) return op.kernel(test.args.data(), target, other);
      if (known.find(other.text()) == std::string::npos) known += "\n  " + other.text();
    }
  }
  if (known.empty())
    fail(ErrorCode::kInvalidArgument, "[{}] none of its cases runs as a whole kernel: {}", op.name, why);
  fail(ErrorCode::kInvalidArgument, "[{}] none of its cases has the configuration {}; there are{}", op.name,
       config, known);
}

// A box of a tensor map; nothing where it is no tile of spans.
std::optional<tile::OperandTile> tile_of(const KernelMap& map) {
  constexpr i32 kSpans[] = {16, 32, 64, 128};
  const i32 bytes = i32(size_of(map.dtype)), span = kSpans[size_t(map.swizzle)];
  i32 lines = 1;
  for (i32 d = 1; d < map.rank; ++d) lines *= map.box[size_t(d)];
  const tile::OperandTile tile{lines, map.box[0], bytes, tile::Major::kK, span};
  return map.box[0] * bytes == span && tile.exists() ? std::optional(tile) : std::nullopt;
}

std::string sizes_of(const KernelMap& map) {
  std::string sizes;
  for (i32 d = 0; d < map.rank; ++d) sizes += (d > 0 ? " x " : "") + std::to_string(map.box[size_t(d)]);
  return sizes;
}

Json json_of(const OpSpec& op, const KernelPlan& plan) {
  Json launches = Json::array();
  for (const KernelLaunch& launch : plan.launches) {
    Json boxes = Json::array();
    for (const KernelMap& map : launch.maps) {
      const auto tile = tile_of(map);
      Json box = Json::object({{"sizes", sizes_of(map)}, {"dtype", name(map.dtype)}});
      box["tile"] = tile ? json_of(table_of(*tile, "box")) : Json();
      boxes.push_back(box);
    }
    launches.push_back(Json::object({{"name", launch.name},
                                     {"threads", launch.threads},
                                     {"cluster", launch.cluster},
                                     {"shared_bytes", launch.shared_bytes},
                                     {"boxes", boxes}}));
  }
  return Json::object(
      {{"op", op.name}, {"kernel", plan.file}, {"config", plan.constants.text()}, {"launches", launches}});
}

void show_box(const LayoutFlags& flags, const KernelMap& map) {
  const std::string what =
      fmt::format("box {}, {}, rows of {} elements", flags.box, name(map.dtype), map.box[0]);
  if (const auto tile = tile_of(map))
    print_table(flags, table_of(*tile, what));
  else
    print("{}: {}, words permuted\n", what, sizes_of(map));
}

void show_op(const LayoutFlags& flags, const OpSpec& op) {
  require(op.kernel && op.cases, "[layout] {} has no whole kernel", op.name);
  const KernelPlan plan = find_plan(op, flags.config);
  if (flags.json) return print_json(json_of(op, plan));
  print(wrapped(fmt::format("{}_kernel.{} in configuration {}", op.name, plan.file, plan.constants.text()),
                output_columns(), 4) +
        "\n");
  std::vector<KernelMap> boxes;
  for (const KernelLaunch& launch : plan.launches) {
    print("{}: {} threads, clusters of {}, {} bytes of shared memory\n", launch.name, launch.threads,
          launch.cluster, launch.shared_bytes);
    for (const KernelMap& map : launch.maps) {
      print("  box {}: {} of {}\n", boxes.size(), sizes_of(map), name(map.dtype));
      boxes.push_back(map);
    }
  }
  if (boxes.empty()) return;
  require(flags.box >= 0 && size_t(flags.box) < boxes.size(), "[layout] --box is {}; there are {} boxes",
          flags.box, boxes.size());
  show_box(flags, boxes[size_t(flags.box)]);
}

// Ops whose whole kernels can be shown.
std::vector<std::string> kernel_ops() {
  std::vector<std::string> names;
  for (const OpSpec* op : all_ops())
    if (op->kernel && op->cases) names.push_back(op->name);
  return names;
}

void run(const LayoutFlags& flags) {
  require(flags.rows > 0 && flags.cols >= 0, "[layout] --rows {} must be positive, --cols {} not negative",
          flags.rows, flags.cols);
  if (const std::optional<tile::Atom> atom = parse_atom(flags.what)) return print_atom(flags, *atom);
  if (const OpSpec* op = find_op(flags.what)) return show_op(flags, *op);
  fail(ErrorCode::kInvalidArgument,
       "[layout] '{}' is neither an op nor an instruction{}; an instruction is as wgmma.m64n64k16.bf16 or "
       "mma.m16n8k16.bf16",
       flags.what, did_you_mean(flags.what, kernel_ops()));
}

}  // namespace

void add_layout(CLI::App& app) {
  auto flags = std::make_shared<LayoutFlags>();
  Command command(app, "layout",
                  "Show who holds what in a fragment, and where the elements of a tile lie on chip");
  command.argument(
      "what", &flags->what, "an instruction, such as wgmma.m64n64k16.bf16, or an op with a whole kernel",
      {.required = true,
       .also = fmt::format("wgmma.m64n64k16.bf16, mma.m16n8k16.bf16, {}", fmt::join(kernel_ops(), ", "))});
  command.argument("config", &flags->config,
                   "for an op: a configuration of its kernel, as heddle tune prints it");
  command.argument("--part", &flags->part,
                   "for an instruction: the fragment, or the tile that it reads on chip",
                   {.choices = "sums, left, right, left-tile, right-tile"});
  command.argument("--span", &flags->span, "bytes inside which a tile's words of 16 bytes are permuted",
                   {.choices = "128, 64, 32, 16"});
  command.argument("--major", &flags->major,
                   "which elements of a tile are adjacent: along k, or along m or n",
                   {.choices = "k, outer"});
  command.argument("--depth", &flags->depth, "elements of k that a tile has");
  command.argument("--box", &flags->box, "for an op: the box that is shown as a table");
  command.argument("--rows", &flags->rows, "most rows of the table");
  command.argument("--cols", &flags->cols, "most columns of the table; 0: as many as fit");
  command.argument("--json", &flags->json, "print all cells as JSON");
  command.footer(
      "Examples: heddle layout wgmma.m64n64k16.bf16 --rows 8 --cols 8\n"
      "          heddle layout wgmma.m64n64k16.bf16 --part right-tile --major outer\n"
      "          heddle layout matmul --box 1\n"
      "          heddle layout my_file.py:MyOp, which is python3 -m heddle.layout");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
