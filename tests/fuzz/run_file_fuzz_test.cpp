// Does a damaged run file always end in a sentence? Seeded, so that a failure can be repeated.
#include <random>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/run_file_editor.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/compared_run.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class RunFileFuzz : public testing::Test {
 protected:
  RunFileFuzz() {
    GptShape shape;
    shape.layers = 1;
    write_run(simulate_and_record(gpt_step(shape), test_machine(), {}), folder_ / "whole.h5");
    whole_ = content_of(folder_ / "whole.h5");
  }

  // True if the reader refuses; any other exception or a crash fails the test.
  bool refused(const std::string& bytes) {
    write_content(folder_ / "damaged.h5", bytes);
    const bool ops_refused = are_ops_refused();
    try {
      const memwall::Run run = read_run(folder_ / "damaged.h5");
      summarize(run);  // what was accepted can be used
      EXPECT_FALSE(ops_refused);
      return false;
    } catch (const InputError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      return true;
    }
  }

  // The same of whoever reads no more than ops.
  bool are_ops_refused() {
    try {
      const ComparedRun run = compared(read_run_ops(folder_ / "damaged.h5"));
      compare(run, run);
      return false;
    } catch (const InputError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      return true;
    }
  }

  ScratchFolder folder_;
  std::string whole_;
};

TEST_F(RunFileFuzz, AcceptsTheWholeFile) { EXPECT_FALSE(refused(whole_)); }

TEST_F(RunFileFuzz, RefusesEveryTruncation) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0, 1, 15, 16, 17, 55, 56, 4095, 4096, 4097})
    EXPECT_TRUE(refused(whole_.substr(0, size))) << size;
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = random() % whole_.size();
    EXPECT_TRUE(refused(whole_.substr(0, size))) << size;
  }
}

TEST_F(RunFileFuzz, RefusesEveryFlippedBit) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 600; ++i) {
    std::string bytes = whole_;
    // Half of the damage hits the head, where a byte matters most.
    const std::size_t at = random() % (i % 2 == 0 ? 4096 : bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    EXPECT_TRUE(refused(bytes)) << at;
  }
}

TEST_F(RunFileFuzz, RefusesForeignBytes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    std::string bytes(random() % 20'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 0) bytes.replace(0, std::min<std::size_t>(16, bytes.size()), whole_.substr(0, 16));
    EXPECT_TRUE(refused(bytes)) << i;
  }
}

// Damage in the numbers under right checksums: refused, or harmless; never a crash. Only bytes of columns
// are hit: HDF5's own structures are trusted once the checksum is right.
TEST_F(RunFileFuzz, SurvivesWrongNumbersUnderRightChecksums) {
  std::mt19937_64 random(4);
  const memwall::Run run = read_run(folder_ / "whole.h5");
  // Columns of small numbers lie in the file as plain runs of bytes: find the one of op kinds and those behind it.
  std::string kinds;
  for (const Op& op : run.trace->ops) kinds += static_cast<char>(op.kind);
  const std::size_t at = whole_.find(kinds);
  ASSERT_NE(at, std::string::npos);
  int refusals = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole_;
    const std::size_t hit = at + random() % kinds.size();
    bytes[hit] = static_cast<char>(random());
    reseal(bytes);
    refusals += refused(bytes);
  }
  EXPECT_GT(refusals, 200);  // most values are no kind of op
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
