#include "heddle/engine/weights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/float16.h"
#include "heddle/ir/rules.h"

namespace heddle {

namespace {

constexpr size_t kSlack = 64;                   // bytes that vector loads may read past the end
constexpr size_t kLargePage = size_t{1} << 21;  // of x86-64, and of arm64 where the others have 4 KB

std::byte* map_zeros(size_t bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) fail(ErrorCode::kIo, "[memory] {} bytes are not to be had", bytes);
  return static_cast<std::byte*>(data);
}

// From the begin of a large page on: what lies before the first one takes a fault for each small page.
std::byte* map_large_pages(size_t bytes) {
  const size_t small = size_t(::sysconf(_SC_PAGESIZE)), kept = (bytes + small - 1) / small * small;
  std::byte* data = map_zeros(kept + kLargePage);
  const size_t before = -reinterpret_cast<size_t>(data) % kLargePage;
  if (before > 0) ::munmap(data, before);
  ::munmap(data + before + kept, kLargePage - before);
  ::madvise(data + before, kept, MADV_HUGEPAGE);
  return data + before;
}

}  // namespace

Pages::Pages(size_t bytes, bool sparse) : size_(bytes) {
  const bool large = bytes >= kLargePage;
  data_ = large && !sparse ? map_large_pages(size_ + kSlack) : map_zeros(size_ + kSlack);
  if (large && sparse) ::madvise(data_, size_ + kSlack, MADV_NOHUGEPAGE);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::~Pages() {
  if (data_) ::munmap(data_, size_ + kSlack);
}

Storage::Storage(size_t bytes, MemorySpace* space, bool sparse) : space_(space), size_(bytes) {
  if (!space_) pages_.emplace(bytes, sparse);
  data_ = space_ ? space_->allocate(bytes) : pages_->data();
}

Storage::Storage(Pages filled, MemorySpace* space) : space_(space), size_(filled.size()) {
  if (space_) {
    data_ = space_->allocate(size_);
    space_->write(data_, filled.data(), size_);
  } else {
    data_ = pages_.emplace(std::move(filled)).data();
  }
}

Storage::Storage(Storage&& other) noexcept
    : space_(other.space_),
      pages_(std::move(other.pages_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Storage& Storage::operator=(Storage&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(pages_, other.pages_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Storage::~Storage() {
  if (space_ && data_) space_->release(data_);
}

void Storage::write(const void* from, size_t bytes) {
  HEDDLE_CHECK(bytes <= size_);
  copy_to(space_, data_, from, bytes);
}

void Storage::read(void* to, size_t bytes) const {
  HEDDLE_CHECK(bytes <= size_);
  copy_from(space_, to, data_, bytes);
}

namespace {

float load_float(const std::byte* at, DType dtype) {
  uint16_t half;
  float value;
  switch (dtype) {
    case DType::kBf16:
      std::memcpy(&half, at, 2);
      return bf16_to_float(half);
    case DType::kF16:
      std::memcpy(&half, at, 2);
      return f16_to_float(half);
    default:
      std::memcpy(&value, at, 4);
      return value;
  }
}

// Whether the exponent of a bf16, f16 (u16) or f32 (u32) is not the one of infinity and NaN.
template <class Element>
bool is_finite_bits(Element bits, DType dtype) {
  const Element exponent = sizeof(Element) == 4    ? Element(0x7f800000u)
                           : dtype == DType::kBf16 ? 0x7f80
                                                   : 0x7c00;
  return (bits & exponent) != exponent;
}

// A source whose shape and dtype were compared with what the model asks for.
struct Source {
  const std::byte* data;
  DType dtype;
  i64 row_stride, col_stride;  // elements
};

Source open_source(const Model& model, const WeightSource& wanted, i32 cols, std::optional<DType> dtype) {
  const SourceData found = model.source(wanted.tensor);
  std::vector<i64> shape = {wanted.rows, cols};
  if (cols == 1) shape = {wanted.rows};
  if (wanted.transposed) std::swap(shape[0], shape[1]);
  const i64 begin = shape.size() > 1 ? wanted.begin * shape[1] : wanted.begin;  // elements
  if (wanted.all > 0) shape[0] = wanted.all;
  if (found.shape != shape)
    fail(ErrorCode::kIo, "[{}] has shape {}; the configuration makes it {}", wanted.tensor, found.shape,
         shape);
  if (!is_float(found.dtype) || (dtype && found.dtype != *dtype))
    fail(ErrorCode::kUnsupported, "[{}] is {}; {}", wanted.tensor, name(found.dtype),
         dtype ? fmt::format("all matrices must be {} as the embedding is", name(*dtype))
               : "must be f32, f16 or bf16");
  Source source{found.bytes.data() + begin * size_of(found.dtype), found.dtype, cols, 1};
  if (wanted.transposed) source.row_stride = 1, source.col_stride = wanted.rows;
  return source;
}

void run_parallel(size_t jobs, int threads, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  auto work = [&] {
    for (size_t i; !failed && (i = next++) < jobs;) try {
        job(i);
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
      }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

[[noreturn]] void fail_not_finite(const std::string& tensor, i64 row, i64 col, float value) {
  fail(ErrorCode::kIo, "[{}] element ({}, {}) is {}; weights must be finite", tensor, row, col, value);
}

// One row of a panel: where it comes from, for the message if a value is not finite too.
struct PanelRow {
  const Source* source;
  i64 row;  // of the source
  const std::string* tensor;
};

// Columns [from, to) of a row into place r of a panel that begins at column `first`; false: one is not finite.
template <class Element>
bool pack_cells(const Weight& weight, const PanelRow& row, i32 r, std::array<i32, 3> columns,
                Element* panel) {
  const auto [first, from, to] = columns;
  constexpr i32 kWord = 4 / sizeof(Element);  // elements of a 32-bit word
  const i64 step = row.source->col_stride;
  const auto* in = reinterpret_cast<const Element*>(row.source->data) + row.row * row.source->row_stride;
  bool finite = true;
  i32 k = from;
  if (step == 1 && weight.interleave == kWord) {
    auto* out = reinterpret_cast<std::byte*>(panel) + 4 * i64(r);
    for (i32 i = from; i < to; ++i) finite &= is_finite_bits(in[i], weight.data.dtype);
    for (; k + kWord <= to; k += kWord)
      std::memcpy(out + i64(k - first) / kWord * weight.panel_rows * 4, in + k, 4);
  }
  for (; k < to; ++k) {
    panel[weight.place(r, k - first)] = in[k * step];
    finite &= is_finite_bits(in[k * step], weight.data.dtype);
  }
  return finite;
}

// Names the first value from column `from` on that is not finite.
template <class Element>
[[noreturn]] void fail_not_finite(const PanelRow& row, i32 from, DType dtype) {
  const auto* in = reinterpret_cast<const Element*>(row.source->data) + row.row * row.source->row_stride;
  while (is_finite_bits(in[from * row.source->col_stride], dtype)) ++from;
  const auto* at = reinterpret_cast<const std::byte*>(in + from * row.source->col_stride);
  fail_not_finite(*row.tensor, row.row, from, load_float(at, dtype));
}

// Copies rows into their panel, some columns of all rows at a time so that the lines they share stay in the cache;
// refuses what is not finite.
template <class Element>
void pack_panel(const Weight& weight, std::span<const PanelRow> rows, std::byte* base, const u64* table) {
  constexpr i32 kColumns = 128;  // even: pairs stay together
  for (i32 slice = 0; slice < weight.slices(); ++slice) {
    const i32 first = slice * weight.slice_cols(),
              last = std::min(first + weight.slice_cols(), weight.cols());
    for (i32 from = first; from < last; from += kColumns)
      for (i32 r = 0; r < i32(rows.size()); ++r) {
        const PanelRow& row = rows[size_t(r)];
        const i32 to = std::min(from + kColumns, last);
        if (pack_cells(weight, row, r, {first, from, to}, reinterpret_cast<Element*>(base + table[slice])))
          continue;
        fail_not_finite<Element>(row, from, weight.data.dtype);
      }
  }
}

Weight weight_in(const Graph& graph, u32 buffer) {
  struct Find : ArgVisitor {
    u32 wanted;
    Weight found;
    void tensor(const char*, Tensor&, const char*, Access) override {}
    void weight(const char*, Weight& value, const char*) override {
      if (value.data.buffer == wanted) found = value;
    }
    void attribute(const char*, i32&) override {}
    void attribute(const char*, float&) override {}
  } find;
  find.wanted = buffer;
  for (const Node& node : graph.nodes())
    for (const Part& part : node.parts) part.op->visit(const_cast<std::byte*>(part.args.data()), find);
  HEDDLE_CHECK(find.found.data.exists());
  return find.found;
}

}  // namespace

// Takes what was packed as it is, or moves it to the executor's memory.
void WeightStore::add(const std::string& name, Pages packed, const std::vector<u64>& panels) {
  const size_t bytes = packed.size();
  Entry entry{Storage(std::move(packed), space_), std::nullopt};
  if (!panels.empty()) {
    entry.panels.emplace(panels.size() * sizeof(u64), space_);
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
  for (u32 b = 0; b < graph.graph.buffers().size(); ++b) {
    const Buffer& buffer = graph.graph.buffers()[b];
    if (buffer.kind != BufferKind::kWeight) continue;
    const WeightSpec& spec = graph.weights.at(buffer.name);
    const Weight weight = weight_in(graph.graph, b);
    Pages packed{size_t(buffer.bytes)};
    std::vector<u64> panels;
    for (i32 p = 0; p < weight.panels(); ++p) panels.push_back(u64(p) * u64(weight.panel_bytes()));
    std::vector<Source> sources;
    std::vector<i32> begins = {0};
    for (const WeightSource& source : spec.sources) {
      sources.push_back(open_source(model, source, spec.cols, spec.dtype));
      begins.push_back(begins.back() + source.rows);
    }
    const size_t panel_rows = size_t(weight.panels() / weight.slices());  // of a matrix
    const auto pack = [&](size_t job) {
      const i32 matrix = i32(job / panel_rows), panel = i32(job % panel_rows),
                first = panel * weight.panel_rows;
      std::vector<PanelRow> rows;
      for (i32 r = first; r < std::min(first + weight.panel_rows, weight.rows()); ++r) {
        const i32 at = matrix * weight.rows() + r, from = spec.order.empty() ? at : spec.order[size_t(at)];
        const size_t s = size_t(std::upper_bound(begins.begin(), begins.end(), from) - begins.begin()) - 1;
        rows.push_back({&sources[s], from - begins[s], &spec.sources[s].tensor});
      }
      const auto pack_rows = spec.dtype == DType::kF32 ? pack_panel<uint32_t> : pack_panel<uint16_t>;
      pack_rows(weight, rows, packed.data() + matrix * weight.matrix_bytes(),
                &panels[size_t(panel * weight.slices())]);
    };
    run_parallel(panel_rows * size_t(weight.matrices), threads, pack);
    for (const WeightSource& source : spec.sources) model.forget(source.tensor);
    add(buffer.name, std::move(packed), panels);
    if (progress) progress(bytes_, all);
  }
  for (const auto& [key, spec] : graph.vectors) {
    std::vector<float> values = spec.values;
    for (const WeightSource& wanted : spec.sources) {
      const Source source = open_source(model, wanted, 1, std::nullopt);
      for (i32 i = 0; i < wanted.rows; ++i) {
        const std::byte* at = source.data + i64(i) * size_of(source.dtype);
        values.push_back(load_float(at, source.dtype) + spec.plus);
        if (!std::isfinite(values.back())) fail_not_finite(wanted.tensor, i, 0, values.back());
      }
      model.forget(wanted.tensor);
    }
    HEDDLE_CHECK((spec.order.empty() ? values.size() : spec.order.size()) == size_t(spec.size));
    Pages packed(size_t(spec.size) * 4);
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
