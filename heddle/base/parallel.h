// Work on several threads that start, work and end inside one call. The calling thread is one of them. Where the system
// starts fewer threads than were asked for, one line on stderr says so and those that run do all of the work.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace heddle {

// The cores that this process may run on, by the system's numbers; none where it does not say.
std::vector<int> allowed_core_ids();
// How many they are, at least 1.
int allowed_cores();

// Calls job(0) to job(jobs - 1), each once, on up to `threads` threads (0: one for each allowed core), in order of their
// start. After an exception no job starts any more; when all have ended, that of the lowest job is thrown again.
void parallel_for(size_t jobs, int threads, const std::function<void(size_t job)>& job);

// Calls work(thread, started) at once on each of `threads` threads (0: one for each allowed core); `started` of them run,
// so that they may wait for each other. When all have ended, the exception of the lowest thread is thrown again. Returns
// `started`.
int run_together(int threads, const std::function<void(int thread, int started)>& work);

}  // namespace heddle
