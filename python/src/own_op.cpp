#include "python/src/own_op.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>

#include <dlfcn.h>

#include "heddle/backend/cpu/plain_block.h"
#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/base/cache_folder.h"
#include "heddle/base/error.h"
#include "heddle/ir/infer.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/tile_grid.h"
#include "python/src/arguments.h"
#include "python/src/describe.h"
#include "python/src/graph.h"
#include "python/src/own_headers.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// Where a tiled dimension stands in the tensors.
struct TiledDim {
  std::string name;
  i32 preferred = 0;  // elements in a tile; 0: all
  size_t field = 0, at = 0;
};

// The functions of the library of a body, as python/heddle/body.py writes them.
using RunTile = void(const std::byte* args, const i32* tile);
using RunTileHooked = void(const std::byte* args, const i32* tile, const AccessHook* hook);

struct OwnOp {
  std::string name;
  std::vector<Field> fields;
  std::vector<TiledDim> tile;
  std::atomic<RunTile*> run = nullptr;
  std::atomic<RunTileHooked*> run_hooked = nullptr;
  PyObject* reference = nullptr;  // a function of Python; never released, as ops are not

  std::vector<TileAxis> axes(const std::byte* args) const {
    std::vector<TileAxis> axes;
    for (const TiledDim& dim : tile)
      axes.push_back({.dim = dim.name,
                      .extent = fields[dim.field].tensor(args).size[dim.at],
                      .preferred = dim.preferred});
    return axes;
  }
  // Two operations for each element that it writes: nobody says what the body computes.
  double flops(const std::byte* args, const TileCoord& tile_at) const {
    double part = 2;
    for (size_t i = 0; i < tile.size(); ++i)
      part *= double(tile_at[int(2 * i + 1)] - tile_at[int(2 * i)]) /
              fields[tile[i].field].tensor(args).size[tile[i].at];
    double elements_written = 0;
    for (const Field& field : fields)
      if (field.writes()) elements_written += double(elements(field.tensor(args)));
    return part * elements_written;
  }
  void run_body(const std::byte* args, const TileCoord& tile_at) const {
    RunTile* const body = run;
    if (!body) fail(ErrorCode::kUnsupported, "[{}] has no body that was compiled", name);
    body(args, tile_at.at);
  }
  void run_reference(const std::byte* args, Values& values) const;
};

std::map<std::string, std::shared_ptr<OwnOp>, std::less<>>& own_ops() {
  static std::map<std::string, std::shared_ptr<OwnOp>, std::less<>> all;
  return all;
}

OwnOp& own_op(const std::string& name) {
  const auto found = own_ops().find(name);
  if (found == own_ops().end()) fail(ErrorCode::kInvalidArgument, "[{}] is no op that Python declared", name);
  return *found->second;
}

// Holds the interpreter.
class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

