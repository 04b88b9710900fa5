// Describes what this machine has for the CPU backend.
#pragma once

#include <string>

namespace heddle {

// Measures how fast `threads` threads read memory that no cache holds, all at once: bytes per second, the best of a
// few rounds. 0 threads: one for each core that this process may use.
double measure_read_bandwidth(int threads);

// Names the processor, its cores and the SIMD level in a few words.
std::string name_cpu();

// Returns the lines of `heddle env`: processor, SIMD levels, memory, library.
std::string describe_cpu();

}  // namespace heddle
