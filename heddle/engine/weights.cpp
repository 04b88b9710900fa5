#include "heddle/engine/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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
#include "heddle/engine/upload.h"
#include "heddle/ir/executor/panel_packer.h"
#include "heddle/ir/rules.h"

namespace heddle {
namespace {

// A source whose shape and dtype match what the model asks for.
struct Source {
  const std::byte* data;                                   // null: it stays as it is packed
  bool is_far = false;                                     // it lies in the executor's memory
  DType dtype;                                             // the type of an element, or of a code
  i64 row_stride, col_stride;                              // elements
  std::shared_ptr<std::vector<std::byte>> converted = {};  // owns the data if it is a copy in another dtype
  std::vector<float> scales = {};                          // codes have `groups` for each row
  size_t groups = 0;

  const std::byte* at(i64 row, i64 col) const {
    return data + (row * row_stride + col * col_stride) * bits_of(dtype) / 8;
  }
  PackRow row(i64 row) const {
    return {at(row, 0), col_stride, scales.empty() ? nullptr : &scales[size_t(row) * groups]};
  }
  // The value of an element, and how it comes about.
  std::string text(i64 row, i64 col, i32 group_cols) const {
    const double code = load_number(dtype, at(row, 0), col * col_stride);
    if (scales.empty()) return fmt::format("{}", code);
    const float scale = scales[size_t(row) * groups + size_t(col / group_cols)];
    return fmt::format("{}: its code is {}, with a scale of {}", float(code) * scale, code, scale);
  }
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

void require_shape_of(const WeightSource& wanted, const std::vector<i64>& found, std::vector<i64> shape) {
  if (wanted.all > 0) shape[0] = wanted.all;
  if (joined(found, shape.size()) != shape)
    fail(ErrorCode::kIo, "[{}] has shape {}; the configuration makes it {}", wanted.tensor, found, shape);
}

// `space`: where it may lie; null: it must lie in the host's memory.
Source open_source(const WeightValues& values, const WeightSource& wanted, i32 cols,
                   std::optional<DType> dtype, const MemorySpace* space = nullptr) {
  if (!values.has(wanted.tensor)) return {};
  std::optional<SourceData> far = space ? values.far(wanted.tensor, *space) : std::nullopt;
  if (far && dtype && far->dtype != *dtype) far.reset();
  const SourceData found = far ? *far : values.source(wanted.tensor);
  std::vector<i64> shape = {wanted.rows, cols};
  if (cols == 1) shape = {wanted.rows};
  if (wanted.transposed) std::swap(shape[0], shape[1]);
  const i64 width = shape.size() > 1 ? shape[1] : 1, begin = wanted.begin * width, count = shape[0] * width;
  require_shape_of(wanted, found.shape, shape);
  if (!is_wide_float(found.dtype))
    fail(ErrorCode::kUnsupported, "[{}] is {}; must be f32, f16 or bf16", wanted.tensor, name(found.dtype));
  Source source{.data = found.bytes.data() + begin * size_of(found.dtype),
                .is_far = far.has_value(),
                .dtype = found.dtype,
                .row_stride = cols,
                .col_stride = 1};
  if (dtype && found.dtype != *dtype) convert(source, count, *dtype);
  if (wanted.transposed) source.row_stride = 1, source.col_stride = wanted.rows;
  return source;
}

Source open_codes(const WeightValues& values, const WeightSource& wanted, const WeightSpec& spec) {
  SourceCodes found = values.codes(wanted.tensor);
  require_shape_of(wanted, found.shape, {wanted.rows, spec.cols});
  HEDDLE_CHECK(found.coding == spec.coding && !wanted.transposed);
  Source source{.data = found.bytes.data(),
                .dtype = info_of(found.coding.code).element,
                .row_stride = spec.cols,
                .col_stride = 1,
                .converted = found.own};
  source.data = source.at(wanted.begin, 0);
  const size_t rows = size_t(wanted.all > 0 ? wanted.all : wanted.rows);
  source.groups = found.scales.size() / rows;
  source.scales = std::move(found.scales);
  source.scales.erase(source.scales.begin(),
                      source.scales.begin() + ptrdiff_t(size_t(wanted.begin) * source.groups));
  return source;
}

[[noreturn]] void fail_not_finite(const std::string& tensor, i64 row, i64 col, const std::string& value,
                                  ErrorCode code = ErrorCode::kIo) {
  fail(code, "[{}] element ({}, {}) is {}; weights must be finite", tensor, row, col, value);
}

size_t band_bytes(const Weight& weight) {
  return size_t(weight.panel_bytes()) * size_t(weight.slices());
}

// The content of the memory that a weight is packed to.
enum class Onto {
  kNewPages,
  kAnything,
  kPacked
};  // zeros that nothing has touched; undefined; the weight before

// The first columns of rows in the executor's memory: null for a row that stays as it is packed.
struct FarRows {
  std::vector<const std::byte*> rows;
  i64 step = 0;  // bytes from one column to the next
};

// A matrix, or all matrices of a weight, on the way from its sources to panels.
class Packing {
 public:
  // `space`: where sources may lie, for far_rows() alone; null: pack() needs them in the host's memory.
  Packing(const WeightSpec& spec, const Weight& weight, const WeightValues& values,
          const MemorySpace* space = nullptr)
      : spec_(spec), weight_(weight) {
    for (const WeightSource& source : spec.sources) {
      sources_.push_back(weight.is_coded() ? open_codes(values, source, spec)
                                           : open_source(values, source, spec.cols, spec.dtype, space));
      begins_.push_back(begins_.back() + source.rows);
    }
    for (i32 p = 0; p < weight.panels(); ++p) table_.push_back(u64(p) * u64(weight.panel_bytes()));
    bands_ = weight.panels() / weight.slices();
  }

