#include "heddle/model/hf/pickle.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr size_t kMostDims = 32;

enum class Global : uint8_t { kDict, kTensor, kParameter, kSize, kStorage };

struct Name {
  std::string_view module, name;
  Global what;
  const char* type = "";  // kStorage: of its elements, as safetensors names it
};
// The names that tensors need. None is called: their arguments are read.
constexpr Name kNames[] = {
    {"collections", "OrderedDict", Global::kDict},
    {"torch._utils", "_rebuild_tensor_v2", Global::kTensor},
    {"torch._utils", "_rebuild_parameter", Global::kParameter},
    {"torch", "Size", Global::kSize},
    {"torch", "FloatStorage", Global::kStorage, "F32"},
    {"torch", "HalfStorage", Global::kStorage, "F16"},
    {"torch", "BFloat16Storage", Global::kStorage, "BF16"},
    {"torch", "DoubleStorage", Global::kStorage, "F64"},
    {"torch", "LongStorage", Global::kStorage, "I64"},
    {"torch", "IntStorage", Global::kStorage, "I32"},
    {"torch", "ShortStorage", Global::kStorage, "I16"},
    {"torch", "CharStorage", Global::kStorage, "I8"},
    {"torch", "ByteStorage", Global::kStorage, "U8"},
    {"torch", "BoolStorage", Global::kStorage, "BOOL"},
};

// A value names others by their numbers, so that none owns another and nothing recurses.
using Ref = uint32_t;

enum class Kind : uint8_t { kPlain, kInt, kText, kTuple, kList, kDict, kName, kStorage, kTensor };

constexpr const char* name_of(Kind kind) {
  constexpr const char* kKinds[] = {"a plain value", "a number", "a text",    "a tuple", "a list",
                                    "a dict",        "a name",   "a storage", "a tensor"};
  return kKinds[size_t(kind)];
}

