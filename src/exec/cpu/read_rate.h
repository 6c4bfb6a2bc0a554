#pragma once
#include "base/thread_pool.h"

namespace doppler::cpu {

/// GB/s at which the pool's threads read memory that no cache holds: the best of a few passes over 256 MiB.
double read_rate(ThreadPool& pool);

}  // namespace doppler::cpu
