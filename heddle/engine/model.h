// Defines what the engine needs from a model: a graph for any row class, and the weights that it names.
// Families make it (heddle/model); the engine knows none of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/attention_plan.h"
#include "heddle/ir/graph.h"

namespace heddle {

class MemorySpace;

// A tensor of a checkpoint: [rows, cols], or [cols, rows] when transposed; a vector has cols = 1. It may be a
// part of a tensor that has `all` rows: those from `begin` on.
struct WeightSource {
  std::string tensor;
  i32 rows = 0;
  bool transposed = false;
  i32 begin = 0, all = 0;  // 0: the whole tensor
};

// A packed matrix. Its sources are stacked by rows and then permuted: packed row r is row order[r] of the
// stack (empty: in order).
struct WeightSpec {
  std::string name;
  DType dtype = DType::kF32;
  i32 cols = 0;
  std::vector<WeightSource> sources;
  std::vector<i32> order;
  Coding coding;  // the sources' codes and scales stay as they are, where they have some
  std::string
      expanded;  // why they do not, though a source is stored in a code; "": they stay, or there are none

  i32 rows() const {
    i32 sum = 0;
    for (const WeightSource& source : sources) sum += source.rows;
    return sum;
  }
};

// A vector in f32: norms, biases, rotary frequencies. It comes from values and then sources (both permuted
// like a matrix; the order may name an element more than once).
struct VectorSpec {
  std::string name;
  i32 size = 0;
  std::vector<WeightSource> sources;
  std::vector<i32> order;
  std::vector<float> values;
  float plus = 0;                   // added to each element of the sources: some norms are stored minus one
  std::vector<float> factors = {};  // multiply the elements of the vector; none: they stay
};

struct ModelInfo {
  std::string family;
  std::vector<std::string> notes;  // what a user should know about how the checkpoint was read
  i32 vocab = 0;
  i32 max_positions = 0;
  // A context beyond this changes the frequencies of all positions, so the default stays within; 0: none does.
  i32 short_positions = 0;
  std::string position_limit;  // for messages: which contexts may be chosen, and why
  i32 layers = 0, kv_heads = 0, head_dim = 0;
  i32 window = 0;  // most positions that a row of any layer sees, including its own; 0: all
  // Layers keep something of each sequence that only its last position tells: it cannot be rewound, nor begin with
  // the pages of another.
  bool recurrent = false;
  DType weight_dtype = DType::kF32;

  // Positions of a sequence if nobody asks for another number, unless the engine has a lower one.
  i32 default_positions() const { return short_positions > 0 ? short_positions : max_positions; }
};

// The layout that a model gives its graph. The engine chooses this for a row class and a topology.
struct GraphRequest {
  StepShape shape;
  i32 context = 0;  // positions that a sequence may have
  AttentionCut cut;
  bool fixed_splits = false;  // as Target has it
  i32 attention_queries = 0;  // rows x heads in a tile of attention; 0: as many as cut.block_rows gives
  i32 wide_chunk = 64;        // positions that attention keeps on chip at a time if keys are wide
  DType kv_dtype = DType::kF32;
  DType travel_dtype = DType::kF32;  // type of the vectors that calls pass on; the residual is always f32
  i32 num_pages = 1;
  i32 slots = 1;          // sequences that may be open
  i32 panel_rows = 16;    // rows of a panel of packed weights
  i32 interleave = 2;     // interleave of 16-bit weights
  bool codes = false;     // weights that are stored in codes stay so
  i32 code_bytes = 1;     // adjacent bytes of a row of theirs
  bool resident = false;  // the f32 residual stays with the workers that own its rows; rounded copies travel
  bool sample = true;     // choose tokens in the program
  bool sample_parts = false;  // from parts of the scores that many tiles make
};

// The buffer that says what sequences ask of scores (ir/score_edits.h).
constexpr const char* kScoreEdits = "sample.edits";

struct ModelGraph {
  Graph graph;
  std::map<std::string, WeightSpec> weights;  // by buffer name
  std::map<std::string, VectorSpec> vectors;
};

// One tensor of the checkpoint, row-major.
struct SourceData {
  DType dtype = DType::kF32;
  std::vector<i64> shape;
  std::span<const std::byte> bytes;
};

// The code that a tensor has in a file, and can have in memory; or why it cannot.
struct StoredCoding {
  Coding coding = {};
  std::string expanded = {};
};

// One matrix of the checkpoint as it is stored, or several that follow one another: codes, and a scale for each row and group.
struct SourceCodes {
  Coding coding;
  DType dtype = DType::kBf16;  // values' type
  std::vector<i64> shape;
  std::span<const std::byte> bytes;                  // rows of whole bytes
  std::vector<float> scales;                         // [rows of all matrices, groups]
  std::vector<float> zeros = {};                     // like scales, subtracted from codes; empty: none
  std::shared_ptr<std::vector<std::byte>> own = {};  // holds `bytes` where the file has others
};

// Tensors as a checkpoint has them, by the names of WeightSource.
class WeightValues {
 public:
  virtual ~WeightValues() = default;
  virtual bool has(const std::string&) const { return true; }
  // The tensor where it lies, if that is in `space`, row after row; nothing: only source() has it.
  virtual std::optional<SourceData> far(const std::string&, const MemorySpace&) const { return {}; }
  // Floats, into which codes are expanded. The view is valid until forget().
  virtual SourceData source(const std::string& tensor) const = 0;
  // The codes of a source of a WeightSpec that has a coding.
  virtual SourceCodes codes(const std::string& tensor) const;
  virtual void forget(const std::string& tensor) const = 0;  // returns its memory to the system
};

// Called while loading, with the bytes done and the bytes in all.
using LoadProgress = std::function<void(size_t done, size_t all)>;

class Model : public WeightValues {
 public:
  virtual const ModelInfo& info() const = 0;
  virtual ModelGraph graph(const GraphRequest& request) const = 0;
  // Identifies the checkpoint.
  virtual std::string fingerprint() const = 0;
};

}  // namespace heddle
