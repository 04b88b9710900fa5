// What the engine needs of a model: a graph for any row class, and the weights that it names. Families make
// it (heddle/model); the engine knows none of them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/attention_plan.h"
#include "heddle/ir/graph.h"

namespace heddle {

// A tensor of a checkpoint: [rows, cols], or [cols, rows] when transposed; a vector has cols = 1. Or a part of one
// that has `all` rows: those from `begin` on.
struct WeightSource {
  std::string tensor;
  i32 rows = 0;
  bool transposed = false;
  i32 begin = 0, all = 0;  // 0: the whole tensor
};

// A packed matrix: the rows of its sources one after the other, then permuted: packed row r is row order[r]
// of that list (empty: in order).
struct WeightSpec {
  std::string name;
  DType dtype = DType::kF32;
  i32 cols = 0;
  std::vector<WeightSource> sources;
  std::vector<i32> order;

  i32 rows() const {
    i32 sum = 0;
    for (const WeightSource& source : sources) sum += source.rows;
    return sum;
  }
};

// A vector kept in f32: norms, biases, rotary frequencies. From sources (permuted like a matrix, where the order may
// name an element more than once) or values.
struct VectorSpec {
  std::string name;
  i32 size = 0;
  std::vector<WeightSource> sources;
  std::vector<i32> order;
  std::vector<float> values;
  float plus = 0;  // added to each element of the sources: norms that are stored less one
};

struct ModelInfo {
  std::string family;
  i32 vocab = 0;
  i32 max_positions = 0;
  std::string position_limit;  // why no more, where the checkpoint was made for more; for messages
  i32 layers = 0, kv_heads = 0, head_dim = 0;
  i32 window = 0;  // positions that a row of any layer sees at most, itself and those before it; 0: all
  DType weight_dtype = DType::kF32;
};

// How a model lays out a graph; chosen by the engine for a row class and a topology.
struct GraphRequest {
  StepShape shape;
  AttentionCut cut;
  i32 attention_queries = 0;  // rows x heads of a tile of attention; 0: as many as cut.block_rows give
  i32 wide_chunk = 64;        // positions that attention has on chip at a time where keys are wide
  DType kv_dtype = DType::kF32;
  DType travel_dtype = DType::kF32;  // of the vectors that calls hand on; the residual is f32 always
  i32 num_pages = 1;
  i32 panel_rows = 16;    // of packed weights
  i32 interleave = 2;     // of 16-bit weights
  bool resident = false;  // the f32 residual stays with the workers that own its rows; rounded copies travel
  bool sample = true;     // choose tokens in the program
  bool sample_parts = false;  // from parts that many tiles make of the scores
};

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

// Called as loading goes on, with bytes done and bytes in all.
using LoadProgress = std::function<void(size_t done, size_t all)>;

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual ModelGraph graph(const GraphRequest& request) const = 0;
  virtual SourceData source(const std::string& tensor) const = 0;
  // What tells the checkpoint from others.
  virtual std::string fingerprint() const = 0;
  virtual void forget(const std::string& tensor) const = 0;  // its memory may go back to the system
};

}  // namespace heddle
