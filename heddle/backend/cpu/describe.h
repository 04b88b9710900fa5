// What this machine has for the CPU backend.
#pragma once

#include <string>

namespace heddle {

// Bytes a second at which `threads` threads at once read memory that no cache holds; the best of a few rounds.
double measure_read_bandwidth(int threads);

// The lines of `heddle env`: processor, SIMD levels, memory, library.
std::string describe_cpu();

}  // namespace heddle
