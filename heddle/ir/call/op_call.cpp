#include "heddle/ir/call/op_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "heddle/ir/rules.h"

namespace heddle {
namespace {

constexpr i64 kMostElements = i64{1} << 30;  // limit of one dimension: threads count past its end

std::string range_text(std::span<const i64> values) {
  std::string text;
  for (const i64 value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

bool is_empty(const Tensor& tensor) {
  return std::find(tensor.size, tensor.size + tensor.rank, 0) != tensor.size + tensor.rank;
}

// True for a matrix whose columns are contiguous, but not its rows.
bool lies_in_columns(const TensorRef& ref) {
  const size_t rank = ref.size.size();
  return rank >= 2 && ref.stride.size() == rank && ref.stride[rank - 2] == 1 && ref.stride[rank - 1] != 1;
}

}  // namespace

std::string MemoryPlace::text() const {
  return kind == Kind::kHost ? "the host" : kind == Kind::kGpu ? fmt::format("GPU {}", device) : "unknown";
}

Tensor tensor_of(std::string_view op, std::string_view argument, const TensorRef& ref,
                 const MemoryPlace& where) {
  // Texts are made only for a tensor that is refused.
  const auto must = [&](bool ok, auto&& why) {
    if (!ok) fail(ErrorCode::kInvalidArgument, "[{}] {} {}", op, argument, why());
  };
  const auto shape = [&] { return fmt::format("is {} {}", name(ref.dtype), range_text(ref.size)); };
  const bool known =
      ref.place.kind != MemoryPlace::Kind::kUnknown && where.kind != MemoryPlace::Kind::kUnknown;
  must(!known || ref.place == where,
       [&] { return fmt::format("is memory of {}; the call runs on {}", ref.place.text(), where.text()); });
  const size_t rank = ref.size.size();
  must(rank >= 1 && rank <= kMaxRank,
       [&] { return fmt::format("{}; must have 1 to {} dimensions", shape(), kMaxRank); });
  must(ref.stride.empty() || ref.stride.size() == rank, [&] {
    return fmt::format("has strides {} for sizes {}; must be as many", range_text(ref.stride),
                       range_text(ref.size));
  });
  Tensor tensor{.data = static_cast<u8*>(ref.data), .buffer = 0, .dtype = ref.dtype, .rank = u8(rank)};
  i64 dense = 1;
  for (size_t d = rank; d-- > 0;) {
    must(ref.size[d] >= 0 && ref.size[d] <= kMostElements,
         [&] { return fmt::format("{}; a dimension must have 0 to {} elements", shape(), kMostElements); });
    tensor.size[d] = i32(ref.size[d]);
    tensor.stride[d] = ref.stride.empty() ? dense : ref.stride[d];
    dense *= std::max<i64>(ref.size[d], 1);
  }
  // The stride of a dimension with one element is never used.
  if (tensor.size[rank - 1] <= 1) tensor.stride[rank - 1] = 1;
  must(tensor.stride[rank - 1] == 1, [&] {
    return fmt::format(
        "has strides {}; elements of the last dimension must lie side by side (stride 1): copy it first",
        range_text(ref.stride));
  });
  return tensor;
}

CallArgs::CallArgs(const OpSpec& op, const MemoryPlace& where) : op_(op), where_(where), args_(op.defaults) {}

const Field& CallArgs::field(std::string_view name, FieldKind kind) const {
  std::string known;
  for (const Field& field : op_.fields) {
    if (field.kind != kind) continue;
    if (field.name == name) return field;
    known += (known.empty() ? "" : ", ") + field.name;
  }
  fail(ErrorCode::kInvalidArgument, "[{}] has no {} {}; it has {}", op_.name,
       kind == FieldKind::kTensor ? "tensor" : "attribute", name, known.empty() ? "none" : known);
}

CallArgs& CallArgs::set(std::string_view name, const TensorRef& tensor) {
  const Field& argument = field(name, FieldKind::kTensor);
  const bool transposed = argument.is_matrix() && lies_in_columns(tensor);
  TensorRef stored = tensor;
  std::vector<i64> size, stride;
  if (transposed) {
    size.assign(tensor.size.begin(), tensor.size.end());
    stride.assign(tensor.stride.begin(), tensor.stride.end());
    std::swap(size[size.size() - 2], size.back());
    std::swap(stride[stride.size() - 2], stride.back());
    stored.size = size, stored.stride = stride;
  }
  argument.tensor(args_.data()) = tensor_of(op_.name, name, stored, where_);
  if (argument.is_matrix())
    std::memcpy(args_.data() + argument.transposed_at, &transposed, sizeof transposed);
  return *this;
}

CallArgs& CallArgs::set(std::string_view name, const AttributeValue& value) {
  set_attribute(op_.name, field(name, FieldKind::kAttribute), args_.data(), value);
  return *this;
}

namespace {

// The dimensions of a tensor, with their names in its field; none if the op's rules will refuse its rank.
template <class F>
void each_dim(const Field& field, const std::byte* args, F&& f) {
  if (field.elements(args).rank != field.dims.size()) return;
  const std::vector<FieldDim> dims = field.dims_of(args);
  for (size_t d = 0; d < dims.size(); ++d) f(d, dims[d]);
}

using EmptyDims = std::map<std::string, std::string>;  // dimension -> the argument in which it is empty

// Gives empty dimensions one element while the op's rules look at the call, because the rules do not expect
// empty ones. Returns those that it found.
EmptyDims fill_empty(const OpSpec& op, std::byte* args) {
  EmptyDims empty;
  for (const Field& field : op.fields)
    if (!field.is_attribute())
      each_dim(field, args, [&](size_t d, const FieldDim& dim) {
        if (field.elements(args).size[d] == 0 && dim.name != ".") empty.emplace(dim.name, field.name);
      });
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    Tensor& tensor = field.elements(args);
    each_dim(field, args, [&](size_t d, const FieldDim& dim) {
      const auto found = empty.find(dim.name);
      if (found == empty.end()) return;
      require(tensor.size[d] == 0, "[{}] {} is {}; dimension {} must be 0, as {} has none of it", op.name,
              field.name, shape_text(tensor), d, found->second);
      tensor.size[d] = dim.scale;
    });
  }
  return empty;
}

// An output as the rules made it, with its empty dimensions.
Tensor emptied(const Field& field, const std::byte* args, const EmptyDims& empty) {
  Tensor tensor = field.tensor(args);
  each_dim(field, args, [&](size_t d, const FieldDim& dim) {
    if (empty.contains(dim.name)) tensor.size[d] = 0;
  });
  return tensor;
}

// Ops with a dimension over which they add up. Their references are right for none of it: 0, or for attention without keys 0
// and a log of -inf. Others divide by the number of elements, or read the first one.
constexpr std::pair<std::string_view, std::string_view> kSumsOfNothing[] = {
    {"bmm", "K"},
    {"column_sum", "M"},
    {"flash_attention", "T"},
    {"matmul", "K"},
    {"scaled_mm", "K"},
    {"flash_attention_backward", "S"},
    {"flash_attention_backward", "T"}};

bool is_known_of_nothing(const OpSpec& op, const EmptyDims& empty) {
  return std::ranges::all_of(empty, [&](const auto& dim) {
    return std::ranges::any_of(
        kSumsOfNothing, [&](const auto& sum) { return sum.first == op.name && sum.second == dim.first; });
  });
}

// Checks what no rule of an op checks, because bodies rely on strides.
void check_layout(const OpSpec& op, const Field& field, const Tensor& tensor) {
  if (tensor.rank == 0) return;
  const int last = tensor.rank - 1;
  require(tensor.size[last] == 1 || tensor.stride[last] == 1,
          "[{}] {} is {} with stride {} in its last dimension; must be 1", op.name, field.name,
          shape_text(tensor), tensor.stride[last]);
  if (!field.writes()) return;
  i64 inner = 1;  // elements from one index of the dimension to the next
  for (int d = last; d >= 0; --d) {
    require(tensor.size[d] == 1 || std::abs(tensor.stride[d]) >= inner,
            "[{}] {} is {} with stride {} in dimension {}; must be {} or more, as its rows would overlap",
            op.name, field.name, shape_text(tensor), tensor.stride[d], d, inner);
    inner += i64(tensor.size[d] - 1) * std::abs(tensor.stride[d]);
  }
}

}  // namespace

bool needs_step_record(const OpSpec& op) {
  return std::any_of(op.fields.begin(), op.fields.end(), [](const Field& field) {
    return field.is_tensor() && field.dtypes == std::vector{DType::kU8};  // bytes belong to the step record
  });
}

void CheckedCall::require_outputs(const OpSpec& op) const {
  require(of_nothing.empty(), "[{}] {}, and an input that it is made of has no elements; must be empty too",
          op.name, of_nothing);
  require(missing.empty(), "[{}] {}", op.name, missing);
}

void mark_given(const OpSpec& op, std::byte* args) {
  for (const Field& field : op.fields)
    if (!field.is_attribute() && field.elements(args).rank > 0) field.elements(args).buffer = 0;
}

CheckedCall check_call(const OpSpec& op, const std::byte* args) {
  if (needs_step_record(op))
    fail(ErrorCode::kUnsupported, "[{}] reads the step record of a program; it cannot be called by itself",
         op.name);
  CheckedCall call{.args = {args, args + op.args_size()}};
  std::byte* const checked = call.args.data();
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    const Tensor& tensor = field.elements(checked);
    require(tensor.rank > 0 || field.optional || field.writes(), "[{}] {} is missing; the op reads {} [{}]",
            op.name, field.name, field.name, field.dims_text);
  }
  mark_given(op, checked);
  const std::vector<std::byte> given = call.args;
  const EmptyDims empty = fill_empty(op, checked);
  require_dtypes(op.name, op.fields, checked);
  op.infer(checked);
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    const Tensor& tensor = field.elements(checked);
    if (field.elements(given.data()).rank == 0 && tensor.rank > 0)
      call.missing = fmt::format("{} is missing; it is {}", field.name, shape_text(tensor));
    else
      check_layout(op, field, tensor);
  }
  if (empty.empty()) return call;
  const std::vector<std::byte> made = std::exchange(call.args, given);
  call.is_empty = true;
  for (const Field& field : op.fields)
    if (field.writes() && field.elements(given.data()).rank == 0)
      field.tensor(call.args.data()) = emptied(field, made.data(), empty);
  for (const Field& field : op.fields) {
    if (!field.writes()) continue;
    const Tensor& tensor = field.tensor(call.args.data());
    if (tensor.rank == 0 || is_empty(tensor)) continue;
    call.of_nothing = fmt::format("{} is {}", field.name, shape_text(tensor));
    if (!is_known_of_nothing(op, empty)) call.require_outputs(op);
  }
  return call;
}

