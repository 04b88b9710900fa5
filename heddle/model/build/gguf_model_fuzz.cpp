// Any bytes are either refused with an Error, or a GGUF file each of whose tensors lies inside and can be expanded, with a
// configuration that a family reads or refuses.
#include <cstdint>
#include <span>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/gguf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, [](std::string_view bytes) {
    const heddle::GgufFile file(heddle::Gguf(std::as_bytes(std::span(bytes)), "fuzz.gguf"));
    for (const auto& [name, entry] : file.tensors()) {
      HEDDLE_CHECK(entry.begin <= bytes.size() && entry.size <= bytes.size() - entry.begin);
      size_t elems = 1;
      for (const int64_t dim : entry.shape) elems *= size_t(dim);
      HEDDLE_CHECK((entry.floats ? file.floats(name).size() / 2
                                 : file.view(name).data.size() * 8 / size_t(entry.bits)) == elems);
      if (entry.floats && file.coding(name).coding.code != heddle::Code::kNone)
        HEDDLE_CHECK(file.codes(name).bytes.size() == elems / 2);
    }
    const heddle::Config config = heddle::Config::parse(file.config(), "fuzz.gguf");
    const heddle::Inventory none{.has = [](const std::string&) { return false; },
                                 .dtype = [](const std::string&) { return heddle::DType::kBf16; }};
    (void)heddle::define_model(config, none);
  });
}
