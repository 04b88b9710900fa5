// Passes over a graph. Each can be switched off; results stay equal within rounding. They match traits and
// shapes, and know no op by name.
#pragma once

#include "heddle/ir/graph.h"

namespace heddle {

struct PassOptions {
  bool fuse_epilogues = true;
  bool fuse_prologues = true;
  // Each tile of a main op computes its prologue again, so a prologue pays only for few rows,
  i32 max_prologue_rows = 16;
  // and only while its input is small.
  i32 max_prologue_bytes = 1 << 20;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("fuse_epilogues", s.fuse_epilogues, "let a linear op absorb the element-wise calls behind it");
    v("fuse_prologues", s.fuse_prologues, "let a linear op absorb the norm or merge before it");
    v("max_prologue_rows", s.max_prologue_rows, "rows up to which a prologue is absorbed");
    v("max_prologue_bytes", s.max_prologue_bytes, "bytes read up to which a prologue is absorbed");
  }
};

// Returns one line for each fusion, so that a fusion that did not happen is visible.
std::vector<std::string> run_passes(Graph& graph, const PassOptions& options);

}  // namespace heddle
