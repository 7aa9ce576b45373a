// Threads of one sweep.
//
// Results must not depend on the number of threads: a task writes what no other task reads or
// writes, and takes its random numbers from a stream of its own (_random.hpp).
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace skihmm {

class Workers {
  public:
    explicit Workers(int32_t n) : n_(std::max(n, 1)) {}

    int32_t size() const { return n_; }
    // Call task(i, worker) for i = 0 .. n_tasks - 1, worker < size().  A worker makes one call
    // at a time, so that scratch may be stored by worker.  The first exception is thrown again
    // after all threads have ended.
    template <class Task> void run(int64_t n_tasks, Task task) const {
        const int32_t n = static_cast<int32_t>(std::min<int64_t>(n_, n_tasks));
        if (n <= 1) {
            for (int64_t i = 0; i < n_tasks; ++i) task(i, 0);
            return;
        }
        std::atomic<int64_t> next{0};
        std::exception_ptr error;
        std::mutex lock;
        const auto work = [&](int32_t worker) {
            try {
                for (int64_t i; (i = next.fetch_add(1)) < n_tasks;) task(i, worker);
            } catch (...) {
                next = n_tasks;
                const std::lock_guard<std::mutex> guard(lock);
                if (!error) error = std::current_exception();
            }
        };
        std::vector<std::thread> threads;
        threads.reserve(n - 1);
        try {
            for (int32_t worker = 1; worker < n; ++worker) threads.emplace_back(work, worker);
        } catch (...) {
            // The system gives no more threads: fewer do the work.
        }
        work(0);
        for (std::thread &thread : threads) thread.join();
        if (error) std::rethrow_exception(error);
    }

  private:
    int32_t n_;
};

// Steps per task of passes over all steps.
constexpr int64_t kStepsPerTask = int64_t{1} << 14;

// Call task(start, stop, worker) for consecutive ranges of 0 .. n - 1.
template <class Task> void run_ranges(const Workers &workers, int64_t n, Task task) {
    workers.run((n + kStepsPerTask - 1) / kStepsPerTask, [&](int64_t i, int32_t worker) {
        task(i * kStepsPerTask, std::min(n, (i + 1) * kStepsPerTask), worker);
    });
}

}  // namespace skihmm
