#include "heddle/ir/op_call.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "heddle/ir/rules.h"

namespace heddle {
namespace {

constexpr i64 kMostElements = i64{1} << 30;  // of one dimension: threads count past its end

std::string range_text(std::span<const i64> values) {
  std::string text;
  for (const i64 value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

bool is_empty(const Tensor& tensor) {
  return std::find(tensor.size, tensor.size + tensor.rank, 0) != tensor.size + tensor.rank;
}

}  // namespace

std::string MemoryPlace::text() const {
  return kind == Kind::kHost ? "the host" : kind == Kind::kGpu ? fmt::format("GPU {}", device) : "unknown";
}

Tensor tensor_of(std::string_view op, std::string_view argument, const TensorRef& ref,
                 const MemoryPlace& where) {
  const bool known =
      ref.place.kind != MemoryPlace::Kind::kUnknown && where.kind != MemoryPlace::Kind::kUnknown;
  require(!known || ref.place == where, "[{}] {} is memory of {}; the call runs on {}", op, argument,
          ref.place.text(), where.text());
  const size_t rank = ref.size.size();
  require(rank >= 1 && rank <= kMaxRank, "[{}] {} is {} {}; must have 1 to {} dimensions", op, argument,
          name(ref.dtype), range_text(ref.size), kMaxRank);
  require(ref.stride.empty() || ref.stride.size() == rank,
          "[{}] {} has strides {} for sizes {}; must be as many", op, argument, range_text(ref.stride),
          range_text(ref.size));
  Tensor tensor{.data = static_cast<u8*>(ref.data), .buffer = 0, .dtype = ref.dtype, .rank = u8(rank)};
  i64 dense = 1;
  for (size_t d = rank; d-- > 0;) {
    require(ref.size[d] >= 0 && ref.size[d] <= kMostElements,
            "[{}] {} is {} {}; a dimension must have 0 to {} elements", op, argument, name(ref.dtype),
            range_text(ref.size), kMostElements);
    tensor.size[d] = i32(ref.size[d]);
    tensor.stride[d] = ref.stride.empty() ? dense : ref.stride[d];
    dense *= std::max<i64>(ref.size[d], 1);
  }
  // What a dimension of one element has for a stride is never used.
  if (tensor.size[rank - 1] <= 1) tensor.stride[rank - 1] = 1;
  require(tensor.stride[rank - 1] == 1,
          "[{}] {} has strides {}; elements of the last dimension must lie side by side (stride 1): copy it "
          "first",
          op, argument, range_text(ref.stride));
  return tensor;
}

namespace {

struct FindRecord : ArgVisitor {
  bool found = false;
  void tensor(const char* name, Tensor&, const char*, Access) override {
    found |= name == std::string_view("step") || name == std::string_view("state");
  }
  void weight(const char*, Weight&, const char*) override {}
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

// A tensor of a call with the names of its dimensions.
struct Argument {
  std::string name;
  Tensor* tensor;
  std::vector<std::pair<std::string, i32>> dims;  // name, scale
  bool is_written;
  bool is_weight;
};

struct ListArguments : ArgVisitor {
  std::vector<Argument> all;

  void add(const char* name, Tensor& value, const char* text, bool is_written, bool is_weight) {
    Argument argument{name, &value, {}, is_written, is_weight};
    while (*text) {
      while (*text == ',' || *text == ' ') ++text;
      i32 scale = 0;
      while (*text >= '0' && *text <= '9') scale = scale * 10 + (*text++ - '0');
      std::string dim;
      while (*text && *text != ',') dim += *text++;
      argument.dims.emplace_back(dim, std::max(scale, 1));
    }
    all.push_back(std::move(argument));
  }
  void tensor(const char* name, Tensor& value, const char* dims, Access access) override {
    add(name, value, dims, access == Access::kWrite, false);
  }
  void weight(const char* name, Weight& value, const char* dims) override {
    add(name, value.data, dims, false, true);
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

std::vector<Argument> arguments_of(const OpSpec& op, std::byte* args) {
  ListArguments list;
  op.visit(args, list);
  return std::move(list.all);
}

// Dimensions without elements have one while the op's rules look at the call: they know no others. True: there are some.
bool fill_empty(const OpSpec& op, std::vector<Argument>& arguments) {
  std::map<std::string, std::string> empty;  // dimension -> the argument that says so
  for (const Argument& a : arguments)
    for (size_t d = 0; d < std::min<size_t>(a.tensor->rank, a.dims.size()); ++d)
      if (a.tensor->size[d] == 0 && a.dims[d].first != ".") empty.emplace(a.dims[d].first, a.name);
  for (Argument& a : arguments)
    for (size_t d = 0; d < std::min<size_t>(a.tensor->rank, a.dims.size()); ++d) {
      const auto found = empty.find(a.dims[d].first);
      if (found == empty.end()) continue;
      require(a.tensor->size[d] == 0, "[{}] {} is {}; dimension {} must be {}, as {} has none of it", op.name,
              a.name, shape_text(*a.tensor), d, 0, found->second);
      a.tensor->size[d] = a.dims[d].second;
    }
  return !empty.empty();
}

// What no rule of an op looks at: bodies go by strides.
void check_layout(const OpSpec& op, const Argument& a) {
  const Tensor& tensor = *a.tensor;
  if (tensor.rank == 0) return;
  require(tensor.exists(), "[{}] {} is {} without a buffer; tensor_of makes tensors of addresses", op.name,
          a.name, shape_text(tensor));
  const int last = tensor.rank - 1;
  require(tensor.size[last] == 1 || tensor.stride[last] == 1,
          "[{}] {} is {} with stride {} in its last dimension; must be 1", op.name, a.name,
          shape_text(tensor), tensor.stride[last]);
  if (!a.is_written) return;
  i64 inner = 1;  // elements that one step of the dimension passes over
  for (int d = last; d >= 0; --d) {
    require(tensor.size[d] == 1 || std::abs(tensor.stride[d]) >= inner,
            "[{}] {} is {} with stride {} in dimension {}; must be {} or more, as its rows would overlap",
            op.name, a.name, shape_text(tensor), tensor.stride[d], d, inner);
    inner += i64(tensor.size[d] - 1) * std::abs(tensor.stride[d]);
  }
}

}  // namespace

bool needs_step_record(const OpSpec& op) {
  FindRecord find;
  std::vector<std::byte> args(op.args_size);
  op.construct(args.data());
  op.visit(args.data(), find);
  return find.found;
}

void CheckedCall::require_outputs(const OpSpec& op) const {
  require(missing.empty(), "[{}] {}", op.name, missing);
}

CheckedCall check_call(const OpSpec& op, const std::byte* args) {
  if (needs_step_record(op))
    fail(ErrorCode::kUnsupported, "[{}] reads the step record of a program; it cannot be called by itself",
         op.name);
  CheckedCall call{.args = {args, args + op.args_size}};
  std::vector<Argument> arguments = arguments_of(op, call.args.data());
  const std::vector<std::byte> given = call.args;
  std::vector<Tensor> before;
  for (const Argument& a : arguments) before.push_back(*a.tensor);
  const bool has_empty = fill_empty(op, arguments);
  op.infer(call.args.data());
  for (size_t i = 0; const Argument& a : arguments_of(op, call.args.data())) {
    const bool is_given = before[i++].rank > 0;
    if (!is_given && a.tensor->rank > 0)
      call.missing = fmt::format("{} is missing; it is {}", a.name, shape_text(*a.tensor));
    else
      check_layout(op, a);
  }
  if (!has_empty) return call;
  call.args = given;
  call.is_empty = true;
  for (const Argument& a : arguments_of(op, call.args.data()))
    require(!a.is_written || a.tensor->rank == 0 || is_empty(*a.tensor),
            "[{}] {} is {}, and an input that it is made of has no elements; must be empty too", op.name,
            a.name, shape_text(*a.tensor));
  return call;
}

CallLayout::CallLayout(const OpSpec& op) {
  struct Walk : ArgVisitor {
    CallLayout* layout;
    const std::byte* begin;
    u32 offset(const void* at) const { return u32(static_cast<const std::byte*>(at) - begin); }
    void words(const void* from, size_t bytes) { layout->words_.push_back({offset(from), u32(bytes)}); }
    void tensor_at(const char* name, const Tensor& value, u32 alignment) {
      static_assert(offsetof(Tensor, data) == 0);
      layout->add(name, {offset(&value), offset(&value), alignment});
      words(&value.buffer, sizeof value - offsetof(Tensor, buffer));
    }
    void tensor(const char* name, Tensor& value, const char*, Access) override { tensor_at(name, value, 0); }
    void weight(const char* name, Weight& value, const char*) override {
      tensor_at(name, value.data, kWeightAlignment);
      layout->add(fmt::format("{}.table", name), {offset(&value), offset(&value.table), alignof(u64)});
      const auto* end = reinterpret_cast<const std::byte*>(&value.matrices) + sizeof value.matrices;
      words(&value.table_buffer, size_t(end - reinterpret_cast<const std::byte*>(&value.table_buffer)));
    }
    void attribute(const char*, i32& value) override { words(&value, sizeof value); }
    void attribute(const char*, float& value) override { words(&value, sizeof value); }
  } walk;
  std::vector<std::byte> args(op.args_size);
  op.construct(args.data());
  walk.layout = this, walk.begin = args.data();
  op.visit(args.data(), walk);
}

void CallLayout::add(const std::string& name, const Address& address) {
  addresses_.push_back(address);
  names_.push_back(name);
}

u64 CallLayout::hash(const std::byte* args) const {
  u64 hash = 0;
  for (const Words& words : words_)
    for (u32 at = 0; at < words.bytes; at += 4) {
      u32 word;
      std::memcpy(&word, args + words.offset + at, 4);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  return hash;
}

bool CallLayout::same(const std::byte* a, const std::byte* b) const {
  for (const Words& words : words_)
    if (std::memcmp(a + words.offset, b + words.offset, words.bytes) != 0) return false;
  return true;
}

bool CallLayout::has_addresses(const std::byte* args) const {
  for (const Address& address : addresses_) {
    const auto& tensor = *reinterpret_cast<const Tensor*>(args + address.tensor);
    if (tensor.rank == 0) continue;
    u64 at;
    std::memcpy(&at, args + address.pointer, sizeof at);
    const u64 alignment = address.alignment ? address.alignment : u64(size_of(tensor.dtype));
    if (at == 0 || at % alignment != 0) return false;
  }
  return true;
}

std::vector<const void*> CallLayout::addresses(const std::byte* args) const {
  std::vector<const void*> all(addresses_.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& tensor = *reinterpret_cast<const Tensor*>(args + addresses_[i].tensor);
    if (tensor.rank > 0) std::memcpy(&all[i], args + addresses_[i].pointer, sizeof all[i]);
  }
  return all;
}

void CallLayout::say_why(const OpSpec& op, const std::byte* args) const {
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const auto& tensor = *reinterpret_cast<const Tensor*>(args + addresses_[i].tensor);
    if (tensor.rank == 0) continue;
    u64 at;
    std::memcpy(&at, args + addresses_[i].pointer, sizeof at);
    const u64 alignment = addresses_[i].alignment ? addresses_[i].alignment : u64(size_of(tensor.dtype));
    require(at != 0, "[{}] {} has no address; its tensor is {}", op.name, names_[i], shape_text(tensor));
    require(at % alignment == 0, "[{}] {} begins at address {:#x}; must be a multiple of {} for {}", op.name,
            names_[i], at, alignment, shape_text(tensor));
  }
  fail(ErrorCode::kInternal, "[{}] all addresses are right", op.name);
}

}  // namespace heddle
