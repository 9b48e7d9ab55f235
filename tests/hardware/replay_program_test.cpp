// memwall-replay from the outside: files in and out, exit codes, what it says.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ReplayProgram : public testing::Test {
 protected:
  ReplayProgram() {
    const Trace trace = rewritten(gpt_step({}), "offload:what=activations,to=nvme,min_bytes=0");
    schedule_ = schedule_of(trace);
    write_schedule(schedule_, input_);
  }

  // Its exit code; what it said is in out_ and error_.
  int replay(const std::string& arguments) {
    const CommandOutcome outcome = run_command("'" MEMWALL_REPLAY_PROGRAM "' " + arguments, folder_.path());
    out_ = outcome.out;
    error_ = outcome.err;
    return outcome.code;
  }
  // On the host back end, slow enough for a busy computer.
  int replay_here(const std::string& more) {
    return replay(input_.string() + " --backend host --capacity 64MiB --rate-host-to-device 1e8" +
                  " --rate-device-to-host 1e8 --rate-within-device 1e8 -o " + output_.string() + " " + more);
  }
  bool said(const std::string& part) const { return error_.find(part) != std::string::npos; }

  ScratchFolder folder_;
  std::filesystem::path input_ = folder_ / "x.schedule", output_ = folder_ / "x.execution.csv";
  Trace schedule_;
  std::string out_, error_;
};

TEST_F(ReplayProgram, ExecutesASchedule) {
  ASSERT_EQ(replay_here("--passes 2"), 0) << error_;
  const Execution e = read_execution(output_);
  EXPECT_EQ(e.schedule, schedule_.name);
  EXPECT_EQ(e.schedule_hash, schedule_hash(content_of(input_)));
  EXPECT_EQ(e.totals.size(), 2u);
  EXPECT_EQ(e.times.size(), schedule_.ops.size());
  EXPECT_EQ(value_of(e.environment, "backend"), "host");
  EXPECT_EQ(value_of(e.environment, "gpu.memory_bytes"), std::to_string(MiB(64)));
  EXPECT_GT(e.integrity.checks, 100u);
  for (const char* part :
       {"gpt on host", "total", "median of 2 passes", "forward", "backward", "host to nvme", "peak", "0 mismatches"})
    EXPECT_NE(out_.find(part), std::string::npos) << part << " in\n" << out_;
  EXPECT_TRUE(said("checked pass") && said("timed pass 2 of 2") && said("stand-alone times")) << error_;
  // The file that stood for NVMe is gone.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++files;
  EXPECT_EQ(files, 2u);  // schedule, execution
}

TEST_F(ReplayProgram, SaysWhatItWouldNeed) {
  EXPECT_EQ(replay(input_.string() +
                   " --backend host --capacity 1MiB --rate-host-to-device 1e8 --rate-device-to-host 1e8 "
                   "--rate-within-device 1e8 -o " +
                   output_.string()),
            2);
  EXPECT_TRUE(said("does not fit device memory") && said("bytes are missing")) << error_;
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(ReplayProgram, RefusesWrongUsage) {
  const std::string file = input_.string(), out = " -o " + output_.string();
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    EXPECT_EQ(replay(arguments), 2) << arguments;
    EXPECT_TRUE(said(part)) << arguments << ": " << error_;
    EXPECT_FALSE(std::filesystem::exists(output_));
  };
  refused("", "found 0 files to execute");
  refused(file, "there is no output; expected -o");
  refused(file + " " + file + out, "found 2 files");
  refused(file + " -o " + (folder_ / "none/x.csv").string(), "there is no folder");
  refused(file + " -o " + folder_.path().string(), "this is a folder");
  refused(file + " -o " + file, "would replace the schedule");
  std::filesystem::create_symlink("/dev/null", folder_ / "device");
  refused(file + " -o " + (folder_ / "device").string(), "this is no ordinary file");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "device"));
  refused(file + out + " --pases 3", "--passes");
  refused(file + out + " --passes 0", "--passes");
  refused(file + out + " --seconds x", "--seconds");
  refused(file + out + " --backend gpu", "--backend");
  refused(file + out + " --scratch " + (folder_ / "none").string(), "there is no such folder");
  refused(file + out + " --backend host --rate-host-to-device 1e13", "rate");
  refused(file + out + " --backend host --collectives nccl",
          "executing collectives with NCCL on several GPUs is not implemented; expected stand-in");
  refused(file + out + " --backend host --collectives none", "--collectives");
  refused(file + out + " --backend cuda --rate-host-to-device 1e9", "expected --backend host");
}

TEST_F(ReplayProgram, RefusesUnreadableInput) {
  EXPECT_EQ(replay((folder_ / "none").string() + " -o " + output_.string()), 6);
  EXPECT_TRUE(said("none")) << error_;
  const std::string text = content_of(input_);
  write_content(input_, text.substr(0, text.size() / 2));
  EXPECT_EQ(replay_here(""), 6);
  EXPECT_TRUE(said("x.schedule:") && said("expected")) << error_;
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(ReplayProgram, SaysWhyThereIsNoGpu) {
  if (cuda_unavailable_reason().empty()) GTEST_SKIP() << "there is one";
  EXPECT_EQ(replay(input_.string() + " --backend cuda -o " + output_.string()), 2);
  EXPECT_TRUE(said("cuda") || said("CUDA") || said("GPU")) << error_;
}

TEST_F(ReplayProgram, HelpNamesEveryFlag) {
  ASSERT_EQ(replay("--help"), 0);
  for (const char* flag : {"--backend", "--passes", "--seconds", "--scratch", "--capacity", "--rate-host-to-device",
                           "--rate-device-to-host", "--rate-within-device", "--collectives", "-o", "exit codes"})
    EXPECT_NE(out_.find(flag), std::string::npos) << flag;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
