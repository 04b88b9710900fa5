// Describes what this machine has for the CPU backend.
#pragma once

#include <string>

#include "heddle/base/types.h"

namespace heddle {

// Measures how fast `threads` threads read memory that no cache holds, all at once: bytes per second, the best of a
// few rounds. 0 threads: one for each core that this process may use.
double measure_read_bandwidth(int threads);

// Throws Error if the device is not 0: the CPU is one device.
void require_cpu(i32 device);

// Names the processor, its cores and the SIMD level in a few words.
std::string name_cpu();

// Returns the lines of `heddle env`: processor, SIMD levels, memory, library.
std::string describe_cpu();

}  // namespace heddle
