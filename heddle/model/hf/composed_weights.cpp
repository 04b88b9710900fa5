#include "heddle/model/hf/composed_weights.h"

#include <fmt/format.h>

#include "heddle/model/hf/column_codes.h"
#include "heddle/model/hf/four_bit_codes.h"
#include "heddle/model/hf/row_codes.h"

namespace heddle {

ComposedByName compose_weights(const CodeFormat& format, const std::vector<std::string>& names,
                               const FindStored& find) {
  switch (format.kind) {
    case CodeFormat::Kind::kGptq:
    case CodeFormat::Kind::kAwq:
      return compose_column_codes(format, names, find);
    case CodeFormat::Kind::kInt8:
    case CodeFormat::Kind::kOther:
      break;
  }
  ComposedByName made = compose_row_codes(format, names, find);
  made.merge(compose_nvfp4(names, find));
  if (format.mxfp4) made.merge(compose_mxfp4(names, find));
  made.merge(compose_bitsandbytes(names, find));
  return made;
}

ComposedWeights::ComposedWeights(ComposedByName weights) : weights_(std::move(weights)) {
  for (const auto& [name, weight] : weights_) {
    const TensorEntry& codes = *weight.parts.front().entry;
    path_ = weight.parts.front().file->path();
    tensors_[name] = {.type = codes.type,
                      .dtype = {},
                      .bits = 0,
                      .shape = weight.shape,
                      .begin = codes.begin,
                      .size = codes.size,
                      .floats = weight.dtype};
  }
}

TensorView ComposedWeights::view(const std::string& name) const {
  return {name, weights_.at(name).dtype, weights_.at(name).shape, bytes(name), codes_of(name).file->path()};
}

std::vector<std::byte> ComposedWeights::floats(const std::string& name) const {
  for (const StoredTensor& part : parts(name)) part.file->require_undamaged(part.name);
  return weights_.at(name).floats();
}

StoredCoding ComposedWeights::coding(const std::string& name) const {
  return {.expanded = fmt::format("{} has no code in memory", weights_.at(name).what)};
}

void ComposedWeights::forget(const std::string& name) {
  for (const StoredTensor& part : parts(name)) part.file->forget(part.name);
}

}  // namespace heddle
