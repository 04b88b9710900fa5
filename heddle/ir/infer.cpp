#include "heddle/ir/infer.h"

#include <limits>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/ir/rules.h"

namespace heddle {
namespace {

constexpr i64 kMostElements = std::numeric_limits<i32>::max();  // limit of a dimension

class Inference {
 public:
  Inference(const std::string& op, const std::vector<Field>& fields, std::byte* args)
      : op_(op), fields_(fields), args_(args) {}

  void run() {
    for (const Field& field : fields_)
      if (field.is_attribute()) take_attribute(field);
    for (const Field& field : fields_)
      if (!field.is_attribute() && !field.writes()) take_input(field);
    for (const Field& field : fields_)
      if (field.writes()) make_output(field);
    require_dtypes(op_, fields_, args_);
  }

 private:
  struct Size {
    i64 elements;
    std::string from;  // the argument that gave the size
  };

  void take_attribute(const Field& field) {
    const AttributeValue value = get_attribute(field, args_);
    if (const i64* whole = std::get_if<i64>(&value)) sizes_[field.name] = {*whole, field.name};
  }

  void take_input(const Field& field) {
    const Tensor& tensor = field.elements(args_);
    require(tensor.rank > 0 || field.optional, "[{}] {} is left out; must be given", op_, field.name);
    if (tensor.rank == 0) return;
    require_rank(op_.c_str(), field.name.c_str(), tensor, int(field.dims.size()));
    const std::vector<FieldDim> dims = field.dims_of(args_);
    for (size_t d = 0; d < dims.size(); ++d) {
      const FieldDim& dim = dims[d];
      if (dim.name == ".") continue;
      const i64 size = tensor.size[d] / dim.scale;
      const auto [known, fresh] = sizes_.try_emplace(dim.name, Size{size, field.name});
      require(known->second.elements == size && tensor.size[d] % dim.scale == 0,
              "[{}] {} is {}; must be [{}] with {} = {} as {} has it", op_, field.name, shape_text(tensor),
              field.dims_text, dim.name, known->second.elements, known->second.from);
    }
    if (field.is_tensor() && !dtype_) dtype_ = tensor.dtype;
  }

  void make_output(const Field& field) {
    Tensor& tensor = field.tensor(args_);
    if (tensor.rank == 0 && field.optional) return;
    require(tensor.rank == 0 || tensor.rank == field.dims.size(), "[{}] {} is {}; must be [{}]", op_,
            field.name, shape_text(tensor), field.dims_text);
    std::vector<i32> shape;
    for (size_t d = 0; d < field.dims.size(); ++d)
      shape.push_back(size_of_output(field, field.dims[d], tensor.rank > 0 ? tensor.size[d] : 0));
    const DType dtype = dtype_ && field.allows(*dtype_) ? *dtype_ : field.dtypes.front();
    set_output(op_.c_str(), field.name.c_str(), tensor, dtype, shape);
  }

  // `given`: the size that the output already has; 0: none.
  i32 size_of_output(const Field& field, const FieldDim& dim, i32 given) const {
    const auto known = sizes_.find(dim.name);
    if (known == sizes_.end()) {
      require(given > 0, "[{}] no argument says how large {} of {} [{}] is; give {} its shape", op_, dim.name,
              field.name, field.dims_text, field.name);
      return given;
    }
    const i64 elements = known->second.elements;
    require(elements > 0 && elements <= kMostElements / dim.scale, "[{}] {} = {}; must be 1 to {}", op_,
            known->second.from, elements, kMostElements / dim.scale);
    return i32(elements * dim.scale);
  }

  const std::string& op_;
  const std::vector<Field>& fields_;
  std::byte* args_;
  std::map<std::string, Size> sizes_;
  std::optional<DType> dtype_;
};

}  // namespace

std::function<void(std::byte* args)> infer_from_dims(std::string op, std::vector<Field> fields) {
  return [op = std::move(op), fields = std::move(fields)](std::byte* args) {
    Inference(op, fields, args).run();
  };
}

}  // namespace heddle