CallLayout::CallLayout(const OpSpec& op) {
  static_assert(offsetof(Tensor, data) == 0);
  constexpr u32 kRest = offsetof(Tensor, dtype);  // the part after the address and the buffer
  for (const Field& field : op.fields) {
    const u32 at = u32(field.offset);
    if (field.is_attribute()) {
      words_.push_back({at, u32(field.size())});
      continue;
    }
    words_.push_back({at + kRest, sizeof(Tensor) - kRest});
    addresses_.push_back({field.name, at, at, field.is_weight() ? kWeightAlignment : 0});
    if (!field.is_weight()) continue;
    constexpr u32 kForm = offsetof(Weight, panel_rows);
    words_.push_back({at + kForm, offsetof(Weight, coding) + sizeof(Weight::coding) - kForm});
    addresses_.push_back({field.name + ".table", at, at + u32(offsetof(Weight, table)), alignof(u64)});
  }
}

// Products of neighbouring words do not wait for each other, as a chain of them would: a call has some forty words.
u64 CallLayout::hash(const std::byte* args) const {
  constexpr u64 kMix = 0x9e3779b97f4a7c15u;
  constexpr u32 kTwo = 16;  // bytes of two words
  u64 hash = 0;
  for (const Words& words : words_) {
    u64 sum = 0, salt = kMix, two[2];
    const auto add = [&](const std::byte* from, u32 bytes) {
      std::memcpy(two, from, bytes);
      sum += (two[0] ^ salt) * (two[1] ^ ~salt), salt += kMix;
    };
    const std::byte* const from = args + words.offset;
    const u32 whole = words.bytes / kTwo * kTwo, left = words.bytes - whole;
    for (u32 at = 0; at < whole; at += kTwo) add(from + at, kTwo);
    if (left > 0) two[0] = two[1] = 0, add(from + whole, left);
    hash = (hash ^ sum) * kMix;
    hash ^= hash >> 29;
  }
  return hash;
}

