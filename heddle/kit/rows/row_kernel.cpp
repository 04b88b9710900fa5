#include "heddle/kit/rows/row_kernel.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "heddle/base/integer.h"
#include "heddle/ir/shape.h"
#include "heddle/kit/rows/parts.h"

namespace heddle {
namespace {

struct Shape {
  i32 threads, row_threads, words;
};

// The default is the first of those with the least room for a row. Those with more than four times as much are no choice.
constexpr Shape kRowShapes[] = {
    {128, 8, 1},   {128, 16, 1},    {128, 32, 1},  {128, 32, 2},    {128, 32, 4},   {128, 128, 1},
    {128, 128, 2}, {256, 256, 1},   {256, 256, 2}, {128, 128, 4},   {512, 512, 1},  {256, 256, 4},
    {512, 512, 2}, {1024, 1024, 1}, {512, 512, 4}, {1024, 1024, 2}, {1024, 1024, 4}};
// Teams of a CTA take turns with the rows of its part.
constexpr Shape kPartShapes[] = {{64, 8, 1},    {64, 16, 1},   {64, 32, 1},   {64, 32, 2},   {64, 64, 1},
                                 {128, 128, 1}, {128, 128, 2}, {256, 256, 1}, {192, 192, 2}, {256, 256, 2},
                                 {512, 512, 1}, {320, 320, 2}, {384, 384, 2}, {448, 448, 2}, {512, 512, 2}};
// A multiprocessor has several CTAs of these for wide rows.
constexpr Shape kSharedPartShapes[] = {{96, 96, 3},   {128, 128, 3}, {160, 160, 3},
                                       {192, 192, 3}, {224, 224, 3}, {256, 256, 3}};
constexpr Shape kClusterShapes[] = {{256, 256, 4}, {512, 512, 4}, {512, 512, 2}};
constexpr Shape kPassShapes[] = {
    {512, 512, 4}, {256, 256, 4}, {512, 512, 2}, {1024, 1024, 2}, {1024, 1024, 4}};
constexpr Shape kElementShapes[] = {{256, 256, 2}, {512, 512, 2}, {128, 128, 2},
                                    {256, 256, 1}, {512, 512, 1}, {128, 128, 4}};
constexpr Shape kFewShapes[] = {{128, 128, 1}, {256, 256, 1}, {256, 256, 2}};
constexpr Shape kTileShapes[] = {{128, 128, 0}, {128, 64, 0}, {64, 128, 0}, {64, 64, 0}};  // rows, columns
constexpr Shape kFewTileShapes[] = {{64, 64, 0}, {128, 64, 0}, {64, 128, 0}};
constexpr Shape kSquareShapes[] = {{128, 128, 0}};
constexpr Shape kElementTileShapes[] = {{64, 64, 0}};
constexpr i32 kClusterThreads[] = {256, 512};
enum Share : i32 { kVec8, kElements, kSplitVec8, kShifted };  // as in kit/rows/row_share.cuh
constexpr i64 kSliceBytes = 64 << 10;  // a CTA has of a row by default: a multiprocessor has three
constexpr i64 kExchangeBytes = 128;    // before it
constexpr i64 kStaticBytes = 1 << 10;  // at least what a kernel has besides
constexpr i64 kFewElements = 1 << 21;  // fill a GPU in small pieces alone
constexpr i32 kMostWords = 12;         // a thread has of all matrices together, by default
constexpr i32 kMostRowBytes = 4 * 16;  // that a thread has of one matrix; more is spilled

const Tensor& first_of(const RowWork& work) {
  return *work.matrices.front();
}
// A row has so many, or a piece of one.
i32 columns_of(const RowWork& work) {
  return work.piece > 0 ? work.piece : first_of(work).last();
}
i32 eights_of(const RowWork& work) {
  return i32(ceil_div(columns_of(work), 8));
}
i64 pieces_of(const RowWork& work) {
  return ceil_div(first_of(work).last(), columns_of(work));
}

bool is_dense(const Tensor& tensor) {
  return tensor.rank < 2 || tensor.size[0] == 1 || tensor.stride[0] == tensor.last();
}
// True if rows lie end to end, and the kernel takes all of them together.
bool is_flat(const RowWork& work) {
  const Tensor& first = first_of(work);
  return work.form == RowForm::kElements && work.row_units == 0 &&
         (work.maps || i64(first.size[0]) * first.last() % 8 == 0) &&
         std::ranges::all_of(work.matrices, [](const Tensor* t) { return is_dense(*t); });
}
// True where rows and their pieces are of `many` elements each, which begin at multiples of 16 bytes or of as many elements.
bool are_of(const RowWork& work, i32 many) {
  const auto whole = [&](const Tensor* t) {
    const i64 unit = many == 8 ? 16 / size_of(t->dtype) : many;
    return t->rank == 0 || (t->last() % many == 0 && (t->rank == 1 || t->stride[0] % unit == 0));
  };
  return columns_of(work) % many == 0 && std::ranges::all_of(work.matrices, whole) &&
         std::ranges::all_of(work.sums, whole);
}
bool takes_fours(const RowWork& work) {
  return work.takes_fours && are_of(work, 4);
}
// True where a row begins or ends inside of its words, and the kernel takes that.
bool is_loose(const RowWork& work) {
  return work.takes_loose && !are_of(work, 8) && !takes_fours(work);
}

i32 widest_element(const RowWork& work) {
  i32 most = 2;
  for (const Tensor* tensor : work.matrices)
    if (tensor->rank > 0) most = std::max(most, i32(size_of(tensor->dtype)));
  return most;
}
// True where a thread has eights of loose rows. Single elements fill its registers with fewer of them, but are faster: with eights,
// rows of 1,001 bf16 take 1.1 (softmax) to 1.8 times as long (the gradient of layer_norm), and rms_norm of 11,045 takes 0.8 (H200).
bool is_shifted(const RowWork& work) {
  const bool few_fit = work.form == RowForm::kParts || widest_element(work) == 2;
  return is_loose(work) && work.takes_shifted && columns_of(work) > (few_fit ? 8192 : 16384);
}

// Bytes of the widest element in registers.
i32 widest(const RowWork& work) {
  return is_loose(work) && !is_shifted(work) ? 4 : widest_element(work);
}

bool holds(const RowWork& work, const Shape& shape) {
  return i64(shape.row_threads) * shape.words >= eights_of(work);
}

// Shifted rows go to memory by way of shared memory that a kernel has without asking.
bool has_room(const RowWork& work, const Shape& shape) {
  constexpr i32 kMostBytes = 32 << 10;
  return !is_shifted(work) || shape.threads * shape.words * 8 * widest(work) <= kMostBytes;
}

// True for a choice of rows in registers.
bool fits(const RowWork& work, const Shape& shape) {
  if (shape.words * 8 * widest(work) > kMostRowBytes || !has_room(work, shape)) return false;
  const i64 room = i64(shape.row_threads) * shape.words;
  return holds(work, shape) && (room <= 4 * i64(eights_of(work)) || room <= 128);
}

// Bytes of an eight of all matrices whose rows are kept on chip.
i64 kept_bytes(const RowWork& work) {
  i64 element = 0;
  for (i32 i = 0; i < work.kept; ++i) element += size_of(work.matrices[size_t(i)]->dtype);
  return 8 * element;
}
// Each CTA of a cluster has so many bytes of a row.
i64 slice_bytes(const RowWork& work, i32 cluster) {
  return kExchangeBytes + ceil_div(eights_of(work), cluster) * kept_bytes(work);
}
i64 most_slice_bytes(const KernelTarget& target) {
  return target.shared_bytes - kStaticBytes;
}

// kParts: bytes of a CTA's rows on their way; loose rows are loaded when they are needed.
i64 place_bytes(const RowWork& work, i64 threads, i64 words) {
  return is_loose(work) ? 0 : threads * words * kept_bytes(work);
}
// Before them is what the CTAs of a cluster tell each other.
i64 team_room_bytes(i64 threads, i64 cluster) {
  constexpr i64 kBarriers = 128, kTurns = 2, kMostValues = 4;
  return cluster == 1 ? 0 : kBarriers + kTurns * kMostValues * (threads / 32) * cluster * i64(sizeof(float));
}
// Rows of which a CTA has elements on chip: those at work, and some on their way. More is slower: on an H100, the gradient of rms_norm
// over 32,768 x 4,096 in bf16 takes 276 us with 32 KiB on their way to a multiprocessor, and 286 with 96.
i64 places_of(const RowWork& work, const Shape& shape, i32 cluster, i32 rows, const KernelTarget& target) {
  constexpr i64 kAhead = 32 << 10, kMostAhead = 3;
  if (is_loose(work)) return work.at_work;
  const i64 of_row = ceil_div(eights_of(work), cluster) * kept_bytes(work),
            of_cta = of_row * shape.threads / shape.row_threads,
            ahead = ceil_div(kAhead,
                             of_cta * parts_at_once(columns_of(work), work.at_work, widest_element(work)));
  return std::min<i64>(work.at_work * rows + std::clamp<i64>(ahead, rows, kMostAhead),
                       (most_slice_bytes(target) - team_room_bytes(shape.threads, cluster)) /
                           place_bytes(work, shape.threads, shape.words));
}
// True where a multiprocessor has several CTAs of wide rows in words of 16 bytes.
bool shares_processor(const RowWork& work) {
  const i32 columns = columns_of(work);
  return !is_loose(work) &&
         parts_at_once(columns, work.at_work, widest_element(work)) > parts_at_once(columns);
}
// On an H200, two rows at a time save 3 to 6 % of the gradients of norms in bf16 of 1,024 and 4,096 columns, and cost 2 % with 8,192
// columns and 6 % in f32 with 4,096. No other card was measured.
bool takes_pairs(const RowWork& work, const Shape& shape, const KernelTarget& target) {
  constexpr i32 kMostColumns = 5120;
  return work.takes_several && !shares_processor(work) && target.fast_memory && !is_loose(work) &&
         widest(work) == 2 && columns_of(work) <= kMostColumns && shape.row_threads == shape.threads &&
         places_of(work, shape, 1, 2, target) >= 2 * work.at_work + 2;
}

// Candidates for kRows, the number of narrow rows that one thread processes together, default first. More
// rows keep more loads in flight and load the weights once. On an H200, layer_norm over 1,048,576 x 128 in
// bf16 takes 136 us with two rows and 147 with one. No other card was measured.
std::vector<i32> rows_at_once(const RowWork& work, const Shape& shape, const KernelTarget& target) {
  if (!work.takes_several || is_loose(work) || widest(work) > 2 || shape.row_threads > 32 || shape.words > 1)
    return {1};
  const bool are_many = i64(first_of(work).size[0]) * first_of(work).last() > kFewElements;
  if (target.fast_memory && are_many) return {2, 4, 1};
  return {1, 2, 4};
}

i32 most_cluster(const KernelTarget& target) {
  constexpr i32 kServer[] = {90, 100};  // these have clusters of 16
  return target.arch < kServer[0] ? 0 : std::ranges::find(kServer, target.arch) != std::end(kServer) ? 16 : 8;
}

// True where a cluster's memory holds at least half of a row that it does not hold.
bool keeps_part(const RowWork& work, const KernelTarget& target) {
  const i32 most = most_cluster(target);
  return work.keeps_part && most > 0 && slice_bytes(work, most) <= 2 * most_slice_bytes(target);
}

// Sizes of clusters that hold a row, the default first; the largest where it keeps a part.
std::vector<i32> clusters(const RowWork& work, const KernelTarget& target) {
  std::vector<i32> all;
  if (work.kept == 0) return all;
  for (i32 cluster = 1; cluster <= most_cluster(target); cluster *= 2)
    if (slice_bytes(work, cluster) <= most_slice_bytes(target)) all.push_back(cluster);
  if (all.empty() && keeps_part(work, target)) all.push_back(most_cluster(target));
  const auto cost = [&](i32 cluster) {
    const bool is_large = slice_bytes(work, cluster) > kSliceBytes + kExchangeBytes;
    return std::pair(is_large, is_large ? -cluster : cluster);
  };
  std::ranges::stable_sort(all, {}, cost);
  return all;
}

OpConfig parts_config(const RowWork& work, const Shape& shape, i32 cluster, i32 rows,
                      const KernelTarget& target) {
  return {{kKernelValue, 1},
          {"threads", shape.threads},
          {"row_threads", shape.row_threads},
          {"words", shape.words},
          {"places", places_of(work, shape, cluster, rows, target)},
          {"rows", rows},
          {"cluster", cluster}};
}

// Clusters whose CTAs have parts of each row in registers, for rows that one CTA does not hold: each as small as it can be.
std::vector<OpConfig> part_clusters(const RowWork& work, const KernelTarget& target) {
  constexpr i32 kMostThreadBytes = 4;  // words of a thread times those of an element
  std::vector<OpConfig> all;
  for (const Shape& shape : {Shape{512, 512, 2}, Shape{512, 512, 1}}) {
    const i32 cluster = ceil_div(eights_of(work), shape.threads * shape.words);
    if (cluster > most_cluster(target) || shape.words * widest(work) > kMostThreadBytes) continue;
    const OpConfig config = parts_config(work, shape, cluster, 1, target);
    all.push_back(all.empty() ? config : config.reordering());
  }
  return all;
}

// Only those that add nothing up may follow the number of rows.
std::span<const Shape> shapes_of(const RowWork& work, RowForm form) {
  const bool few = i64(first_of(work).size[0]) * first_of(work).last() <= kFewElements;
  switch (form) {
    case RowForm::kRows:
      return kRowShapes;
    case RowForm::kParts:
      return shares_processor(work) ? std::span<const Shape>(kSharedPartShapes) : kPartShapes;
    case RowForm::kPasses:
      return kPassShapes;
    case RowForm::kSquares:
      return kSquareShapes;
    case RowForm::kElementTiles:
      return kElementTileShapes;
    case RowForm::kTiles:
      return few ? std::span<const Shape>(kFewTileShapes) : kTileShapes;
    default:
      return few ? std::span<const Shape>(kFewShapes) : kElementShapes;
  }
}

// True for forms whose CTAs have tiles of rows and columns.
bool has_tiles(RowForm form) {
  return form == RowForm::kTiles || form == RowForm::kSquares || form == RowForm::kElementTiles;
}

OpConfig config_of(RowForm form, const Shape& shape) {
  if (has_tiles(form)) return {{kKernelValue, 1}, {"rows", shape.threads}, {"columns", shape.row_threads}};
  return {{kKernelValue, 1}, {"threads", shape.threads}, {"words", shape.words}};
}
OpConfig rows_config(const Shape& shape, i32 rows) {
  if (rows > 1)
    return {{kKernelValue, 1},
            {"threads", shape.threads},
            {"row_threads", shape.row_threads},
            {"words", shape.words},
            {"rows", rows}};
  return {{kKernelValue, 1},
          {"threads", shape.threads},
          {"row_threads", shape.row_threads},
          {"words", shape.words}};
}

// True where the registers of one CTA hold a row.
bool is_held(const RowWork& work) {
  return std::ranges::any_of(kRowShapes, [&](const Shape& shape) { return fits(work, shape); });
}
bool is_long(const RowWork& work) {
  return work.form == RowForm::kRows && work.has_long && !is_held(work);
}

// Chooses how threads share a row (kit/rows/row_share.cuh). Eights of f32 are two words each, which a warp
// reads and writes in halves of sectors; a cluster has them all the same.
Share share_of(const RowWork& work) {
  if (is_loose(work)) return is_shifted(work) && !is_long(work) ? kShifted : kElements;
  const bool has_f32 = std::ranges::any_of(
      work.matrices, [](const Tensor* t) { return t->rank > 0 && t->dtype == DType::kF32; });
  return takes_fours(work) && (!are_of(work, 8) || (has_f32 && is_held(work))) ? kSplitVec8 : kVec8;
}

// Clusters that hold a row in their registers, those that every device takes first.
std::vector<OpConfig> register_clusters(const RowWork& work, const KernelTarget& target) {
  constexpr i32 kPortable = 8;
  std::vector<OpConfig> all, large;
  const Share share = share_of(work);
  if (!work.takes_clusters || (share != kVec8 && share != kShifted)) return all;
  for (const Shape& shape : kClusterShapes) {
    const i32 cluster = ceil_div(eights_of(work), shape.threads * shape.words);
    if (cluster > most_cluster(target) || shape.words * 8 * widest(work) > kMostRowBytes ||
        !has_room(work, shape))
      continue;
    (cluster > kPortable ? large : all)
        .push_back({{kKernelValue, 1},
                    {"threads", shape.threads},
                    {"row_threads", shape.row_threads},
                    {"words", shape.words},
                    {"cluster", cluster}});
  }
  all.insert(all.end(), large.begin(), large.end());
  return all;
}
// The first of them is the default.
std::vector<OpConfig> joined(std::vector<OpConfig> first, const std::vector<OpConfig>& others) {
  first.insert(first.end(), others.begin(), others.end());
  for (size_t i = 1; i < first.size(); ++i) first[i] = first[i].reordering();
  return first;
}

// `kept`: eights that each CTA keeps, where it has more.
std::vector<OpConfig> cluster_configs(const RowWork& work, const KernelTarget& target) {
  std::vector<OpConfig> all;
  for (const i32 cluster : clusters(work, target))
    for (const i32 threads : kClusterThreads) {
      const i64 most = most_slice_bytes(target), kept = (most - kExchangeBytes) / kept_bytes(work);
      OpConfig config{{kKernelValue, 1}, {"threads", threads}, {"cluster", cluster}};
      if (slice_bytes(work, cluster) > most)
        config = {{kKernelValue, 1}, {"threads", threads}, {"cluster", cluster}, {"kept", kept}};
      all.push_back(all.empty() ? config : config.reordering());
    }
  return all;
}

// True for rows that a CTA of 128 threads should have, each with up to eight words. On an H200, layer_norm over rows of 3,000, 4,096,
// 5,120, 6,144 and 8,192 elements in bf16 runs at 0.93, 0.94, 0.92, 0.87 and 0.93 of a copy so, and by more threads at 0.78, 0.88,
// 0.72, 0.76 and 0.88. Other ops and cards were not measured.
constexpr i32 kFewThreads = 128;
bool is_few_threads(const RowWork& work, const KernelTarget& target) {
  constexpr i32 kFewest = 2048, kMost = 8192;
  const i32 columns = columns_of(work);
  return work.is_centred && target.fast_memory && widest_element(work) == 2 && share_of(work) == kVec8 &&
         columns > kFewest && columns <= kMost;
}

std::vector<OpConfig> configs(const RowWork& work, const KernelTarget& target) {
  if (is_long(work) && share_of(work) == kVec8) {
    // Memory on chip holds more than registers, which f32 needs.
    const std::vector<OpConfig> on_chip = cluster_configs(work, target),
                                registers = register_clusters(work, target);
    if (!on_chip.empty() || !registers.empty())
      return widest(work) > 2 ? joined(on_chip, registers) : joined(registers, on_chip);
  }
  const RowForm form = is_long(work) ? RowForm::kPasses : work.form;
  const std::span<const Shape> known = shapes_of(work, form);
  std::vector<Shape> shapes(known.begin(), known.end());
  if (form == RowForm::kRows || form == RowForm::kParts) {
    std::erase_if(shapes, [&](const Shape& shape) {
      return !fits(work, shape) ||
             (form == RowForm::kParts && places_of(work, shape, 1, 1, target) < work.at_work);
    });
    // In f32, layer_norm's gradient over 13,000 x 5,120 takes 200 us with 512 threads, and 206 with 320 (H200).
    if (form == RowForm::kParts && work.at_work > 1 && widest_element(work) > 2)
      std::erase_if(shapes, [](const Shape& shape) { return !std::has_single_bit(u32(shape.threads)); });
    const i64 matrices = std::ranges::count_if(work.matrices, [](const Tensor* t) { return t->rank > 0; });
    const auto cost = [&](const Shape& shape) {
      // One row at work is fastest with 512 threads, two rows with fewer, and so is one of 16 bits where memory is fast: on an H200, the
      // gradient of rms_norm over 32,768 x 4,096 in bf16 takes 256 us with 512 threads, and 217 with 256 of two words.
      const bool by_words =
          form == RowForm::kParts && work.at_work == 1 && (!target.fast_memory || widest(work) > 2);
      return std::tuple(shape.words * matrices > kMostWords, shape.row_threads * shape.words,
                        form == RowForm::kParts && is_loose(work) ? shape.words : 0,
                        by_words ? std::abs(shape.threads - 512) : 0);
    };
    std::ranges::stable_sort(shapes, {}, cost);
    if (is_few_threads(work, target)) {
      const Shape few{kFewThreads, kFewThreads, i32(ceil_div(eights_of(work), kFewThreads))};
      std::erase_if(shapes, [&](const Shape& s) { return s.threads == few.threads && s.words == few.words; });
      shapes.insert(shapes.begin(), few);
    }
  } else if (target.fast_memory && !has_tiles(form) && form != RowForm::kPasses && widest(work) == 2) {
    // Small CTAs keep more under way: on an H200, a copy of 32,768 x 4,096 in bf16 takes 144 us with 256 threads, and 132 with 128.
    std::ranges::stable_sort(shapes, {}, [](const Shape& shape) { return shape.threads * shape.words; });
  }
  std::vector<OpConfig> all;
  for (const Shape& shape : shapes) {
    const bool same = &shape == &shapes.front() || !work.adds_up;  // adds up in the default's order
    const auto add = [&](const OpConfig& config) { all.push_back(same ? config : config.reordering()); };
    if (form == RowForm::kRows) {
      for (const i32 rows : rows_at_once(work, shape, target)) add(rows_config(shape, rows));
      continue;
    }
    if (form != RowForm::kParts) {
      add(config_of(form, shape));
      continue;
    }
    if (takes_pairs(work, shape, target)) add(parts_config(work, shape, 1, 2, target));
    add(parts_config(work, shape, 1, 1, target));
  }
  if ((is_loose(work) && !is_shifted(work)) || work.piece > 0) return all;
  if (form == RowForm::kParts) return all.empty() ? part_clusters(work, target) : all;
  // Where a row is all that a multiprocessor has at once, several have parts of it and of others.
  const bool is_wide =
      form == RowForm::kRows && (shapes.empty() || shapes.front().threads * shapes.front().words >= 4096);
  return is_wide ? joined(register_clusters(work, target), all) : all;
}

std::string misfit(const RowWork& work, const KernelTarget& target) {
  if (!work.misfit.empty() || work.form == RowForm::kElementTiles) return work.misfit;
  const i32 columns = columns_of(work);
  const bool anywhere = share_of(work) != kVec8 || is_flat(work);  // rows may begin and end there
  if (columns % 8 != 0 && !anywhere)
    return fmt::format("a row has {} elements, not a multiple of 8", columns);
  for (const Tensor* tensor : work.matrices) {
    if (tensor->rank == 0) continue;
    const i32 size = size_of(tensor->dtype);
    if (!is_wide_float(tensor->dtype))
      return fmt::format("{} has elements that are no floats", shape_text(*tensor));
    if (tensor->rank > 1 && tensor->stride[0] * size % 16 != 0 && !anywhere)
      return fmt::format("rows of {} begin {} elements apart, not at words of 16 bytes", shape_text(*tensor),
                         tensor->stride[0]);
    if (has_tiles(work.form) && (size != 2 || tensor->last() % 8 != 0))
      return fmt::format("{} is not of elements of 16 bits, in rows of multiples of 8", shape_text(*tensor));
  }
  for (const Tensor* tensor : work.vectors)
    if (tensor->rank > 0 && !is_wide_float(tensor->dtype))
      return fmt::format("{} has elements that are no floats", shape_text(*tensor));
  constexpr i64 kMostPieces = 0x7fffffff;
  if (const i64 pieces = first_of(work).size[0] * pieces_of(work); work.piece > 0 && pieces > kMostPieces)
    return fmt::format("its rows have {} pieces; a kernel counts {}", pieces, kMostPieces);
  if (configs(work, target).empty())
    return fmt::format("a row has {} elements, which registers do not hold", columns);
  return "";
}

// kRows: those that a thread has parts of.
i64 rows_of(const OpConfig& config) {
  return config.contains("rows") ? config.at("rows") : 1;
}

i64 grid_of(const RowWork& work, const OpConfig& config) {
  const i64 rows = first_of(work).size[0] * pieces_of(work), eights = eights_of(work);
  if (work.form == RowForm::kParts)
    return work.sums.front()->size[0] * pieces_of(work) * config.at("cluster");
  if (config.contains("cluster")) return rows * config.at("cluster");
  if (has_tiles(work.form))
    return ceil_div(rows, config.at("rows")) * ceil_div(first_of(work).last(), config.at("columns"));
  const i64 each = config.at("threads") * config.at("words");
  switch (work.form) {
    case RowForm::kRows:
      return is_long(work)
                 ? rows
                 : ceil_div(rows, config.at("threads") / config.at("row_threads") * rows_of(config));
    case RowForm::kPasses:
      return rows;
    case RowForm::kStretches:
      return rows * ceil_div(eights, each);
    default: {
      if (work.row_units > 0) return ceil_div(rows * work.row_units, each);
      return is_flat(work) ? ceil_div(ceil_div(rows * first_of(work).last(), 8), each)
                           : rows * ceil_div(eights, each);
    }
  }
}

// The reason that a row, or a part of it, is read twice.
std::string why_twice(const RowWork& work, const KernelTarget& target) {
  if (work.kept == 0) return "";
  if (share_of(work) != kVec8) return "a row is read twice, because it is no words of 16 bytes";
  const i32 most = most_cluster(target);
  if (most == 0) return "a row is read twice, because the device has no clusters";
  return fmt::format("{} is read twice, because {} bytes for each of {} CTAs are more than {}",
                     keeps_part(work, target) ? "a part of a row" : "a row", slice_bytes(work, most), most,
                     most_slice_bytes(target));
}

KernelPlan plan(const RowWork& work, const KernelTarget& target, const OpConfig& wanted) {
  KernelPlan made{.why_not = misfit(work, target), .file = "sm80", .of_body = work.of_body};
  if (!made.why_not.empty()) return made;
  const OpConfig config = wanted.values().empty() ? configs(work, target).front() : wanted;
  std::string constants = work.kind < 0 ? "" : fmt::format("kind={}", work.kind);
  if (const Share share = share_of(work); share != kVec8)
    constants += fmt::format("{}share={}", constants.empty() ? "" : ",", int(share));
  if (is_flat(work)) constants += fmt::format("{}flat=1", constants.empty() ? "" : ",");
  for (const auto& [name, value] : config.values())
    if (name != kKernelValue) constants += fmt::format("{}{}={}", constants.empty() ? "" : ",", name, value);
  made.constants = OpConfig::parse(constants);
  constexpr i64 kMostCtas = 0x7fffffff;
  const i64 grid = grid_of(work, config);
  if (grid > kMostCtas)
    made.why_not = fmt::format("it would have {} CTAs; a launch takes {}", grid, kMostCtas);
  KernelLaunch launch{.name = is_long(work)                         ? "LongKernel"
                              : work.form == RowForm::kElementTiles ? "ElementKernel"
                                                                    : "Kernel",
                      .grid = u32(grid)};
  if (config.contains("cluster")) launch.cluster = u32(config.at("cluster"));
  if (work.form == RowForm::kParts) {
    const i64 threads = config.at("threads");
    launch.shared_bytes = team_room_bytes(threads, launch.cluster) +
                          config.at("places") * place_bytes(work, threads, config.at("words"));
  } else if (config.contains("cluster") && config.contains("row_threads")) {
    launch.name = "Kernel";
    launch.shared_bytes = team_room_bytes(config.at("threads"), launch.cluster);
  } else if (config.contains("cluster")) {
    launch.name = "ClusterKernel";
    launch.shared_bytes = std::min(slice_bytes(work, i32(launch.cluster)), most_slice_bytes(target));
    if (config.contains("kept")) made.note = why_twice(work, target);
  } else if (is_long(work)) {
    made.note = why_twice(work, target);
  }
  launch.threads = has_tiles(work.form) ? 256 : u32(config.at("threads"));
  made.launches = {launch};
  return made;
}

}  // namespace

void set_row_kernel(OpSpec& op, const RowRule& rule) {
  op.kernel = [rule](const std::byte* args, const KernelTarget& target, const OpConfig& config) {
    constexpr i32 kFirstArch = 80;
    if (target.arch < kFirstArch)
      return KernelPlan{.why_not = "it is written for compute capability 8.0 and later"};
    return plan(rule(args), target, config);
  };
  op.configs = [rule](const std::byte* args, const TilingTarget& target) {
    if (!target.kernels) return std::vector<OpConfig>();
    const RowWork work = rule(args);
    std::vector<OpConfig> all;
    if (misfit(work, *target.kernels).empty()) all = configs(work, *target.kernels);
    return all.size() > 1 ? all : std::vector<OpConfig>();  // one alone is no choice
  };
}

void set_value_kernel(OpSpec& op) {
  set_row_kernel(op, [fields = op.fields](const std::byte* args) {
    RowWork work{.maps = true, .of_body = true, .adds_up = false};
    for (const Field& field : fields) {
      if (field.is_attribute()) {
        if (field.name == "kind") work.kind = field.with_attribute(args, [](auto kind) { return i32(kind); });
      } else if (const Tensor& tensor = field.tensor(args); !field.optional) {
        work.matrices.push_back(&tensor);
      } else if (tensor.exists()) {
        work.misfit = field.name + " is given";
      }
    }
    return work;
  });
}

}  // namespace heddle
