// An op's arguments as data: `op_of` walks `visit` once and keeps what it shows as fields. Code that serves every op
// loops over them:
//   for (const Field& f : op.fields)
//     if (f.is_tensor() && f.writes()) use(f.name, f.tensor(args));
// An op that is made at run time lists its fields itself (lay_out).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/weight.h"

namespace heddle {

enum class Access : u8 { kRead, kWrite };
enum class FieldKind : u8 { kTensor, kWeight, kAttribute };
// A choice is an i32 that counts from 0. Messages and people use its name.
enum class AttributeType : u8 { kI32, kI64, kFloat, kBool, kChoice };
using AttributeValue = std::variant<bool, i64, double, std::string>;

// A dimension as an argument declares it: "2N" is twice N, "." is a dimension without a name.
struct FieldDim {
  std::string name;
  i32 scale = 1;
  bool is_attribute = false;  // the attribute of that name gives the size
  bool operator==(const FieldDim&) const = default;
};
// "M, 2N" -> {M, 1}, {N, 2}
std::vector<FieldDim> parse_dims(std::string_view text);
// "float" (f32, f16, bf16), a dtype's name, or several with | between them.
std::vector<DType> parse_dtypes(std::string_view text);
// "silu, gelu" -> {silu, gelu}
std::vector<std::string> parse_choices(std::string_view text);

struct Field {
  std::string name;
  std::string member;  // its place in the struct: "b.data" for a matrix b; otherwise the name
  FieldKind kind = FieldKind::kTensor;
  size_t offset = 0;  // bytes from the beginning of the arguments
  // Tensors and weights only:
  Access access = Access::kRead;
  bool optional = false;  // a call may leave it out: Tensor::exists() says whether it did
  std::string dims_text;  // "M, 2N"
  std::vector<FieldDim> dims;
  std::vector<DType> dtypes;  // dtypes that its elements may have
  // The elements of a matrix: where the arguments say whether it lies transposed, in bytes. -1: no matrix.
  i64 transposed_at = -1;
  // Attributes only:
  AttributeType type = AttributeType::kI32;
  std::vector<std::string> choices;

  // False for a part of the matrix that another field begins.
  bool is_whole() const { return name.find('.') == std::string::npos; }
  bool is_tensor() const { return kind == FieldKind::kTensor; }
  bool is_weight() const { return kind == FieldKind::kWeight; }
  bool is_matrix() const { return transposed_at >= 0; }
  bool is_attribute() const { return kind == FieldKind::kAttribute; }
  bool writes() const { return !is_attribute() && access == Access::kWrite; }
  bool allows(DType dtype) const;
  size_t size() const;       // bytes in the arguments
  size_t alignment() const;  // alignment of these bytes

  Tensor& tensor(std::byte* args) const { return at<Tensor>(args, is_tensor()); }
  const Tensor& tensor(const std::byte* args) const { return at<const Tensor>(args, is_tensor()); }
  Weight& weight(std::byte* args) const { return at<Weight>(args, is_weight()); }
  const Weight& weight(const std::byte* args) const { return at<const Weight>(args, is_weight()); }
  // The tensor itself, or the elements of the weight.
  Tensor& elements(std::byte* args) const { return is_weight() ? weight(args).data : tensor(args); }
  const Tensor& elements(const std::byte* args) const {
    return is_weight() ? weight(args).data : tensor(args);
  }
  // The dimensions in the order in which the tensor has them.
  std::vector<FieldDim> dims_of(const std::byte* args) const;
  // Calls f with the attribute as an i32& (choices too), i64&, float& or bool&; const if the arguments are
  // const.
  template <class Byte, class F>
  decltype(auto) with_attribute(Byte* args, F&& f) const {
    switch (type) {
      case AttributeType::kI64:
        return f(attribute<i64>(args));
      case AttributeType::kFloat:
        return f(attribute<float>(args));
      case AttributeType::kBool:
        return f(attribute<bool>(args));
      default:
        return f(attribute<i32>(args));
    }
  }

