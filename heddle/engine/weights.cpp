#include "heddle/engine/weights.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/engine/pack.h"
#include "heddle/ir/rules.h"

namespace heddle {
namespace {

// A source whose shape and dtype match what the model asks for.
struct Source {
  const std::byte* data;
  DType dtype;
  i64 row_stride, col_stride;                         // elements
  std::shared_ptr<std::vector<std::byte>> converted;  // owns the data if it is a copy in another dtype
};

// Leading dimensions joined until `rank` are left: a checkpoint may stack the matrices of experts, or the vectors of
// heads.
std::vector<i64> joined(std::vector<i64> shape, size_t rank) {
  while (shape.size() > rank) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape;
}

// Copies `count` elements in a wider dtype, which holds them exactly.
void convert(Source& source, i64 count, DType to) {
  source.converted = std::make_shared<std::vector<std::byte>>(
      make_vector<std::byte>(size_t(count) * size_t(size_of(to)), std::string("a weight in ") + name(to)));
  for (i64 i = 0; i < count; ++i)
    store_number(to, source.converted->data() + i * size_of(to),
                 load_number(source.dtype, source.data + i * size_of(source.dtype)));
  source.data = source.converted->data();
  source.dtype = to;
}

Source open_source(const Model& model, const WeightSource& wanted, i32 cols, std::optional<DType> dtype) {
  const SourceData found = model.source(wanted.tensor);
  std::vector<i64> shape = {wanted.rows, cols};
  if (cols == 1) shape = {wanted.rows};
  if (wanted.transposed) std::swap(shape[0], shape[1]);
  const i64 width = shape.size() > 1 ? shape[1] : 1, begin = wanted.begin * width, count = shape[0] * width;
  if (wanted.all > 0) shape[0] = wanted.all;
  if (joined(found.shape, shape.size()) != shape)
    fail(ErrorCode::kIo, "[{}] has shape {}; the configuration makes it {}", wanted.tensor, found.shape,
         shape);
  if (!is_wide_float(found.dtype))
    fail(ErrorCode::kUnsupported, "[{}] is {}; must be f32, f16 or bf16", wanted.tensor, name(found.dtype));
  Source source{found.bytes.data() + begin * size_of(found.dtype), found.dtype, cols, 1, nullptr};
  if (dtype && found.dtype != *dtype) convert(source, count, *dtype);
  if (wanted.transposed) source.row_stride = 1, source.col_stride = wanted.rows;
  return source;
}

[[noreturn]] void fail_not_finite(const std::string& tensor, i64 row, i64 col, float value) {
  fail(ErrorCode::kIo, "[{}] element ({}, {}) is {}; weights must be finite", tensor, row, col, value);
}

// A matrix, or all matrices of a weight, on the way from its sources to panels.
class Packing {
 public:
  Packing(const WeightSpec& spec, const Weight& weight, const Model& model) : spec_(spec), weight_(weight) {
    for (const WeightSource& source : spec.sources) {
      sources_.push_back(open_source(model, source, spec.cols, spec.dtype));
      begins_.push_back(begins_.back() + source.rows);
    }
    for (i32 p = 0; p < weight.panels(); ++p) table_.push_back(u64(p) * u64(weight.panel_bytes()));
    bands_ = weight.panels() / weight.slices();
  }

  const std::vector<u64>& table() const { return table_; }

  // `beside` is called once, by one of the threads while others pack.
  void pack(int threads, const HostMemory& to, const std::function<void()>& beside) const {
    const size_t bands = size_t(bands_) * size_t(weight_.matrices),
                 bytes = size_t(weight_.panel_bytes()) * size_t(weight_.slices());
    // One thread packs a whole large page: if two reached it at the same time, both would clear one.
    const size_t in_job =
        std::max<size_t>(1, std::min(HostMemory::kLargePage / bytes, bands / (2 * size_t(threads))));
    parallel_for(1 + (bands + in_job - 1) / in_job, threads, [&](size_t job) {
      if (job == 0) return beside();
      const size_t first = (job - 1) * in_job, last = std::min(first + in_job, bands);
      touch_large_pages(to, first * bytes, last * bytes);
      for (size_t band = first; band < last; ++band) pack_band(band, to);
    });
  }

 private:
  // Linux clears a large page from its ends towards the byte that was touched. Touching the last byte clears
  // it upwards: 2.5 GB in 0.11 to 0.17 s of a core; downwards it takes 0.23 s (EPYC 9004).
  static void touch_large_pages(const HostMemory& pages, size_t begin, size_t end) {
    for (size_t at = (begin / HostMemory::kLargePage + 1) * HostMemory::kLargePage; at <= end;
         at += HostMemory::kLargePage)
      *static_cast<volatile std::byte*>(pages.data() + at - 1) = std::byte{0};
  }

