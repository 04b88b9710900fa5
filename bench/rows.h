// Rows of bench/gate.py: what a program measures, sample by sample, beside a fixed unit of work that says how fast the
// machine was at that moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heddle::bench {

class Rows {
 public:
  // Flags: --only NAME measures that row alone, --repeats N takes so many samples of a row, --list measures nothing.
  Rows(int argc, char** argv);
  // Prints the rows as JSON; with --only, fails where there is no such row.
  ~Rows();
  Rows(const Rows&) = delete;

  // Whether measure() would measure: what prepares a row can be left out where it is not wanted.
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
