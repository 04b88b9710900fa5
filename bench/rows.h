// Rows of the gate (bench/run.py --compare): a program measures samples of its work, and around each a fixed unit of work that
// shows how fast the machine was at that moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heddle::bench {

class Rows {
 public:
  // Flags: --only NAME measures one row, --repeats N takes this many samples of a row, --list measures
  // nothing.
  Rows(int argc, char** argv);
  // Prints the rows as JSON; with --only, fails where there is no such row.
  ~Rows();
  Rows(const Rows&) = delete;

  // True if measure() will measure this row: the preparation of other rows can be skipped.
  bool wants(const std::string& name) const { return !list_ && (only_.empty() || only_ == name); }
  // Runs `action` once to warm up and then for each sample; time of the process's threads, which other processes do not
  // add to.
  void measure(const std::string& name, const std::function<void()>& action);

 private:
  struct Row {
    std::string name;
    std::vector<double> ms, unit_ms;
  };

  std::string only_;
  int repeats_ = 10;
  bool list_ = false;
  std::vector<Row> rows_;
};

}  // namespace heddle::bench
