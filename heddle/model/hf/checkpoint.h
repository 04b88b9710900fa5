// The weights of a model folder: model.safetensors, or the shards that model.safetensors.index.json names; without
// them pytorch_model.bin, or its shards. A GGUF file is a folder of its own. A caller's tensors may stand for them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/model/hf/composed_weights.h"
#include "heddle/model/hf/quantisation.h"
#include "heddle/model/hf/tensor_source.h"

namespace heddle {

class Checkpoint {
 public:
  // Maps all files and checks their headers; reads no weights.
  explicit Checkpoint(const std::string& folder);
  // The weights are `tensors`, whose path() stands for the folder, of a model that the text of a config.json describes.
  Checkpoint(std::shared_ptr<TensorSource> tensors, std::string config);

  const std::string& folder() const { return folder_; }
  bool has(const std::string& name) const { return places_.contains(name); }
  const std::vector<std::string>& names() const { return names_; }  // sorted
  // The tensors of names(), in the same order.
  const std::vector<const TensorEntry*>& entries() const { return entries_; }
  // Null if there is no such tensor.
  const TensorEntry* find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : found->second.entry;
  }
  // False for a tensor of a shard that the index does not name.
  bool is_listed(const std::string& name) const { return place_of(name).listed; }
  size_t bytes() const;  // over all tensors

  // The shape of a weight, as weight() gives it.
  std::vector<int64_t> shape(const std::string& name) const;
  // The type of a weight, as weight() gives it.
  DType dtype(const std::string& name) const;
  bool is_float(const std::string& name) const;
  // The tensor as it is stored, whatever its type.
  const TensorEntry& entry(const std::string& name) const { return *place_of(name).entry; }
  // True if two tensors have the same type, shape and bytes.
  bool same(const std::string& a, const std::string& b) const;
  // True for a weight of a type that is rounded to f32: F64.
  bool is_rounded(const std::string& name) const { return is_rounded(entry(name)); }
  static bool is_rounded(const TensorEntry& entry) { return entry.type == "F64"; }
  // True for blocks of MXFP4: bytes [..., n, 16] of two codes each, with a `_scales` tensor of exponents [..., n].
  bool is_mxfp4(const std::string& name) const;
  // True for codes [rows, cols] of e4m3 with a `_scale` or `_scale_inv` tensor.
  bool is_fp8(const std::string& name) const;
  // True for integers of 4 bits, eight in a word: `_packed`, with tensors `_scale` and `_shape`.
  bool is_packed(const std::string& name) const;
  // The code of a weight that codes() gives. Neither a code nor a reason: there is none, or it has floats.
  StoredCoding coding(const std::string& name) const;
  // The codes and scales of a weight with a coding(). The view is valid until forget().
  SourceCodes codes(const std::string& name) const;
  // The tensor of scales of a weight in MXFP4 or fp8; "": `name` is none.
  std::string scales_of(const std::string& name) const { return scales_of(name, entry(name)); }
  std::string scales_of(const std::string& name, const TensorEntry& entry) const;
  // The tensors that a weight's codes are read with: its scales, shape and zeros.
  std::vector<const TensorEntry*> parts_beside(const std::string& name) const;
  // Tells how config.json describes weights in codes; call it before they are read.
  void set_code_format(const CodeFormat& format);
  // Lets weight() give what `change` makes of it, in the same type and shape. It is then stored as floats to all others.
  using Change = std::function<std::vector<std::byte>(const TensorView& weight)>;
  void change(const std::string& name, Change change);
  bool is_changed(const std::string& name) const { return changes_.contains(name); }
  // A tensor of floats (f32, f16 or bf16; f64 is rounded to f32; MXFP4 is expanded to bf16, exactly; fp8 times its scales is
  // rounded to bf16, packed integers to the type of their scales), which all weights are. This does not check that
  // values are finite; code that reads all of them does. The view is valid until forget().
  TensorView weight(const std::string& name) const;
  // The weight in `space`, if it lies there and is stored as floats; nothing: only weight() has it.
  std::optional<TensorView> far(const std::string& name, const MemorySpace& space) const;
  // Tells the checkpoint from others: a digest of config.json and of each tensor's name, type, shape and
  // three samples of its data (beginning, middle and end, 4 KB each). It does not depend on the number of
  // files. Programs hold no weights, so a change that the samples miss cannot make a program wrong.
  std::string fingerprint() const;
  // Gives a tensor's memory back to the system once it is packed. No view of it may be used after that. Throws Error
  // when the file changed meanwhile.
  void forget(const std::string& name);

 private:
  struct Place {
    size_t file = 0;  // in files_
    const TensorEntry* entry = nullptr;
    bool listed = true;
    mutable std::optional<DType> dtype = {};  // the weight's, once somebody asked
    mutable std::optional<StoredCoding> coding = {};
  };

  const Place& place_of(const std::string& name) const;
  const TensorSource& file_with(const std::string& name) const { return *files_[place_of(name).file]; }
  DType find_dtype(const std::string& name) const;
  StoredCoding find_coding(const std::string& name) const;
  std::string stored_name(const std::string& name) const;
  struct PackedMatrix {
    std::vector<int64_t> shape = {};  // [rows, cols] as the file says; {}: nothing that fits
    int group = 0;
  };
  PackedMatrix packed_matrix(const std::string& name) const;
  std::span<const std::byte> checked_bytes(const std::string& name) const;
  void compose(const CodeFormat& format);
  void open_shards(const std::string& index_path);
  void take_all(std::shared_ptr<TensorSource> file);
  void sort_names();
  [[noreturn]] void fail_without_weights() const;

  std::string folder_;
  CodeFormat format_;
  std::string config_;  // the text of config.json; "": it is in the folder
  std::vector<std::shared_ptr<TensorSource>> files_;
  std::unordered_map<std::string_view, Place> places_;  // their names are the files'
  std::vector<std::string> names_;
  std::vector<const TensorEntry*> entries_;
  // Tensors that the index places wrongly, and the message for one that the model needs.
  std::map<std::string, std::string> misplaced_;
  std::shared_ptr<ComposedWeights> composed_;  // one of files_
  std::deque<std::string> packed_;             // names of weights that are stored as `_packed`
  std::span<const std::byte> converted(const std::string& name) const;
  TensorView unchanged(const std::string& name) const;

  std::map<std::string, Change> changes_;
  mutable std::map<std::string, std::vector<std::byte>> converted_;  // weights of types that heddle has not
  mutable std::map<std::string, std::vector<std::byte>> changed_;
};

}  // namespace heddle
