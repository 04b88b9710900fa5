#include "python/src/scored_op.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "heddle/base/error.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

using RunTile = void(const std::byte* args, const i32* tile);

// The texts and the body of an op, which are set after it was added.
struct Late {
  std::string name;
  OpText text;                          // for a GPU
  std::atomic<RunTile*> run = nullptr;  // for the CPU
  PyObject* compile = nullptr;  // a function of Python that loads `run`; never released, as ops are not
};

std::map<std::string, std::shared_ptr<Late>, std::less<>>& all_late() {
  static std::map<std::string, std::shared_ptr<Late>, std::less<>> all;
  return all;
}

std::string text(nb::handle object) {
  return text_of(object.ptr());
}

// Tensors of a function of scores follow the arguments of the op: they are the last members of a struct that derives from its own.
void add_captured(OpSpec& op, const nb::list& captured) {
  for (const nb::handle each : captured) {
    const auto tensor = nb::cast<nb::tuple>(each);  // name, dimensions, dtype
    Field field = tensor_field(text(tensor[0]), Access::kRead, text(tensor[1]), text(tensor[2]));
    field.offset = op.defaults.size();
    op.defaults.resize(field.offset + sizeof(Tensor));
    new (op.defaults.data() + field.offset) Tensor();
    op.fields.push_back(std::move(field));
    ++op.args_fields;
  }
}

// The configuration of a whole kernel whose blocks leave registers for a function of scores; none: there is no choice.
OpConfig roomy_config(const OpSpec& base, const std::byte* args, const KernelTarget& target) {
  if (!base.configs) return {};
  for (const OpConfig& config : configs_of(base, args, {.gpu = true, .kernels = &target}))
    if (config.contains("groups") && config.at("groups") == 2 && config.at("keys") == 128) return config;
  return {};
}

// Adds an op that is `base` with a function of its scores, and returns what the struct of its arguments must look like.
nb::dict add_scored_op(const nb::dict& declared) {
  entries();  // the ops of this build come first
  const OpSpec& base = get_op(text(declared["base"]));
  const auto late = std::make_shared<Late>();
  OpSpec op = base;
  op.name = late->name = text(declared["name"]), op.doc = text(declared["doc"]);
  const size_t own_fields = op.fields.size();
  add_captured(op, nb::cast<nb::list>(declared["captured"]));
  const std::vector<Field> captured(op.fields.begin() + i64(own_fields), op.fields.end());
  op.regions = [&base, captured](const std::byte* args, const TileCoord& tile, std::vector<Region>& out) {
    base.regions(args, tile, out);
    for (const Field& field : captured) out.push_back(whole(field.tensor(args), Access::kRead));
  };
  op.configs = nullptr;
  op.kernel = [&base](const std::byte* args, const KernelTarget& target, const OpConfig&) {
    return base.kernel(args, target, roomy_config(base, args, target));
  };
  op.reference = nullptr;
  op.cases = [&base, all = op.defaults] {
    std::vector<Case> cases = base.cases();
    for (Case& made : cases)  // without the tensors of the function
      made.args.insert(made.args.end(), all.begin() + i64(made.args.size()), all.end());
    return cases;
  };
  op.body = [late](const std::byte* args, const TileCoord& tile) {
    RunTile* const body = late->run;
    if (!body) fail(ErrorCode::kUnsupported, "[{}] has no body that was compiled", late->name);
    body(args, tile.at);
  };
  op.text = [late] { return late->text; };
  if (const nb::object backward = declared["backward"]; !backward.is_none()) {
    static std::map<std::string, std::string> names;  // names of calls are literals, or as long-lived
    for (GradientCall& call : op.gradient)
      if (call.op == base.name + "_backward")
        call.op = names.try_emplace(op.name, text(backward)).first->second;
  }
  nb::dict layout;
  layout["bytes"] = op.args_size();
  for (const Field& field : captured) layout[nb::str(field.name.c_str())] = field.offset;
  late->compile = nb::object(declared["compile"]).release().ptr();
  OpEntry& entry = entries().emplace_back(add_op(std::move(op)));
  entry.is_own = true;
  entry.prepare_host = [late] {
    if (!late->run) owned(PyObject_CallNoArgs(late->compile));
  };
  all_late()[late->name] = late;
  return layout;
}

Late& late_of(nb::handle name) {
  const auto found = all_late().find(text(name));
  require(found != all_late().end(), "[{}] is no op with a function of its scores", text(name));
  return *found->second;
}

// Before the op's first call.
void set_scored_text(nb::handle name, const nb::tuple& given) {
  late_of(name).text = {text(given[0]), text(given[1]), text(given[2]), text(given[3])};
}

void load_scored_body(nb::handle name, nb::handle path) {
  Late& late = late_of(name);
  void* const library = dlopen(text(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorCode::kIo, "[{}] its compiled body cannot be loaded: {}", late.name, dlerror());
  late.run = reinterpret_cast<RunTile*>(dlsym(library, "heddle_run"));
  require(late.run, "[{}] {} has no heddle_run", late.name, text(path));
}

}  // namespace

void add_scored_ops(nb::module_& module) {
  module.def("add_scored_op", &add_scored_op);
  module.def("set_scored_text", &set_scored_text);
  module.def("load_scored_body", &load_scored_body);
}

}  // namespace heddle::python
