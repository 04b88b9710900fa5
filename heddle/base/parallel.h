// Work on several threads that start, work and end inside one call. The calling thread is one of them. If the
// system starts fewer threads than requested, one line on stderr says so, and the threads that run do all of
// the work.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace heddle {

// The system's numbers of the cores that this process may run on; empty when the system does not say.
std::vector<int> allowed_core_ids();
// The number of threads that can run at once: one for each of these cores, or as many as a CPU quota gives
// time for, rounded up; at least 1.
int allowed_cores();
// Says the number and its reason: "2 cores for this process, by its affinity".
std::string describe_cores();

// Calls job(0) to job(jobs - 1) once each, in order of their start, on up to `threads` threads (0: one for
// each allowed core). After an exception no further job starts; when all running jobs have ended, the
// exception of the lowest job is thrown again.
void parallel_for(size_t jobs, int threads, const std::function<void(size_t job)>& job);

// Calls work(thread, started) on each of `threads` threads (0: one for each allowed core) at the same time.
// `started` of them run, so they may wait for each other. When all have ended, the exception of the lowest
// thread is thrown again. Returns `started`.
int run_together(int threads, const std::function<void(int thread, int started)>& work);

}  // namespace heddle