 private:
  template <class T, class Byte>
  auto& attribute(Byte* args) const {
    return at<std::conditional_t<std::is_const_v<Byte>, const T, T>>(args, is_attribute());
  }
  template <class T, class Byte>
  T& at(Byte* args, bool right_kind) const {
    HEDDLE_CHECK(right_kind);
    return *reinterpret_cast<T*>(args + offset);
  }
};

// An attribute as people read it; a choice by its name.
std::string attribute_text(const Field& field, const std::byte* args);
AttributeValue get_attribute(const Field& field, const std::byte* args);
// Sets a choice by its name, an i32 if the value fits, a float from a whole number too. Throws Error with
// `op`, the attribute, the value and what would be right.
void set_attribute(std::string_view op, const Field& field, std::byte* args, const AttributeValue& value);
// Sets it from text: "true", "12", "1e-5", "gelu".
void parse_attribute(std::string_view op, const Field& field, std::byte* args, std::string_view text);

// Finds a field by name; null when there is none.
const Field* find_field(const std::vector<Field>& fields, std::string_view name);
// Throws Error when the elements of an argument have a dtype that its field does not allow.
void require_dtypes(std::string_view op, const std::vector<Field>& fields, const std::byte* args);

// Fields for an op that is made at run time; its `visit` would otherwise name them.
Field tensor_field(std::string name, Access access, std::string dims, std::string_view dtypes = "float");
Field attribute_field(std::string name, AttributeType type, std::vector<std::string> choices = {});
// Gives fields their offsets one after the other, as a compiler would, and finds dimensions whose size an
// attribute gives. Returns the arguments' defaults: no tensors, attributes 0.
std::vector<std::byte> lay_out(std::vector<Field>& fields);
// Marks dimensions that have the name of an attribute.
void find_attribute_dims(std::vector<Field>& fields);

// Receives the calls of a `visit` and makes fields of them.
class FieldList {
 public:
  FieldList(const void* args, std::vector<Field>& fields) : args_(args), fields_(fields) {}

  void read(const char* name, const Tensor& value, const char* dims, const char* dtypes = "float") {
    add_tensor(name, value, dims, dtypes, Access::kRead, false);
  }
  void write(const char* name, const Tensor& value, const char* dims, const char* dtypes = "float") {
    add_tensor(name, value, dims, dtypes, Access::kWrite, false);
  }
  // Arguments that a call may leave out.
  void optional_read(const char* name, const Tensor& value, const char* dims, const char* dtypes = "float") {
    add_tensor(name, value, dims, dtypes, Access::kRead, true);
  }
  void optional_write(const char* name, const Tensor& value, const char* dims, const char* dtypes = "float") {
    add_tensor(name, value, dims, dtypes, Access::kWrite, true);
  }
  void weight(const char* name, const Weight& value, const char* dims, const char* dtypes = "float");
  // Makes four fields of it: b, b.scales, b.zeros and the attribute b.transposed.
  void matrix(const char* name, const Matrix& value, const char* dims,
              const char* dtypes = "f32 | f16 | bf16 | f8e4m3 | f8e5m2 | i8 | i4");
  void attribute(const char* name, const i32& value) { add_attribute(name, &value, AttributeType::kI32); }
  void attribute(const char* name, const i64& value) { add_attribute(name, &value, AttributeType::kI64); }
  void attribute(const char* name, const float& value) { add_attribute(name, &value, AttributeType::kFloat); }
  void attribute(const char* name, const bool& value) { add_attribute(name, &value, AttributeType::kBool); }
  // `names`: "silu, gelu" for the values 0, 1, ...
  void choice(const char* name, const i32& value, const char* names);

 private:
  Field& add(const char* name, const void* value, FieldKind kind);
  void add_tensor(const char* name, const Tensor& value, const char* dims, const char* dtypes, Access access,
                  bool optional);
  void add_attribute(const char* name, const void* value, AttributeType type);

  const void* args_;
  std::vector<Field>& fields_;
};

}  // namespace heddle
