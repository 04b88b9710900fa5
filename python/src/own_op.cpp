#include "python/src/own_op.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <dlfcn.h>

#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/base/cache_folder.h"
#include "heddle/base/error.h"
#include "heddle/ir/infer.h"
#include "heddle/ir/product.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/tile_grid.h"
#include "python/src/arguments.h"
#include "python/src/describe.h"
#include "python/src/graph.h"
#include "python/src/locked.h"
#include "python/src/own_headers.h"
#include "python/src/own_kernel.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// Where a dimension stands in the tensors.
struct DimPlace {
  size_t field = 0, at = 0;
};
struct TiledDim : DimPlace {
  std::string name;
  i32 preferred = 0;   // elements in a tile; 0: all
  std::string config;  // the value of a configuration that says it instead; "": none does
};

// In a tensor that every call has.
std::optional<DimPlace> place_of_dim(const std::vector<Field>& fields, std::string_view name) {
  for (size_t f = 0; f < fields.size(); ++f)
    for (size_t d = 0; d < fields[f].dims.size(); ++d)
      if (fields[f].dims[d].name == name && fields[f].dims[d].scale == 1 && !fields[f].optional)
        return DimPlace{f, d};
  return {};
}

const Matrix& matrix_of(const Field& field, const std::byte* args) {
  return *reinterpret_cast<const Matrix*>(args + field.offset);
}

i32 size_at(const std::vector<Field>& fields, const DimPlace& place, const std::byte* args) {
  const Field& field = fields[place.field];
  const bool turned = field.is_matrix() && matrix_of(field, args).transposed;
  return field.tensor(args).size[turned ? 1 - place.at : place.at];
}

// The functions of the library of a body, as python/heddle/own/body.py writes them.
using RunTile = void(const std::byte* args, const i32* tile);
using RunTileHooked = void(const std::byte* args, const i32* tile, const AccessHook* hook);

struct OwnOp {
  std::string name;
  std::vector<Field> fields;
  std::vector<TiledDim> tile;
  std::vector<std::vector<FieldDim>> scratch;  // floats of each piece: the product of its sizes in a tile
  std::atomic<RunTile*> run = nullptr;
  std::atomic<RunTileHooked*> run_hooked = nullptr;
  // Functions of Python; never released, as ops are not.
  PyObject *reference = nullptr, *compile = nullptr;
  mutable std::mutex text_mutex;
  OpText device_text;

  std::vector<TileAxis> axes(const std::byte* args, const OpConfig* config) const {
    std::vector<TileAxis> axes;
    for (const TiledDim& dim : tile) {
      const bool is_chosen = config && !dim.config.empty() && config->contains(dim.config);
      axes.push_back({.dim = dim.name,
                      .extent = size_at(fields, dim, args),
                      .preferred = is_chosen ? i32(config->at(dim.config)) : dim.preferred});
    }
    return axes;
  }
  // Two operations for each element that it writes: nobody says what the body computes.
  double flops(const std::byte* args, const TileCoord& tile_at) const {
    double part = 2;
    for (size_t i = 0; i < tile.size(); ++i)
      part *= double(tile_at[int(2 * i + 1)] - tile_at[int(2 * i)]) / size_at(fields, tile[i], args);
    double elements_written = 0;
    for (const Field& field : fields)
      if (field.writes() && field.tensor(args).rank > 0)
        elements_written += double(elements(field.tensor(args)));
    return part * elements_written;
  }
  i64 scratch_bytes(const std::byte* args, const TileCoord& tile_at) const {
    i64 bytes = 0;
    for (const std::vector<FieldDim>& piece : scratch) {
      i64 floats = 1, last = 1;
      for (const FieldDim& dim : piece) {
        const auto cut = std::ranges::find(tile, dim.name, &TiledDim::name);
        const DimPlace place = *place_of_dim(fields, dim.name);
        const int at = 2 * int(cut - tile.begin());
        last =
            dim.scale * i64(cut == tile.end() ? size_at(fields, place, args) : tile_at[at + 1] - tile_at[at]);
        floats *= last;
      }
      bytes += piece.size() > 1 ? fragment_bytes(floats / last, last) : floats * i64(sizeof(float));
    }
    return bytes;
  }
  void run_body(const std::byte* args, const TileCoord& tile_at) const {
    RunTile* const body = run;
    if (!body) fail(ErrorCode::kUnsupported, "[{}] has no body that was compiled", name);
    body(args, tile_at.at);
  }
  void run_watched(const std::byte* args, const TileCoord& tile_at, const AccessHook& hook) const;
  std::string tile_text(const TileCoord& tile_at) const;
  std::string access_text(const std::byte* args, const TileCoord& tile_at, const u8* address,
                          bool writes) const;
  void run_reference(const std::byte* args, Values& values) const;
};

