// Threads that help with large calls of single ops. They are not pinned, start when they are first wanted, and sleep
// between calls unless one follows another at once. A process that forks has none of them in the child, which starts its own.
#pragma once

#include <functional>

#include "heddle/base/types.h"

namespace heddle {

// work(i) for all i < count, by at most `threads` threads, the caller's own among them; it returns when all are done.
// While others are in such a call the caller works alone. Throws what a `work` throws first.
void share_work(int threads, i64 count, const std::function<void(i64)>& work);

}  // namespace heddle