  // Packs the slices of `panel_rows` rows of a matrix.
  void pack_band(size_t band, const HostMemory& to) const {
    const i32 matrix = i32(band) / bands_, panel = i32(band) % bands_, first = panel * weight_.panel_rows,
              last = std::min(first + weight_.panel_rows, weight_.rows());
    std::vector<PackRow> rows;
    for (i32 r = first; r < last; ++r) {
      const auto [s, row] = find_row(matrix * weight_.rows() + r);
      const Source& source = sources_[s];
      rows.push_back({source.data + row * source.row_stride * size_of(source.dtype), source.col_stride});
    }
    std::byte* base = to.data() + matrix * weight_.matrix_bytes();
    const auto bad = pack_panel(weight_, rows, base, &table_[size_t(panel * weight_.slices())]);
    if (!bad) return;
    const auto [s, row] = find_row(matrix * weight_.rows() + first + bad->row);
    const PackRow& at = rows[size_t(bad->row)];
    fail_not_finite(spec_.sources[s].tensor, row, bad->col,
                    float(load_number(spec_.dtype, at.data + bad->col * at.step * size_of(spec_.dtype))));
  }

  // The source of a packed row, and its row there.
  std::pair<size_t, i64> find_row(i32 at) const {
    const i32 from = spec_.order.empty() ? at : spec_.order[size_t(at)];
    const size_t s = size_t(std::ranges::upper_bound(begins_, from) - begins_.begin()) - 1;
    return {s, from - begins_[s]};
  }

  const WeightSpec& spec_;
  const Weight weight_;
  std::vector<Source> sources_;
  std::vector<i32> begins_ = {0};  // first row of each source among all
  std::vector<u64> table_;         // offsets of one matrix's panels
  i32 bands_ = 0;                  // bands in one matrix
};

Weight weight_in(const Graph& graph, u32 buffer) {
  Weight found;
  for (const Node& node : graph.nodes())
    for (const Part& part : node.parts)
      for (const Field& field : part.op->fields)
        if (field.is_weight() && field.weight(part.args.data()).data.buffer == buffer)
          found = field.weight(part.args.data());
  HEDDLE_CHECK(found.data.exists());
  return found;
}

}  // namespace

// Keeps what was packed, or moves it to the executor's memory.
void WeightStore::add(const std::string& name, HostMemory packed, const std::vector<u64>& panels) {
  const size_t bytes = packed.size();
  Entry entry{Storage(std::move(packed), space_), std::nullopt};
  if (!panels.empty()) {
    entry.panels.emplace(panels.size() * sizeof(u64), space_, name);
    entry.panels->write(panels.data(), panels.size() * sizeof(u64));
  }
  bytes_ += bytes;
  entries_.emplace(name, std::move(entry));
}

WeightStore::WeightStore(const Model& model, const ModelGraph& graph, int threads, MemorySpace* space,
                         const LoadProgress& progress)
    : space_(space) {
  size_t all = 0;
  for (const Buffer& buffer : graph.graph.buffers())
    if (buffer.kind == BufferKind::kWeight) all += size_t(buffer.bytes);
  // Unmapping 2.5 GB takes 0.08 s of a core, so one thread does it while others pack the next weight.
  std::set<std::string> packed_tensors;
  const auto forget_packed = [&] {
    for (const std::string& tensor : packed_tensors) model.forget(tensor);
  };
  for (u32 b = 0; b < graph.graph.buffers().size(); ++b) {
    const Buffer& buffer = graph.graph.buffers()[b];
    if (buffer.kind != BufferKind::kWeight) continue;
    const WeightSpec& spec = graph.weights.at(buffer.name);
    const Weight weight = weight_in(graph.graph, b);
    HostMemory packed(size_t(buffer.bytes), "the weight " + buffer.name);
    const Packing packing(spec, weight, model);
    for (const WeightSource& source : spec.sources) packed_tensors.erase(source.tensor);
    packing.pack(threads, packed, forget_packed);
    packed_tensors.clear();
    for (const WeightSource& source : spec.sources) packed_tensors.insert(source.tensor);
    add(buffer.name, std::move(packed), packing.table());
    if (progress) progress(bytes_, all);
    tell_progress({"loading", "bytes", bytes_, all});
  }
  forget_packed();
  for (const auto& [key, spec] : graph.vectors) {
    std::vector<float> values = spec.values;
    for (const WeightSource& wanted : spec.sources) {
      const Source source = open_source(model, wanted, 1, std::nullopt);
      for (i32 i = 0; i < wanted.rows; ++i) {
        const std::byte* at = source.data + i64(i) * size_of(source.dtype);
        values.push_back(float(load_number(source.dtype, at)) + spec.plus);
        if (!std::isfinite(values.back())) fail_not_finite(wanted.tensor, i, 0, values.back());
      }
      model.forget(wanted.tensor);
    }
    HEDDLE_CHECK((spec.order.empty() ? values.size() : spec.order.size()) == size_t(spec.size));
    HostMemory packed(size_t(spec.size) * 4, "the weight " + key);
    auto* out = reinterpret_cast<float*>(packed.data());
    for (size_t i = 0; i < size_t(spec.size); ++i)
      out[i] = values[spec.order.empty() ? i : size_t(spec.order[i])];
    add(key, std::move(packed), {});
  }
}

std::byte* WeightStore::data(const std::string& name) const {
  return entries_.at(name).data.data();
}

const u64* WeightStore::panels(const std::string& name) const {
  const auto& panels = entries_.at(name).panels;
  return panels ? reinterpret_cast<const u64*>(panels->data()) : nullptr;
}

}  // namespace heddle