  const std::vector<u64>& table() const { return table_; }

  // True if some source stays as it is packed.
  bool keeps_some() const {
    return std::ranges::any_of(sources_, [](const Source& source) { return !source.data; });
  }

  // Where all rows lie in the executor's memory. Nothing: some lie elsewhere, or unlike others.
  std::optional<FarRows> far_rows() const {
    FarRows made;
    for (const Source& source : sources_) {
      if (!source.data) continue;
      const i64 step = source.col_stride * size_of(source.dtype);
      if (!source.is_far || (made.step != 0 && made.step != step)) return std::nullopt;
      made.step = step;
    }
    for (i32 at = 0; at < begins_.back(); ++at) {
      const auto [s, row] = find_row(at);
      const Source& source = sources_[s];
      made.rows.push_back(source.data ? source.data + row * source.row_stride * size_of(source.dtype)
                                      : nullptr);
    }
    return made;
  }

  // A band holds the panels of the same rows of a matrix. Bands follow one another.
  size_t bands() const { return size_t(bands_) * size_t(weight_.matrices); }

  // Packs `count` bands from the band `begin` on to memory that begins with it. `beside` is called once, by one of the threads
  // while others pack.
  void pack(int threads, size_t begin, size_t count, std::byte* to, Onto onto,
            const std::function<void()>& beside) const {
    const size_t bytes = band_bytes(weight_);
    // One thread packs a whole large page: if two reached it at the same time, both would clear one.
    const size_t in_job =
        std::max<size_t>(1, std::min(HostMemory::kLargePage / bytes, count / (2 * size_t(threads))));
    parallel_for(1 + (count + in_job - 1) / in_job, threads, [&](size_t job) {
      if (job == 0) return beside();
      const size_t first = (job - 1) * in_job, last = std::min(first + in_job, count);
      if (onto == Onto::kNewPages) touch_large_pages(to, first * bytes, last * bytes);
      for (size_t band = first; band < last; ++band) pack_band(begin + band, to + band * bytes, onto);
    });
  }

 private:
  // Linux clears a large page from its ends towards the byte that was touched. Touching the last byte clears
  // it upwards: 2.5 GB in 0.11 to 0.17 s of a core; downwards it takes 0.23 s (EPYC 9004).
  static void touch_large_pages(std::byte* pages, size_t begin, size_t end) {
    for (size_t at = (begin / HostMemory::kLargePage + 1) * HostMemory::kLargePage; at <= end;
         at += HostMemory::kLargePage)
      *static_cast<volatile std::byte*>(pages + at - 1) = std::byte{0};
  }