bool CallLayout::same(const std::byte* a, const std::byte* b) const {
  for (const Words& words : words_)
    if (std::memcmp(a + words.offset, b + words.offset, words.bytes) != 0) return false;
  return true;
}

u64 CallLayout::value_of(const Address& address, const std::byte* args) {
  u64 value;
  std::memcpy(&value, args + address.pointer, sizeof value);
  return value;
}

bool CallLayout::has_addresses(const std::byte* args) const {
  return std::ranges::all_of(addresses_, [&](const Address& address) {
    const Tensor& tensor = tensor_at(address, args);
    const u64 at = value_of(address, args);
    return tensor.rank == 0 || (at != 0 && at % alignment_of(address, tensor) == 0);
  });
}

u32 CallLayout::misaligned(const std::byte* args, u64 bytes) const {
  u32 found = 0;
  for (size_t i = 0; i < addresses_.size(); ++i)
    if (tensor_at(addresses_[i], args).rank > 0 && value_of(addresses_[i], args) % bytes != 0)
      found |= 1u << std::min<size_t>(i, 15);
  return found;
}

std::vector<const void*> CallLayout::addresses(const std::byte* args) const {
  std::vector<const void*> all;
  for (const Address& address : addresses_)
    all.push_back(tensor_at(address, args).rank > 0 ? reinterpret_cast<const void*>(value_of(address, args))
                                                    : nullptr);
  return all;
}

void CallLayout::say_why(const OpSpec& op, const std::byte* args) const {
  for (const Address& address : addresses_) {
    const Tensor& tensor = tensor_at(address, args);
    if (tensor.rank == 0) continue;
    const u64 at = value_of(address, args), alignment = alignment_of(address, tensor);
    require(at != 0, "[{}] {} has no address; its tensor is {}", op.name, address.name, shape_text(tensor));
    require(at % alignment == 0, "[{}] {} begins at address {:#x}; must be a multiple of {} for {}", op.name,
            address.name, at, alignment, shape_text(tensor));
  }
  fail(ErrorCode::kInternal, "[{}] all addresses are right", op.name);
}

}  // namespace heddle