struct Value {
  Kind kind = Kind::kPlain;
  int64_t number = 0;          // kInt; kStorage: its elements
  std::string_view text = {};  // kText; kStorage: its key
  const Name* name = nullptr;  // kName; kStorage: its type
  std::vector<Ref> items =
      {};  // kTuple, kList; kDict: keys and values in turn; kTensor: storage, offset, shape, strides
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& path)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path_(path) {}

  // Runs to the end of the pickle, and returns its value.
  const Value& run() {
    while (!done_) step(uint8_t(take(1)[0]));
    return values_[pop()];
  }
  size_t size() const { return at_; }
  const Value& value(Ref ref) const { return values_[ref]; }

  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) refuse(ErrorCode::kIo, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    fail(code, "[{}] byte {} of its pickle: {}", path_, at_, what);
  }
  const std::vector<Ref>& items(const Value& value, Kind kind, size_t least) const {
    require(value.kind == kind && value.items.size() >= least,
            "there is {} of {} values; {} of at least {} is wanted", name_of(value.kind), value.items.size(),
            name_of(kind), least);
    return value.items;
  }
  int64_t number(Ref ref) const {
    require(value(ref).kind == Kind::kInt, "there is {}; a number is wanted", name_of(value(ref).kind));
    return value(ref).number;
  }
  std::string_view text(Ref ref) const {
    require(value(ref).kind == Kind::kText, "there is {}; a text is wanted", name_of(value(ref).kind));
    return value(ref).text;
  }

 private:
  std::string_view take(uint64_t count) {
    require(count <= text_.size() - at_, "it ends early: {} more bytes are wanted, there are {}", count,
            text_.size() - at_);
    const std::string_view taken = text_.substr(at_, size_t(count));
    at_ += size_t(count);
    return taken;
  }
  std::string_view line() {
    const size_t end = text_.find('\n', at_);
    require(end != text_.npos, "a line does not end");
    const std::string_view taken = take(end - at_);
    take(1);
    return taken;
  }
  uint64_t little(int bytes) {
    const std::string_view taken = take(uint64_t(bytes));
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number |= uint64_t(uint8_t(taken[size_t(i)])) << (8 * i);
    return number;
  }
  // Two's complement of at most 8 bytes; longer numbers (a seed, say) are no size, and become 0.
  int64_t whole(size_t bytes) {
    if (bytes == 0) return 0;
    if (bytes > 8) return take(bytes), 0;
    const uint64_t number = little(int(bytes));
    const int unused = int(64 - 8 * bytes);
    return int64_t(number << unused) >> unused;
  }

  void push(Value value) {
    stack_.push_back(Ref(values_.size()));
    values_.push_back(std::move(value));
  }
  void push_int(int64_t number) { push({.kind = Kind::kInt, .number = number}); }
  void push_text(uint64_t size) { push({.kind = Kind::kText, .text = take(size)}); }
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  Ref pop() {
    require(stack_.size() > bottom(), "it takes a value that is not there");
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Ref top() const {
    require(stack_.size() > bottom(), "it takes a value that is not there");
    return stack_.back();
  }
  std::vector<Ref> pop_to_mark() {
    require(!marks_.empty(), "it takes values from a mark that is not there");
    std::vector<Ref> taken(stack_.begin() + long(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return taken;
  }
  void push_tuple(size_t count) {
    std::vector<Ref> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    push({.kind = Kind::kTuple, .items = std::move(items)});
  }
  void add_to(Kind kind, const std::vector<Ref>& more) {
    Value& to = values_[top()];
    require(to.kind == kind, "{} takes values; {} is wanted", name_of(to.kind), name_of(kind));
    require(kind != Kind::kDict || more.size() % 2 == 0, "a key has no value");
    to.items.insert(to.items.end(), more.begin(), more.end());
  }
  void get(uint64_t slot) {
    const auto found = memo_.find(slot);
    require(found != memo_.end(), "it takes value {} of its memo, which is not there", slot);
    stack_.push_back(found->second);
  }

  void push_name(std::string_view module, std::string_view name) {
    const auto found = std::ranges::find_if(
        kNames, [&](const Name& known) { return known.module == module && known.name == name; });
    if (found == std::end(kNames))
      refuse(
          ErrorCode::kUnsupported,
          fmt::format(
              "it asks for {}, which is none of the names that tensors need; only dicts of tensors are read",
              brief(fmt::format("{}.{}", module, name))));
    push({.kind = Kind::kName, .name = found});
  }

  // ('storage', its type, key, place, elements), where old files have a sixth value for a view of another storage.
  void push_storage() {
    const Value& tuple = value(pop());
    const std::vector<Ref>& parts = items(tuple, Kind::kTuple, 5);
    require(text(parts[0]) == "storage", "it refers to {}; only storages are known",
            brief(std::string(text(parts[0]))));
    const Value& type = value(parts[1]);
    require(type.kind == Kind::kName && type.name->what == Global::kStorage, "a storage has no type");
    require(parts.size() == 5 || value(parts[5]).kind == Kind::kPlain, "a storage is a view of another");
    push({.kind = Kind::kStorage, .number = number(parts[4]), .text = text(parts[2]), .name = type.name});
  }

  void reduce() {
    const Ref arguments = pop(), function = pop();
    const Value& called = value(function);
    require(called.kind == Kind::kName, "it calls {}", name_of(called.kind));
    const auto parts = [&](size_t least) -> const std::vector<Ref>& {
      return items(value(arguments), Kind::kTuple, least);
    };
    switch (called.name->what) {
      case Global::kDict: {
        require(parts(0).empty(), "an OrderedDict has arguments");
        return push({.kind = Kind::kDict});
      }
      case Global::kTensor: {
        const std::vector<Ref>& all = parts(4);
        return push({.kind = Kind::kTensor, .items = {all.begin(), all.begin() + 4}});
      }
      case Global::kParameter:
      case Global::kSize:
        return stack_.push_back(parts(1)[0]);
      case Global::kStorage:
        break;
    }
    refuse(ErrorCode::kUnsupported, "it calls the type of a storage");
  }

  // The attributes of an OrderedDict, such as the versions of modules, are not looked at.
  void build() {
    pop();
    require(value(top()).kind == Kind::kDict, "it sets attributes of {}", name_of(value(top()).kind));
  }

  void step(uint8_t opcode) {
    if (!step_constant(opcode) && !step_container(opcode))
      refuse(ErrorCode::kUnsupported,
             fmt::format("it has the opcode {:#04x}, which no dict of tensors needs", opcode));
  }

  bool step_constant(uint8_t opcode) {
    switch (opcode) {
      case 'N':
      case 0x88:
      case 0x89:
        return push({}), true;  // None, True, False
      case 'G':
        return take(8), push({}), true;  // a double
      case 'J':
        return push_int(whole(4)), true;
      case 'K':
        return push_int(int64_t(little(1))), true;
      case 'M':
        return push_int(int64_t(little(2))), true;
      case 0x8a:
        return push_int(whole(size_t(little(1)))), true;
      case 'X':
      case 'T':
        return push_text(little(4)), true;
      case 'U':
      case 0x8c:
        return push_text(little(1)), true;
      case 0x8d:
        return push_text(little(8)), true;
      case 'c': {
        const std::string_view module = line();
        return push_name(module, line()), true;
      }
      case 0x93: {
        const std::string_view name = text(pop());
        return push_name(text(pop()), name), true;
      }
      case 0x80: {
        const uint64_t protocol = little(1);
        require(protocol >= 2 && protocol <= 5, "its protocol is {}; known are 2 to 5", protocol);
        return true;
      }
      case 0x95:
        return little(8), true;  // the size of a frame
      default:
        return false;
    }
  }

  bool step_container(uint8_t opcode) {
    switch (opcode) {
      case '(':
        return marks_.push_back(stack_.size()), true;
      case ')':
        return push({.kind = Kind::kTuple}), true;
      case ']':
        return push({.kind = Kind::kList}), true;
      case '}':
        return push({.kind = Kind::kDict}), true;
      case 't':
        return push({.kind = Kind::kTuple, .items = pop_to_mark()}), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(size_t(opcode) - 0x84), true;
      case 'a': {
        const Ref item = pop();
        return add_to(Kind::kList, {item}), true;
      }
      case 'e': {
        const std::vector<Ref> more = pop_to_mark();
        return add_to(Kind::kList, more), true;
      }
      case 's': {
        const Ref item = pop(), key = pop();
        return add_to(Kind::kDict, {key, item}), true;
      }
      case 'u': {
        const std::vector<Ref> more = pop_to_mark();
        return add_to(Kind::kDict, more), true;
      }
      case 'q':
        return memo_[little(1)] = top(), true;
      case 'r':
        return memo_[little(4)] = top(), true;
      case 0x94: {
        const uint64_t slot = memo_.size();
        return memo_[slot] = top(), true;
      }
      case 'h':
        return get(little(1)), true;
      case 'j':
        return get(little(4)), true;
      case 'Q':
        return push_storage(), true;
      case 'R':
      case 0x81:
        return reduce(), true;
      case 'b':
        return build(), true;
      case '.':
        return done_ = true;
      default:
        return false;
    }
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  bool done_ = false;
  std::deque<Value> values_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint64_t, Ref> memo_;
};

std::vector<int64_t> numbers(const Machine& machine, Ref ref) {
  std::vector<int64_t> result;
  const std::vector<Ref>& items = machine.items(machine.value(ref), Kind::kTuple, 0);
  machine.require(items.size() <= kMostDims, "a tensor has {} dimensions; at most {} are read", items.size(),
                  kMostDims);
  for (const Ref item : items) result.push_back(machine.number(item));
  return result;
}

PickledTensor tensor_of(const Machine& machine, std::string_view name, const Value& value) {
  const Value& storage = machine.value(value.items[0]);
  machine.require(storage.kind == Kind::kStorage, "tensor {} has no storage", brief(std::string(name)));
  return {.name = std::string(name),
          .storage = std::string(storage.text),
          .type = storage.name->type,
          .storage_elems = storage.number,
          .offset = machine.number(value.items[1]),
          .shape = numbers(machine, value.items[2]),
          .strides = numbers(machine, value.items[3])};
}

}  // namespace

PickledTensors read_pickled_tensors(std::span<const std::byte> bytes, const std::string& path) {
  Machine machine(bytes, path);
  const Value& root = machine.run();
  if (root.kind != Kind::kDict)
    machine.refuse(ErrorCode::kUnsupported,
                   fmt::format("it holds {}; a dict of tensors is wanted", name_of(root.kind)));
  std::map<std::string_view, const Value*> last;  // a later value of a key replaces the one before
  for (size_t i = 0; i < root.items.size(); i += 2)
    last[machine.text(root.items[i])] = &machine.value(root.items[i + 1]);
  PickledTensors result{.tensors = {}, .size = machine.size()};
  for (const auto& [name, value] : last) {
    if (value->kind != Kind::kTensor)
      machine.refuse(ErrorCode::kUnsupported,
                     fmt::format("it holds {} under {}; every value must be a tensor", name_of(value->kind),
                                 brief(std::string(name))));
    result.tensors.push_back(tensor_of(machine, name, *value));
  }
  return result;
}

PickledTexts read_pickled_texts(std::span<const std::byte> bytes, const std::string& path) {
  Machine machine(bytes, path);
  PickledTexts result;
  for (const Ref item : machine.items(machine.run(), Kind::kList, 0))
    result.texts.emplace_back(machine.text(item));
  result.size = machine.size();
  return result;
}

size_t skip_pickle(std::span<const std::byte> bytes, const std::string& path) {
  Machine machine(bytes, path);
  machine.run();
  return machine.size();
}

}  // namespace heddle