std::string range_text(i64 begin, i64 end) {
  return fmt::format("[{}, {})", begin, end);
}

std::string OwnOp::tile_text(const TileCoord& at) const {
  std::string text;
  for (size_t i = 0; i < tile.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : " x ", tile[i].name,
                        range_text(at[int(2 * i)], at[int(2 * i + 1)]));
  return text;
}

// The bytes from the first element of a tensor to the end of its last.
i64 span_bytes(const Tensor& tensor) {
  i64 last = 0;
  for (int d = 0; d < tensor.rank; ++d) last += (tensor.size[d] - 1) * tensor.stride[d];
  return (last + 1) * size_of(tensor.dtype);
}

// The element's place, and what the tile may touch of the tensor: "reads x[0, 3]; of x this tile reads [16, 32) x [0, 8)".
std::string OwnOp::access_text(const std::byte* args, const TileCoord& tile_at, const u8* address,
                               bool writes) const {
  const auto declared = [&](const Field& field) {
    const Tensor& tensor = field.tensor(args);
    std::string text;
    const std::vector<FieldDim> dims = field.dims_of(args);
    for (size_t d = 0; d < dims.size(); ++d) {
      const FieldDim& dim = dims[d];
      const auto cut = std::ranges::find(tile, dim.name, &TiledDim::name);
      const int at = 2 * int(cut - tile.begin());
      text += (d == 0 ? "" : " x ") + (cut == tile.end() ? range_text(0, tensor.size[d])
                                                         : range_text(i64(dim.scale) * tile_at[at],
                                                                      i64(dim.scale) * tile_at[at + 1]));
    }
    return text;
  };
  const char* const verb = writes ? "writes" : "reads";
  const Field* before = nullptr;  // the tensor that begins last before the address
  for (const Field& field : fields) {
    if (!field.is_tensor() || field.tensor(args).rank == 0) continue;
    const Tensor& tensor = field.tensor(args);
    if (address < tensor.data) continue;
    if (!before || before->tensor(args).data < tensor.data) before = &field;
    i64 left = (address - tensor.data) / size_of(tensor.dtype);
    if (address - tensor.data >= span_bytes(tensor)) continue;
    std::string place;
    for (int d = 0; d < tensor.rank; ++d) {
      const i64 index = tensor.stride[d] > 0 ? left / tensor.stride[d] : 0;
      left -= index * tensor.stride[d];
      place += fmt::format("{}{}", d == 0 ? "" : ", ", index);
    }
    if (field.writes() != writes)
      return fmt::format("{} {}[{}], which the class only {}", verb, field.name, place,
                         field.writes() ? "writes" : "reads");
    return fmt::format("{} {}[{}]; of {} this tile {} {}", verb, field.name, place, field.name, verb,
                       declared(field));
  }
  if (!before) return fmt::format("{} memory that is in none of its tensors", verb);
  const Tensor& tensor = before->tensor(args);
  return fmt::format(
      "{} memory that is in none of its tensors, {} elements after the end of {}; of {} this tile {} {}",
      verb, (address - tensor.data - span_bytes(tensor)) / size_of(tensor.dtype), before->name, before->name,
      before->writes() ? "writes" : "reads", declared(*before));
}

