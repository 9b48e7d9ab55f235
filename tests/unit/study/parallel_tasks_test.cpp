// Are all tasks done whatever the number of threads, and is the error the first task's?
#include "study/parallel_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ParallelTasks, AllAreDoneAndTheFirstErrorIsThrown) {
  for (const unsigned jobs : {0u, 1u, 3u, 100u}) {
    std::vector<int> done(7);
    std::vector<std::function<void()>> tasks;
    for (std::size_t i = 0; i < done.size(); ++i)
      tasks.emplace_back([&done, i] {
        done[i] = 1;
        if (i >= 4) throw std::runtime_error("task " + std::to_string(i));
      });
    try {
      run_tasks(tasks, jobs);
      FAIL() << "three of them fail";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 4");
    }
    EXPECT_EQ(done, std::vector<int>(7, 1));
  }
  run_tasks({}, 2);
}

class Stops : public Watch {
 public:
  void searched(double) override { throw std::runtime_error("nobody waits"); }
};

TEST(ParallelTasks, AWatchThatThrowsEndsThem) {
  for (const unsigned jobs : {1u, 3u}) {
    std::atomic<int> done = 0;
    std::vector<std::function<void()>> tasks(50, [&] {
      ++done;
      throw std::logic_error("of a task");
    });
    Stops watch;
    EXPECT_THROW(run_tasks(tasks, jobs, &watch), std::runtime_error) << "not what a task has thrown";
    EXPECT_LE(done, static_cast<int>(jobs)) << "each thread ends behind its first task";
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
