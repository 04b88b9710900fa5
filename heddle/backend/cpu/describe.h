// What this machine has for the CPU backend.
#pragma once

#include <string>

namespace heddle {

// Bytes a second at which `threads` threads at once read memory that no cache holds; the best of a few rounds.
// 0 threads: one for each core this process may use.
double measure_read_bandwidth(int threads);

// Processor, cores and SIMD level in a few words.
std::string name_cpu();

// The lines of `heddle env`: processor, SIMD levels, memory, library.
std::string describe_cpu();

}  // namespace heddle