// Says where an access is that the hook refuses.
void OwnOp::run_watched(const std::byte* args, const TileCoord& tile_at, const AccessHook& hook) const {
  RunTileHooked* const body = run_hooked;
  if (!body) fail(ErrorCode::kUnsupported, "[{}] has no body that was compiled", name);
  struct Heard {
    const OwnOp& op;
    const std::byte* args;
    const TileCoord& tile;
    const AccessHook& hook;
  } heard{*this, args, tile_at, hook};
  const AccessHook named{&heard, [](void* to, const void* address, i64 bytes, bool writes) {
                           const Heard& of = *static_cast<Heard*>(to);
                           try {
                             of.hook.touch(of.hook.context, address, bytes, writes);
                           } catch (const Error&) {
                             fail(
                                 ErrorCode::kInvalidArgument, "[{}] the body {}, in tile {}", of.op.name,
                                 of.op.access_text(of.args, of.tile, static_cast<const u8*>(address), writes),
                                 of.op.tile_text(of.tile));
                           }
                         }};
  body(args, tile_at.at, &named);
}

std::map<std::string, std::shared_ptr<OwnOp>, std::less<>>& own_ops() {
  static std::map<std::string, std::shared_ptr<OwnOp>, std::less<>> all;
  return all;
}

OwnOp& own_op(const std::string& name) {
  const auto found = own_ops().find(name);
  if (found == own_ops().end()) fail(ErrorCode::kInvalidArgument, "[{}] is no op that Python declared", name);
  return *found->second;
}

