// Which files of a command line, a folder or an archive are captures of a job's ranks, and which one is a rank's?
#include "models/workload/import/ranks/job_files.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "study/workload_file.h"
#include "tests/support/archives.h"
#include "tests/support/capture_of_rank.h"
#include "tests/support/gzip.h"
#include "tests/support/rocm_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"
#include "tests/support/sqlite_writer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class JobFilesTest : public ::testing::Test {
 protected:
  static std::string rank(int number) { return capture_of_rank(number, 1'700'000'000'000'000'000, 0); }
  fs::path file(const std::string& name, const std::string& content) const {
    write_content(folder_ / name, content);
    return folder_ / name;
  }
  // A job as profilers leave it: a folder per rank, and what is no capture.
  fs::path job() const {
    return file("job.tar.gz", gzipped(tar_of({{"job/rank1/trace.json", rank(1)},
                                              {"job/rank0/trace.json", rank(0)},
                                              {"job/README.txt", "two ranks\n"}})));
  }
  template <class Error, class Function>
  static std::string refusal(Function&& function) {
    try {
      function();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  static bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  ScratchFolder folder_;
};

TEST_F(JobFilesTest, AnArchiveOfSeveralStandsForTheirRanks) {
  for (const fs::path& archive :
       {job(), file("job.zip", zip_of({{"a.json", rank(0)}, {"b.json", rank(1)}, {"c.txt", "x"}}))}) {
    EXPECT_TRUE(stands_for_several(archive));
    const JobFiles files = job_files({archive}, {});
    ASSERT_EQ(files.files.size(), 2u);
    EXPECT_TRUE(contains(files.notes.at(0), archive.string() + ": 2 captures")) << files.notes.at(0);
    EXPECT_TRUE(contains(files.left_out.at(0), ".txt")) << files.left_out.at(0);
    const Workload joined = load_workload(std::vector<fs::path>{archive}, {});
    EXPECT_EQ(joined.kind, "2 ranks, Kineto capture");
    EXPECT_EQ(joined.trace.rank_table.size(), 2u);
    EXPECT_EQ(joined.files, (std::vector<fs::path>{archive}));
  }
}

TEST_F(JobFilesTest, OneRankIsTakenByItsNumber) {
  for (int number : {0, 1}) {
    const Workload one =
        load_workload(std::vector<fs::path>{job()}, {}, JobSettings{.rank = static_cast<std::uint32_t>(number)});
    EXPECT_EQ(one.kind, "Kineto capture");
    EXPECT_TRUE(std::ranges::any_of(one.trace.notes, [&](const std::string& note) {
      return note.starts_with("Rank " + std::to_string(number) + " of 2 is present");
    }));
  }
  const std::string told =
      refusal<UsageError>([&] { load_workload(std::vector<fs::path>{job()}, {}, JobSettings{.rank = 2}); });
  EXPECT_TRUE(contains(told, "--rank 2: the captures are of the ranks 0 (trace.json), 1 (trace.json)")) << told;
}

TEST_F(JobFilesTest, RanksThatNobodyTellsAreCountedInTheirOrder) {
  fs::create_directory(folder_ / "f");
  write_content(folder_ / "f" / "a.json", small_capture());
  write_content(folder_ / "f" / "b.sqlite", nsys_report());
  write_content(folder_ / "f" / "c.db", rocpd_database());
  const JobFiles files = job_files({folder_ / "f"}, {});
  ASSERT_EQ(files.files.size(), 3u);
  EXPECT_EQ(file_of_rank(files, 1).capture.filename(), "b.sqlite");
  EXPECT_EQ(load_workload(std::vector<fs::path>{folder_ / "f"}, {}, JobSettings{.rank = 2}).kind, "ROCm profile");
  EXPECT_TRUE(contains(refusal<UsageError>([&] { file_of_rank(files, 3); }), "by their order, as they do not say it"));
}

TEST_F(JobFilesTest, AFileOfOneRankIsOfNoOther) {
  const fs::path told = file("a.json", rank(1)), untold = file("b.json", small_capture());
  EXPECT_EQ(load_workload(std::vector<fs::path>{told}, {}, JobSettings{.rank = 1}).kind, "Kineto capture");
  EXPECT_TRUE(
      contains(refusal<UsageError>([&] { load_workload(std::vector<fs::path>{told}, {}, JobSettings{.rank = 0}); }),
               "holds one rank, 1;"));
  EXPECT_TRUE(
      contains(refusal<UsageError>([&] { load_workload(std::vector<fs::path>{untold}, {}, JobSettings{.rank = 0}); }),
               "holds one rank;"));
}

TEST_F(JobFilesTest, AnArchiveWithoutCapturesNamesItsFiles) {
  const fs::path archive = file("other.zip", zip_of({{"a.txt", "x"}, {"b.txt", "y"}}));
  const std::string told = refusal<InputError>([&] { load_workload(std::vector<fs::path>{archive}, {}); });
  EXPECT_TRUE(contains(told, "the archive holds 2 files; expected one, or which: ")) << told;
  EXPECT_TRUE(contains(told, "It holds a.txt, b.txt")) << told;
  // One capture beside other files is that capture.
  const fs::path one = file("one.zip", zip_of({{"a.json", rank(1)}, {"b.txt", "y"}}));
  const Workload alone = load_workload(std::vector<fs::path>{one}, {});
  EXPECT_EQ(alone.kind, "Kineto capture");
  EXPECT_TRUE(contains(alone.report.at(0) + alone.report.at(1), "left out, as no capture of a rank: one.zip:b.txt"))
      << alone.report.at(0) << alone.report.at(1);
  // A bomb is none.
  const fs::path bomb =
      file("bomb.tar.gz", gzipped(tar_of({{"a.json", std::string(80 << 20, ' ')}, {"b.json", "{}"}})));
  EXPECT_NE(refusal<InputError>([&] { load_workload(std::vector<fs::path>{bomb}, {}); }), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
