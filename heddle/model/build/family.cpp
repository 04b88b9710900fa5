#include "heddle/model/build/family.h"

namespace heddle {
namespace {

class CheckpointModel : public Model {
 public:
  CheckpointModel(Definition definition, Checkpoint checkpoint)
      : definition_(std::move(definition)), checkpoint_(std::move(checkpoint)) {}

  const ModelInfo& info() const override { return definition_.info; }
  ModelGraph graph(const GraphRequest& request) const override {
    Builder builder(request, definition_.info);
    definition_.build(builder);
    return builder.take();
  }
  SourceData source(const std::string& tensor) const override {
    const TensorView view = checkpoint_.weight(tensor);
    return {view.dtype, {view.shape.begin(), view.shape.end()}, view.data};
  }
  std::string fingerprint() const override { return checkpoint_.fingerprint(); }
  void forget(const std::string& tensor) const override { checkpoint_.forget(tensor); }

 private:
  Definition definition_;
  mutable Checkpoint checkpoint_;
};

}  // namespace

Definition define_model(const Config& config, const Inventory& tensors) {
  std::string known;
  for (const Family* family : all_families()) {
    if (config.model_type() == family->model_type) {
      Definition definition = family->define(config, tensors);
      definition.info.family = family->model_type;
      return definition;
    }
    known += std::string(known.empty() ? "" : ", ") + family->model_type;
  }
  config.refuse("model_type", "supported are " + known);
}

std::unique_ptr<Model> open_model(const std::string& folder) {
  const Config config = Config::load(folder);
  Checkpoint checkpoint(folder);
  Definition definition = define_model(
      config, {.has = [&](const std::string& tensor) { return checkpoint.has(tensor); },
               .dtype = [&](const std::string& tensor) { return checkpoint.weight(tensor).dtype; }});
  return std::make_unique<CheckpointModel>(std::move(definition), std::move(checkpoint));
}

}  // namespace heddle