nb::bytes bytes_of(std::span<const double> values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Calls Python with {argument: (f64 values, sizes)} of what is read, {argument: sizes} of what is written, and the
// attributes; it returns {argument: f64 values}.
void OwnOp::run_reference(const std::byte* args, Values& values) const {
  std::map<std::string, std::vector<double>> read;
  for (const Field& field : fields)
    if (field.is_tensor() && !field.writes() && field.is_whole() && field.tensor(args).rank > 0)
      read[field.name] =
          field.is_matrix() ? read_matrix(values, matrix_of(field, args)) : values.read(field.tensor(args));
  std::map<std::string, std::vector<double>> written;
  {
    const Locked python;
    nb::dict inputs, outputs, attributes;
    for (const Field& field : fields) {
      if (!field.is_whole()) continue;  // a matrix is its values
      const nb::str key(field.name.c_str());
      if (field.is_attribute()) {
        attributes[key] = attribute_object(field, args);
        continue;
      }
      const Tensor& tensor = field.tensor(args);
      if (tensor.rank == 0) continue;
      nb::list sizes;
      for (size_t d = 0; d < field.dims.size(); ++d)
        sizes.append(size_at(fields, {size_t(&field - fields.data()), d}, args));
      if (field.writes())
        outputs[key] = sizes;
      else
        inputs[key] = nb::make_tuple(bytes_of(read[field.name]), sizes);
    }
    const Object result = owned(
        PyObject_CallFunctionObjArgs(reference, inputs.ptr(), outputs.ptr(), attributes.ptr(), nullptr));
    for (const Field& field : fields) {
      if (!field.writes() || field.tensor(args).rank == 0) continue;
      PyObject* const made = PyDict_GetItemString(result.get(), field.name.c_str());
      char* data = nullptr;
      Py_ssize_t size = 0;
      if (!made || PyBytes_AsStringAndSize(made, &data, &size) != 0) throw PythonError{};
      std::vector<double> all(size_t(size) / sizeof(double));
      std::memcpy(all.data(), data, all.size() * sizeof(double));
      written[field.name] = std::move(all);
    }
  }
  for (const auto& [argument, all] : written) values.write(find_field(fields, argument)->tensor(args), all);
}

std::string text(nb::handle object) {
  return text_of(object.ptr());
}

// The four fields of a Matrix: its elements, scales, zeros, and how it lies.
std::vector<Field> matrix_fields(const std::string& name, std::string dims, std::string_view dtypes) {
  std::vector<Field> made = {tensor_field(name, Access::kRead, std::move(dims), dtypes),
                             tensor_field(name + ".scales", Access::kRead, "., .", "f32"),
                             tensor_field(name + ".zeros", Access::kRead, "., .", "f32"),
                             attribute_field(name + ".transposed", AttributeType::kBool)};
  made[0].member = name + ".data";
  made[1].optional = made[2].optional = true;
  return made;
}

void add_tensors(OpSpec& op, const nb::list& tensors, const nb::list& matrices) {
  for (const nb::handle each : tensors) {
    const auto tensor = nb::cast<nb::tuple>(each);  // name, writes, dims, dtypes, optional
    if (nb::cast<bool>(matrices.attr("__contains__")(tensor[0]))) {
      std::ranges::move(matrix_fields(text(tensor[0]), text(tensor[2]), text(tensor[3])),
                        std::back_inserter(op.fields));
      continue;
    }
    Field field = tensor_field(text(tensor[0]), nb::cast<bool>(tensor[1]) ? Access::kWrite : Access::kRead,
                               text(tensor[2]), text(tensor[3]));
    field.optional = nb::cast<bool>(tensor[4]);
    op.fields.push_back(std::move(field));
  }
}

void add_attributes(OpSpec& op, const nb::list& attributes) {
  const std::map<std::string, AttributeType> types = {{"int", AttributeType::kI32},
                                                      {"float", AttributeType::kFloat},
                                                      {"bool", AttributeType::kBool},
                                                      {"str", AttributeType::kChoice}};
  for (const nb::handle each : attributes) {
    const auto attribute = nb::cast<nb::tuple>(each);  // name, type, choices, default or None
    std::vector<std::string> choices;
    for (const nb::handle choice : attribute[2]) choices.push_back(text(choice));
    op.fields.push_back(
        attribute_field(text(attribute[0]), types.at(text(attribute[1])), std::move(choices)));
  }
}

void set_defaults(OpSpec& op, const nb::list& attributes) {
  for (const nb::handle each : attributes) {
    const auto attribute = nb::cast<nb::tuple>(each);
    if (attribute[3].is_none()) continue;
    const std::string name = text(attribute[0]);
    set_attribute(op.name, *find_field(op.fields, name), op.defaults.data(),
                  attribute_value({op.name, name}, nb::object(attribute[3]).ptr()));
  }
}

// Dimensions of one element each: what an op does with dtypes follows from it. Bit n of `absent`: the optional tensor of
// that number is left out.
Case smallest_case(const std::string& op, const std::vector<Field>& fields,
                   const std::vector<std::byte>& defaults, u32 absent) {
  Case made{.name = "smallest", .args = defaults, .bound = 0, .prepare = nullptr};
  u32 bit = 1;
  for (const Field& field : fields) {
    if (!field.is_tensor()) continue;
    if (field.optional && (absent & std::exchange(bit, 2 * bit))) continue;
    std::vector<i32> shape;
    for (const FieldDim& dim : field.dims) {
      shape.push_back(dim.scale);
      if (dim.is_attribute) set_attribute(op, *find_field(fields, dim.name), made.args.data(), i64{1});
    }
    field.tensor(made.args.data()) = dense(field.dtypes.front(), shape);
  }
  return made;
}

// A case of the class, as heddle/own/cases.py describes it. Its tensors are dense, those that are turned in columns.
Case described_case(const std::string& op, const std::vector<Field>& fields,
                    const std::vector<std::byte>& defaults, const nb::dict& given) {
  Case made{.name = text(given["name"]), .args = defaults, .bound = 0, .prepare = nullptr};
  for (const auto& [key, value] : nb::cast<nb::dict>(given["attributes"]))
    set_attribute(op, *find_field(fields, text(key)), made.args.data(),
                  attribute_value({op, text(key)}, value.ptr()));
  for (const auto& [key, value] : nb::cast<nb::dict>(given["tensors"])) {
    const Field& field = *find_field(fields, text(key));
    const auto tensor = nb::cast<nb::tuple>(value);  // dtype as NumPy names it, sizes, whether it is turned
    const auto* const type = std::ranges::find(kDTypes, text(tensor[0]), &DTypeInfo::numpy);
    std::vector<i32> sizes;
    for (const nb::handle size : nb::object(tensor[1])) sizes.push_back(nb::cast<i32>(size));
    field.tensor(made.args.data()) = dense(type->type, sizes);
    if (!field.is_matrix()) continue;
    const bool turned = nb::cast<bool>(tensor[2]);
    std::memcpy(made.args.data() + field.transposed_at, &turned, sizeof turned);
  }
  return made;
}

// The smallest cases, and those of the class, which a whole kernel may need: `of_class` returns these.
std::vector<Case> cases_of(const std::string& op, const std::vector<Field>& fields,
                           const std::vector<std::byte>& defaults, PyObject* of_class) {
  std::vector<Case> cases;
  const auto optional = std::ranges::count_if(fields, &Field::optional);
  for (u32 absent = 0; absent < 1u << optional; ++absent)
    cases.push_back(smallest_case(op, fields, defaults, absent));
  const Locked python;
  const Object described = owned(PyObject_CallNoArgs(of_class));
  for (const nb::handle each : nb::cast<nb::list>(nb::handle(described.get())))
    cases.push_back(described_case(op, fields, defaults, nb::cast<nb::dict>(each)));
  return cases;
}

std::vector<TiledDim> read_tile(const OpSpec& op, const nb::list& tile) {
  std::vector<TiledDim> made;
  for (const nb::handle each : tile) {
    const auto given = nb::cast<nb::tuple>(each);  // name, elements, the value of a configuration or ""
    const std::string name = text(given[0]);
    const std::optional<DimPlace> place = place_of_dim(op.fields, name);
    require(place.has_value(), "[{}] tile has {}; must be a dimension of reads or writes that every call has",
            op.name, name);
    made.push_back({*place, name, nb::cast<i32>(given[1]), text(given[2])});
  }
  require(made.size() <= 2, "[{}] tile has {} dimensions; must have one or two", op.name, made.size());
  return made;
}

// Adds the op, and returns what its body's struct must look like: {"bytes": all, argument: offset}.
nb::dict add_own_op(const nb::dict& declared) {
  entries();  // the ops of this build come first
  OpSpec op;
  op.name = text(declared["name"]), op.doc = text(declared["doc"]);
  require(find_op(op.name) == nullptr, "[{}] is an op of heddle already; give the class another `name`",
          op.name);
  const auto attributes = nb::cast<nb::list>(declared["attributes"]);
  add_tensors(op, nb::cast<nb::list>(declared["tensors"]), nb::cast<nb::list>(declared["matrices"]));
  add_attributes(op, attributes);
  constexpr i64 kMostOptional = 8;
  require(std::ranges::count_if(op.fields, &Field::optional) <= kMostOptional,
          "[{}] has more than {} optional tensors; must have that many at most", op.name, kMostOptional);
  op.defaults = lay_out(op.fields);
  set_defaults(op, attributes);
  const auto own = std::make_shared<OwnOp>();
  own->name = op.name, own->fields = op.fields;
  own->tile = read_tile(op, nb::cast<nb::list>(declared["tile"]));
  for (const nb::handle piece : nb::cast<nb::list>(declared["scratch"])) {
    own->scratch.push_back(parse_dims(text(piece)));
    for (const FieldDim& dim : own->scratch.back())
      require(place_of_dim(op.fields, dim.name).has_value(),
              "[{}] scratch has {}; must be a dimension of reads or writes", op.name, dim.name);
  }
  if (!own->scratch.empty())
    op.scratch = [own](const std::byte* args, const TileCoord& tile) {
      return own->scratch_bytes(args, tile);
    };
  op.infer = [own, sizes = infer_from_dims(op.name, op.fields)](std::byte* args) {
    sizes(args);
    for (const Field& field : own->fields)
      if (field.is_matrix()) require_matrix(own->name.c_str(), field.name.c_str(), matrix_of(field, args));
  };
  op.axes = [own](const std::byte* args, const TilingTarget& target) {
    return own->axes(args, target.config);
  };
  op.flops = [own](const std::byte* args, const TileCoord& tile) { return own->flops(args, tile); };
  op.body = [own](const std::byte* args, const TileCoord& tile) { own->run_body(args, tile); };
  op.watched_body = [own](const std::byte* args, const TileCoord& tile, const AccessHook& hook) {
    own->run_watched(args, tile, hook);
  };
  op.text = [own] {
    const std::lock_guard lock(own->text_mutex);
    return own->device_text;
  };
  op.cases = [name = op.name, fields = op.fields, defaults = op.defaults,
              of_class = nb::object(declared["cases"]).release().ptr()] {
    return cases_of(name, fields, defaults, of_class);
  };
  op.traits.in_place = nb::cast<bool>(declared["in_place"]);
  if (const auto configs = own_configs(op.name, nb::cast<nb::list>(declared["configs"])); !configs.empty())
    op.configs = [configs](const std::byte*, const TilingTarget& target) {
      return configs_for(configs, target);
    };
  if (const nb::object plan = declared["plan"]; !plan.is_none())
    op.kernel = own_kernel_rule(op.name, op.fields, nb::object(plan).release().ptr(),
                                nb::cast<bool>(declared["needs_kernel"]));
  if (const nb::object reference = declared["reference"]; !reference.is_none()) {
    own->reference = nb::object(reference).release().ptr();
    op.reference = [own](const std::byte* args, Values& values) { own->run_reference(args, values); };
  }
  nb::dict layout;
  layout["bytes"] = op.args_size();
  for (const Field& field : op.fields) layout[nb::str(field.name.c_str())] = field.offset;
  own->compile = nb::object(declared["compile"]).release().ptr();
  OpEntry& entry = entries().emplace_back(add_op(std::move(op)));
  entry.is_own = true;
  entry.prepare_host = [own] {
    if (!own->run) owned(PyObject_CallNoArgs(own->compile));
  };
  own_ops()[own->name] = own;
  return layout;
}

void load_body(nb::handle name, nb::handle path) {
  OwnOp& own = own_op(text(name));
  void* const library = dlopen(text(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorCode::kIo, "[{}] its compiled body cannot be loaded: {}", own.name, dlerror());
  own.run_hooked = reinterpret_cast<RunTileHooked*>(dlsym(library, "heddle_run_hooked"));
  own.run = reinterpret_cast<RunTile*>(dlsym(library, "heddle_run"));
  require(own.run && own.run_hooked, "[{}] {} has no heddle_run", own.name, text(path));
}

// Runs the call with every access compared with what the declaration says of its tile. Throws Error for the first
// that is elsewhere.
void check_accesses(const nb::tuple& scheduled) {
  Kept kept;
  const ReadCall call = read_call(scheduled, kept);
  const MemoryGraph graph = graph_of_calls({&call.call, 1});
  const Node& node = graph.graph.nodes().front();
  std::vector<std::byte> args = node.main_part().args;
  for (const Field& field : call.call.op->fields) {
    if (!field.is_tensor() || field.tensor(args.data()).rank == 0) continue;
    Tensor& tensor = field.tensor(args.data());
    tensor.data = reinterpret_cast<u8*>(graph.memory.base[tensor.buffer]) + tensor.offset;
  }
  const OwnOp& own = own_op(call.call.op->name);
  AccessGuard guard;
  const AccessHook hook = guard.hook();
  const NodeRule rule(node);
  const auto run = [&](const std::vector<TileAxis>& axes) {
    for (const TileCoord& tile : default_tiles(axes)) {
      std::vector<Region> regions;
      rule.append(tile, regions);
      guard.begin(own.name, regions, graph.memory.base);
      own.run_watched(args.data(), tile, hook);
    }
  };
  std::vector<TileAxis> axes = axes_of(node, {});
  run(axes);
  // A GPU cuts tiles as small as one row, and a case of few rows has one tile only.
  axes.front().preferred = 1;
  run(axes);
}

// The text for backends that compile late: the struct of the arguments and its name, the body and its
// namespace.
void set_text(nb::handle name, nb::handle args, nb::handle scope, nb::handle header, nb::handle body) {
  OwnOp& own = own_op(text(name));
  const std::lock_guard lock(own.text_mutex);
  own.device_text = {text(args), text(scope), text(header), text(body)};
}

nb::dict headers() {
  nb::dict made;
  for (const EmbeddedFile& file : own_headers())
    made[nb::str(file.path.data(), file.path.size())] = nb::str(file.text.data(), file.text.size());
  return made;
}

}  // namespace

void add_own_ops(nb::module_& module) {
  module.def("add_own_op", &add_own_op);
  module.def("set_own_text", &set_text);
  module.def("load_body", &load_body);
  module.def("check_accesses", &check_accesses);
  module.def("own_headers", &headers);
  module.def("cache_folder", [] { return nb::str(cache_folder().c_str()); });
}

}  // namespace heddle::python