  // Packs the slices of `panel_rows` rows of a matrix.
  void pack_band(size_t band, std::byte* to, Onto onto) const {
    const i32 matrix = i32(band) / bands_, panel = i32(band) % bands_, first = panel * weight_.panel_rows,
              last = std::min(first + weight_.panel_rows, weight_.rows());
    const i32 unit = weight_.is_streamed() ? CodePanel::kBlock : weight_.interleave;
    const bool full = last - first == weight_.panel_rows && weight_.cols() % weight_.slice_cols() == 0 &&
                      weight_.slice_cols() % unit == 0;
    if (onto == Onto::kAnything && !full) std::memset(to, 0, band_bytes(weight_));  // what pads it
    const u64* table = table_.data();  // the first band's: each one is like it
    std::vector<PackRow> rows;
    std::vector<std::vector<std::byte>> kept;
    for (i32 r = first; r < last; ++r) {
      const auto [s, row] = find_row(matrix * weight_.rows() + r);
      if (sources_[s].data)
        rows.push_back(sources_[s].row(row));
      else
        rows.push_back({kept.emplace_back(unpack_row(weight_, r - first, to, table)).data(), 1});
    }
    if (kept.size() == rows.size()) return;
    const auto bad = pack_panel(weight_, rows, to, table);
    if (!bad) return;
    const auto [s, row] = find_row(matrix * weight_.rows() + first + bad->row);
    fail_not_finite(spec_.sources[s].tensor, row, bad->col,
                    sources_[s].text(row, bad->col, weight_.group_cols()));
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

// The weights of a graph, by buffer.
std::map<u32, Weight> weights_of(const Graph& graph) {
  std::map<u32, Weight> made;
  for (const Node& node : graph.nodes())
    for (const Part& part : node.parts)
      for (const Field& field : part.op->fields)
        if (field.is_weight() && field.weight(part.args.data()).data.exists()) {
          const Weight weight = field.weight(part.args.data());
          made.insert_or_assign(weight.data.buffer, weight);
        }
  return made;
}

// Bands of a piece that an Upload takes.
size_t bands_in_piece(const Weight& weight) {
  return std::max<size_t>(1, Upload::kPieceBytes / band_bytes(weight));
}

// An upload for pieces of the weights.
Upload upload_of(const std::map<u32, Weight>& weights, MemorySpace& space) {
  size_t most = 0;
  for (const auto& [buffer, weight] : weights)
    most = std::max(most, std::min(size_t(weight.bytes()), bands_in_piece(weight) * band_bytes(weight)));
  return {space, most};
}

// Packs a weight to a space.
void pack_to(MemorySpace& space, std::byte* to, const Packing& packing, const Weight& weight, int threads,
             Upload& upload, const std::function<void()>& beside) {
  const size_t bytes = band_bytes(weight), most = bands_in_piece(weight);
  for (size_t band = 0; band < packing.bands(); band += most) {
    const size_t count = std::min(most, packing.bands() - band);
    std::byte* const piece = upload.piece();
    if (packing.keeps_some()) space.read(piece, to + band * bytes, count * bytes);
    packing.pack(
        threads, band, count, piece, packing.keeps_some() ? Onto::kPacked : Onto::kAnything,
        band == 0 ? beside : [] {});
    upload.send(to + band * bytes, count * bytes);
  }
}

// Writes the elements of a vector whose sources `from` has, and leaves the others.
void put_vector(const VectorSpec& spec, const WeightValues& from, float* to) {
  std::vector<float> values = spec.values;
  std::vector<bool> stays(values.size());
  for (const WeightSource& wanted : spec.sources) {
    const Source source = open_source(from, wanted, 1, std::nullopt);
    for (i32 i = 0; i < wanted.rows; ++i) {
      stays.push_back(!source.data);
      values.push_back(0);
      if (!source.data) continue;
      const std::byte* at = source.data + i64(i) * size_of(source.dtype);
      values.back() = float(load_number(source.dtype, at)) + spec.plus;
      if (!std::isfinite(values.back()))
        fail_not_finite(wanted.tensor, i, 0, fmt::format("{}", values.back()));
    }
    if (source.data) from.forget(wanted.tensor);
  }
  HEDDLE_CHECK((spec.order.empty() ? values.size() : spec.order.size()) == size_t(spec.size));
  for (size_t i = 0; i < size_t(spec.size); ++i) {
    const size_t at = spec.order.empty() ? i : size_t(spec.order[i]);
    if (!stays[at]) to[i] = spec.factors.empty() ? values[at] : values[at] * spec.factors[i];
  }
}

bool has_some(const WeightValues& values, const std::vector<WeightSource>& sources) {
  return std::ranges::any_of(sources, [&](const WeightSource& source) { return values.has(source.tensor); });
}

bool some_lie_in(const MemorySpace& space, const ModelGraph& graph, const WeightValues& values) {
  return std::ranges::any_of(graph.weights, [&](const auto& named) {
    return std::ranges::any_of(named.second.sources, [&](const WeightSource& source) {
      return values.has(source.tensor) && values.far(source.tensor, space);
    });
  });
}

// Throws Error for a tensor of another shape or type than the graph has, and for a number that is not finite. `packer`: looks
// at tensors that lie in `space`; null: the host looks at all.
void require_finite(const ModelGraph& graph, const WeightValues& values, int threads,
                    const MemorySpace* space, PanelPacker* packer) {
  std::set<std::string> seen;
  const auto look = [&](const WeightSource& wanted, i32 cols) {
    if (!seen.insert(wanted.tensor + std::to_string(wanted.begin)).second) return;
    const Source source = open_source(values, wanted, cols, std::nullopt, packer ? space : nullptr);
    if (!source.data) return;
    const i64 count = i64(wanted.rows) * cols, part = 1 << 20;
    if (source.is_far) return packer->look(source.dtype, source.data, count);
    parallel_for(size_t((count + part - 1) / part), threads, [&](size_t job) {
      const i64 begin = i64(job) * part, end = std::min(begin + part, count);
      const std::byte* from = source.data + begin * size_of(source.dtype);
      const auto bad = find_not_finite(source.dtype, from, end - begin);
      if (!bad) return;
      const i64 at = begin + *bad, width = wanted.transposed ? wanted.rows : cols;
      const double value = load_number(source.dtype, source.data, at);
      fail_not_finite(wanted.tensor, at / width, at % width, fmt::format("{}", value),
                      ErrorCode::kInvalidArgument);
    });
  };
  for (const auto& [name, spec] : graph.weights)
    for (const WeightSource& source : spec.sources) {
      if (spec.coding.code != Code::kNone && values.has(source.tensor))
        values.codes(source.tensor);  // throws
      look(source, spec.cols);
    }
  for (const auto& [name, spec] : graph.vectors)
    for (const WeightSource& source : spec.sources) look(source, 1);
  if (packer && !packer->all_finite())
    require_finite(graph, values, threads, nullptr, nullptr);  // which says where
}

}  // namespace

void WeightStore::add(const std::string& name, Storage packed, const std::vector<u64>& panels) {
  const size_t bytes = packed.size();
  Entry entry{std::move(packed), std::nullopt};
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
  const std::map<u32, Weight> weights = weights_of(graph.graph);
  size_t all = 0;
  for (const auto& [buffer, weight] : weights) all += size_t(weight.bytes());
  std::optional<Upload> upload;
  if (space) upload.emplace(upload_of(weights, *space));
  // Unmapping 2.5 GB takes 0.08 s of a core, so one thread does it while others pack the next weight.
  std::set<std::string> packed_tensors;
  const auto forget_packed = [&] {
    for (const std::string& tensor : packed_tensors) model.forget(tensor);
  };
  for (const auto& [b, weight] : weights) {
    const Buffer& buffer = graph.graph.buffers()[b];
    const WeightSpec& spec = graph.weights.at(buffer.name);
    const Packing packing(spec, weight, model);
    for (const WeightSource& source : spec.sources) packed_tensors.erase(source.tensor);
    // The store has it before it is filled: a copy may go on after an exception, until `upload` is gone.
    add(buffer.name, Storage(size_t(buffer.bytes), space, "the weight " + buffer.name), packing.table());
    std::byte* const to = data(buffer.name);
    if (space)
      pack_to(*space, to, packing, weight, threads, *upload, forget_packed);
    else
      packing.pack(threads, 0, packing.bands(), to, Onto::kNewPages, forget_packed);
    packed_tensors.clear();
    for (const WeightSource& source : spec.sources) packed_tensors.insert(source.tensor);
    if (progress) progress(bytes_, all);
    tell_progress({"loading", "bytes", bytes_, all});
  }
  forget_packed();
  if (upload) upload->finish();
  for (const auto& [key, spec] : graph.vectors) {
    HostMemory packed(size_t(spec.size) * 4, "the weight " + key);
    put_vector(spec, model, reinterpret_cast<float*>(packed.data()));
    add(key, Storage(std::move(packed), space), {});
  }
}

void WeightStore::update(const ModelGraph& graph, const WeightValues& values, int threads,
                         const std::function<void()>& before) {
  const std::unique_ptr<PanelPacker> packer =
      space_ && some_lie_in(*space_, graph, values) ? space_->panel_packer() : nullptr;
  require_finite(graph, values, threads, space_, packer.get());
  // All that can fail without a fault of a device comes before the first change.
  std::map<u32, Weight> by_host;
  std::map<u32, std::pair<Weight, FarRows>> by_packer;
  for (const auto& [b, weight] : weights_of(graph.graph)) {
    const WeightSpec& spec = graph.weights.at(graph.graph.buffers()[b].name);
    if (!has_some(values, spec.sources)) continue;
    if (auto far = packer ? Packing(spec, weight, values, space_).far_rows() : std::nullopt)
      by_packer.emplace(b, std::pair(weight, std::move(*far)));
    else
      by_host.emplace(b, weight);
  }
  std::optional<Upload> upload;
  if (space_ && !by_host.empty()) upload.emplace(upload_of(by_host, *space_));
  before();
  const auto to = [&](u32 b) { return data(graph.graph.buffers()[b].name); };
  for (const auto& [b, far] : by_packer) packer->pack(far.first, far.second.rows, far.second.step, to(b));
  const auto forget = [&](const std::vector<WeightSource>& sources) {
    for (const WeightSource& source : sources)
      if (values.has(source.tensor)) values.forget(source.tensor);
  };
  for (const auto& [b, weight] : by_host) {
    const WeightSpec& spec = graph.weights.at(graph.graph.buffers()[b].name);
    const Packing packing(spec, weight, values);
    if (space_)
      pack_to(*space_, to(b), packing, weight, threads, *upload, [] {});
    else
      packing.pack(threads, 0, packing.bands(), to(b), Onto::kPacked, [] {});
    forget(spec.sources);
  }
  if (upload) upload->finish();
  if (packer) packer->finish();
  for (const auto& [key, spec] : graph.vectors) {
    if (!has_some(values, spec.sources)) continue;
    Storage& kept = entries_.at(key).data;
    std::vector<float> numbers(size_t(spec.size));
    kept.read(numbers.data(), kept.size());
    put_vector(spec, values, numbers.data());
    kept.write(numbers.data(), kept.size());
    forget(spec.sources);
  }
}

SourceCodes WeightValues::codes(const std::string& tensor) const {
  fail(ErrorCode::kUnsupported,
       "[{}] stays in memory as codes, which new values are not; load the model with weights = floats to "
       "give it some",
       tensor);
}

std::byte* WeightStore::data(const std::string& name) const {
  return entries_.at(name).data.data();
}

const u64* WeightStore::panels(const std::string& name) const {
  const auto& panels = entries_.at(name).panels;
  return panels ? reinterpret_cast<const u64*>(panels->data()) : nullptr;
}

}  // namespace heddle