nb::bytes bytes_of(std::span<const double> values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Calls Python with {argument: (f64 values, sizes)} of what is read, {argument: sizes} of what is written, and the
// attributes; it returns {argument: f64 values}.
void OwnOp::run_reference(const std::byte* args, Values& values) const {
  std::map<std::string, std::vector<double>> read;
  for (const Field& field : fields)
    if (field.is_tensor() && !field.writes() && field.tensor(args).rank > 0)
      read[field.name] = values.read(field.tensor(args));
  std::map<std::string, std::vector<double>> written;
  {
    const Locked python;
    nb::dict inputs, outputs, attributes;
    for (const Field& field : fields) {
      const nb::str key(field.name.c_str());
      if (field.is_attribute()) {
        attributes[key] = attribute_object(field, args);
        continue;
      }
      const Tensor& tensor = field.tensor(args);
      if (tensor.rank == 0) continue;
      nb::list sizes;
      for (int d = 0; d < tensor.rank; ++d) sizes.append(tensor.size[d]);
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

void add_tensors(OpSpec& op, const nb::list& tensors) {
  for (const nb::handle each : tensors) {
    const auto tensor = nb::cast<nb::tuple>(each);  // name, writes, dims, dtypes, optional
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

std::vector<TiledDim> read_tile(const OpSpec& op, const nb::list& tile) {
  std::vector<TiledDim> made;
  for (const nb::handle each : tile) {
    const auto given = nb::cast<nb::tuple>(each);  // name, elements
    TiledDim dim{.name = text(given[0]), .preferred = nb::cast<i32>(given[1])};
    bool known = false;
    for (size_t f = 0; f < op.fields.size() && !known; ++f)
      for (size_t d = 0; d < op.fields[f].dims.size() && !known; ++d)
        if (op.fields[f].dims[d].name == dim.name && op.fields[f].dims[d].scale == 1)
          dim.field = f, dim.at = d, known = true;
    require(known, "[{}] tile has {}; must be a dimension of reads or writes", op.name, dim.name);
    made.push_back(std::move(dim));
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
  add_tensors(op, nb::cast<nb::list>(declared["tensors"]));
  add_attributes(op, attributes);
  op.defaults = lay_out(op.fields);
  set_defaults(op, attributes);
  const auto own = std::make_shared<OwnOp>();
  own->name = op.name, own->fields = op.fields;
  own->tile = read_tile(op, nb::cast<nb::list>(declared["tile"]));
  op.infer = infer_from_dims(op.name, op.fields);
  op.axes = [own](const std::byte* args, const TilingTarget&) { return own->axes(args); };
  op.flops = [own](const std::byte* args, const TileCoord& tile) { return own->flops(args, tile); };
  op.body = [own](const std::byte* args, const TileCoord& tile) { own->run_body(args, tile); };
  op.cases = [] { return std::vector<Case>(); };
  op.traits.in_place = nb::cast<bool>(declared["in_place"]);
  if (const nb::object reference = declared["reference"]; !reference.is_none()) {
    own->reference = nb::object(reference).release().ptr();
    op.reference = [own](const std::byte* args, Values& values) { own->run_reference(args, values); };
  }
  nb::dict layout;
  layout["bytes"] = op.args_size();
  for (const Field& field : op.fields) layout[nb::str(field.name.c_str())] = field.offset;
  entries().emplace_back(add_op(std::move(op))).is_own = true;
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
  RunTileHooked* const run = own.run_hooked;
  require(run != nullptr, "[{}] has no body that was compiled", own.name);
  AccessGuard guard;
  const AccessHook hook{&guard, [](void* to, const void* address, i64 bytes, bool writes) {
                          auto& listener = *static_cast<AccessGuard*>(to);
                          writes ? listener.store(const_cast<void*>(address), bytes)
                                 : listener.load(address, bytes);
                        }};
  const NodeRule rule(node);
  try {
    for (const TileCoord& tile : default_tiles(axes_of(node, {}))) {
      std::vector<Region> regions;
      rule.append(tile, regions);
      std::string place = fmt::format("[{}, {})", tile[0], tile[1]);
      if (own.tile.size() > 1) place += fmt::format(" x [{}, {})", tile[2], tile[3]);
      guard.begin(fmt::format("{}, tile {}", own.name, place), regions, graph.memory.base);
      run(args.data(), tile.at, &hook);
    }
  } catch (const Error& error) {
    std::string names;
    for (const Field& field : own.fields)
      if (field.is_tensor() && field.tensor(args.data()).rank > 0)
        names += fmt::format("{} buffer {} is {}", names.empty() ? ";" : ",",
                             field.tensor(args.data()).buffer, field.name);
    throw Error(ErrorCode::kInvalidArgument, error.what() + names);
  }
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
  module.def("load_body", &load_body);
  module.def("check_accesses", &check_accesses);
  module.def("own_headers", &headers);
  module.def("cache_folder", [] { return nb::str(cache_folder().c_str()); });
}

}  // namespace heddle::python
