// Is a container's memory limit read where control groups of either version state it?
#include "validate/replay/memory_limit.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class MemoryLimitTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    write_content(root_ / path, text);
  }
  fs::path root() const { return root_ / "."; }

  const ScratchFolder root_;
};

TEST_F(MemoryLimitTest, IsThatOfTheGroupWhereItIsTheRootOfWhatIsSeen) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "68719476736\n");
  write("sys/fs/cgroup/memory.current", "1024\n");
  EXPECT_EQ(container_memory_limit(root()), GiB(64));
  EXPECT_EQ(container_memory_use(root()), 1024);
}

TEST_F(MemoryLimitTest, IsTheTightestOfTheGroupsAround) {
  write("proc/self/cgroup", "0::/pods/job/rank\n");
  write("sys/fs/cgroup/pods/job/rank/memory.max", "max\n");
  write("sys/fs/cgroup/pods/job/memory.max", "34359738368\n");
  write("sys/fs/cgroup/pods/job/memory.current", "7\n");
  write("sys/fs/cgroup/pods/memory.max", "68719476736\n");
  EXPECT_EQ(container_memory_limit(root()), GiB(32));
  EXPECT_EQ(container_memory_use(root()), 7);
}

TEST_F(MemoryLimitTest, IsReadOfVersionOneToo) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "5\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(container_memory_limit(root()), GiB(2));
  EXPECT_EQ(container_memory_use(root()), 5);
}

TEST_F(MemoryLimitTest, IsNothingWhereNobodyLimits) {
  EXPECT_EQ(container_memory_limit(root()), std::nullopt) << "no control groups at all";
  write("proc/self/cgroup", "0::/\n9:memory:/\nno line of it\n");
  EXPECT_EQ(container_memory_limit(root()), std::nullopt);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(container_memory_limit(root()), std::nullopt);
  EXPECT_EQ(container_memory_use(root()), 0);
}

TEST_F(MemoryLimitTest, OfThisComputerIsNoLessThanWhatIsFree) {
  if (const auto limit = container_memory_limit()) {
    EXPECT_GT(*limit, 0);
    EXPECT_LE(available_memory(), *limit);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
