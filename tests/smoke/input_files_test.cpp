// Whatever a person names as an input: it is read, or a sentence says soon what it is.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <sstream>
#include <string>

#include "tests/support/program.h"
#include "tests/support/small_capture.h"
#include "tests/support/sqlite_writer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

class InputFiles : public ::testing::Test {
 protected:
  // `line` has `memwall` in it. A hang is code 124.
  CommandOutcome shell(const std::string& line) const {
    return run_command(
        kLimitMemory + std::string("memwall() { timeout -s KILL 60 '" MEMWALL_PROGRAM "' \"$@\"; }; ") + line,
        folder_.path());
  }
  void expect_refused(const std::string& line, const std::string& sentence) const {
    const CommandOutcome o = shell(line);
    EXPECT_EQ(o.code, 6) << line << "\n" << o.err;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << line << "\nexpected: " << sentence << "\n" << o.err;
  }
  // All lines but those that name the file.
  static std::string without_names(const std::string& out) {
    std::istringstream lines(out);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      if (line.find("stdin") == std::string::npos && line.find("capture") == std::string::npos &&
          line.find("report") == std::string::npos && line.find("pipe") == std::string::npos)
        kept += line + "\n";
    EXPECT_GT(kept.size(), 300u) << out;
    return kept;
  }
  const ScratchFolder folder_;
};

TEST_F(InputFiles, EveryVerbNamesWhatIsNoFile) {
  const struct {
    const char* path;
    const char* found;
  } kinds[] = {{".", "this is a folder"},
               {"/dev/zero", "this is a device"},
               {"/proc/self/mem", "the system makes this file up as it is read"},
               {"/proc/kmsg", "the system makes this file up as it is read"},
               {"./absent", "there is no such file"}};
  for (const auto& kind : kinds)
    for (const std::string& verb :
         {std::string("run '") + kSample + "' --machine ./MACHINE", std::string("export FILE --to csv"),
          std::string("compare FILE FILE"), std::string("render FILE -o x.svg"), std::string("memory FILE"),
          std::string("forecast FILE"), std::string("inspect FILE"), std::string("run FILE"),
          std::string("generate FILE.textproto")}) {
      std::string line = "memwall " + verb;
      if (const std::size_t at = line.find("./MACHINE"); at != std::string::npos) {
        line.replace(at, 9, std::string(kind.path) == "." ? "./" : kind.path);
      } else if (line.find(".textproto") != std::string::npos) {
        run_command("ln -sfn '" + std::string(kind.path) + "' FILE.textproto", folder_.path());
      } else {
        for (std::size_t file; (file = line.find("FILE")) != std::string::npos;) line.replace(file, 4, kind.path);
      }
      if (std::string(kind.path) == "." && (line.find(" run .") != std::string::npos || line.find("inspect .") != std::string::npos)) continue;  // a folder of ranks
      const CommandOutcome o = shell(line);
      EXPECT_TRUE(o.code == 6 || o.code == 2) << line << ": " << o.code << "\n" << o.err;
      EXPECT_EQ(o.out, "") << line;
      if (verb != "generate FILE.textproto") {
        EXPECT_NE(o.err.find(kind.found), std::string::npos) << line << "\n" << o.err;
      }
    }
}

// What Nsight Systems alone can read: the command that exports it.
TEST_F(InputFiles, ReportsOfNsightNameTheCommandThatExportsThem) {
  for (const char* name : {"step.nsys-rep", "step.qdrep"}) {
    const std::string make = std::string("printf 'QuadD\\001\\002' > ") + name + "; ";
    expect_refused(make + "memwall run " + name,
                   std::string("nsys export --type sqlite --output step.sqlite ") + name);
  }
  expect_refused("printf 'QuadD\\001' > step.qdstrm; memwall run step.qdstrm", "QdstrmImporter --input-file step.qdstrm");
}

// The answer of a capture without GPU work is a sentence, not a step time.
TEST_F(InputFiles, ACaptureThatIsNoReplayIsRunWhenAsked) {
  std::string capture = small_capture();
  for (std::size_t at; (at = capture.find("\"cat\":\"kernel\"")) != std::string::npos;)
    capture.replace(at, 14, "\"cat\":\"overhead\"");
  for (std::size_t at; (at = capture.find("\"cat\":\"gpu_memcpy\"")) != std::string::npos;)
    capture.replace(at, 18, "\"cat\":\"overhead\"");
  write_content(folder_ / "no_gpu.json", capture);
  for (const char* verb : {"run", "plan", "compare-policies"}) {
    const CommandOutcome refused = shell(std::string("memwall ") + verb + " no_gpu.json");
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("was ProfilerActivity.CUDA on?"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--accept-gaps"), std::string::npos) << refused.err;
  }
  EXPECT_NE(shell("memwall inspect no_gpu.json").out.find("The capture is not a replay"), std::string::npos);
  const CommandOutcome asked = shell("memwall run no_gpu.json --accept-gaps --format json");
  EXPECT_NE(asked.out.find("\"state\": \"not a replay\""), std::string::npos) << asked.out;
  EXPECT_NE(asked.err.find("The capture is not a replay"), std::string::npos) << asked.err;
}

// A hundred launches of 50 us each, of which some have no kernel in the file.
std::string with_missing_kernels(int missing) {
  std::string text =
      R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85044166656}],"traceEvents":[)";
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i), at = std::to_string(1'000'000 + 100 * i);
    const std::string call = R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":)";
    text += (i == 0 ? "" : ",\n") + call + at + R"(,"dur":5,"args":{"correlation":)" + id + "}}";
    if (i < missing) continue;
    const std::string start = std::to_string(1'000'008 + 100 * i);
    text += R"(,{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":)" + start +
            R"(,"dur":50,"args":{"device":0,"stream":7,"correlation":)" + id + "}}";
  }
  return text + "]}";
}

// Gaps are told with the answer; beyond 5 % they are accepted before there is one.
TEST_F(InputFiles, GapsBeyondTheLimitAreRunWhenAsked) {
  write_content(folder_ / "few.json", with_missing_kernels(4));
  write_content(folder_ / "many.json", with_missing_kernels(10));
  const CommandOutcome told = shell("memwall run few.json --format json");
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out.find("\"state\": \"gaps\""), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("\"over_limit\": false"), std::string::npos) << told.out;
  EXPECT_NE(told.err.find("The capture has gaps, its step time may be wrong. 4 of 100 launches"), std::string::npos)
      << told.err;
  for (const char* verb : {"run", "plan", "compare-policies"}) {
    const CommandOutcome refused = shell(std::string("memwall ") + verb + " many.json");
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("10 of 100 launches of kernels have no kernel in the file"), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("--accept-gaps"), std::string::npos) << refused.err;
  }
  const CommandOutcome asked = shell("memwall run many.json --accept-gaps --format json");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_NE(asked.out.find("\"state\": \"gaps\""), std::string::npos) << asked.out;
  EXPECT_NE(asked.out.find("\"over_limit\": true"), std::string::npos) << asked.out;
  EXPECT_NE(asked.err.find("its step time is likely wrong"), std::string::npos) << asked.err;
}

// A profile of the CPU alone names no GPU: that no GPU work was recorded is told before a machine is asked for.
TEST_F(InputFiles, AProfileOfTheCpuAloneIsToldThatBeforeAMachineIsAskedFor) {
  write_content(folder_ / "cpu.json",
                R"({"schemaVersion":1,"traceEvents":[
  {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":100,"ts":1000,"dur":50,"args":{"External id":1}},
  {"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":100,"ts":1060,"dur":50,"args":{"External id":2}}]})");
  for (const char* verb : {"run", "plan", "compare-policies", "explain"}) {
    const CommandOutcome refused = shell(std::string("memwall ") + verb + " cpu.json");
    EXPECT_NE(refused.code, 0);
    const std::size_t why = refused.err.find("The file has no work on a GPU and no call that launches some");
    const std::size_t asked = refused.err.find("--measured-on");
    EXPECT_NE(why, std::string::npos) << verb << ": " << refused.err;
    EXPECT_LT(why, asked) << verb << ": " << refused.err;
    EXPECT_NE(refused.err.find("was ProfilerActivity.CUDA on?"), std::string::npos) << verb << ": " << refused.err;
    EXPECT_NE(refused.err.find("--accept-gaps"), std::string::npos) << verb << ": " << refused.err;
  }
}

// A shell variable that is not set.
TEST_F(InputFiles, AnEmptyCompleteStepIsRefused) {
  write_content(folder_ / "capture.json", small_capture());
  const CommandOutcome refused = shell("memwall run capture.json --onto ''");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("expected a capture, a trace or a network's name"), std::string::npos) << refused.err;
}

TEST_F(InputFiles, PipesAreReadAsFilesAre) {
  write_content(folder_ / "capture.json", small_capture());
  const std::string file = shell("memwall inspect capture.json --format csv").out;
  ASSERT_FALSE(file.empty());
  for (const char* line : {"cat capture.json | memwall inspect /dev/stdin --format csv",
                           "gzip -c capture.json | memwall inspect /dev/stdin --format csv",
                           "mkfifo pipe; cat capture.json >pipe & memwall inspect pipe --format csv"}) {
    const CommandOutcome o = shell(line);
    EXPECT_EQ(o.code, 0) << line << o.err;
    EXPECT_EQ(without_names(o.out), without_names(file)) << line;
  }
  write_content(folder_ / "report.sqlite", nsys_report());
  const std::string report = shell("memwall inspect report.sqlite --format csv").out;
  EXPECT_FALSE(report.empty());
  EXPECT_EQ(without_names(shell("cat report.sqlite | memwall inspect /dev/stdin --format csv").out),
            without_names(report));
  ASSERT_EQ(shell("tar cf both.tar capture.json report.sqlite").code, 0);
  EXPECT_EQ(without_names(shell("cat both.tar | memwall inspect /dev/stdin:capture.json --format csv").out),
            without_names(file));
  EXPECT_EQ(shell("cat '" + kSample + "' | memwall run /dev/stdin -o run.h5").code, 0);
  EXPECT_EQ(shell("cat run.h5 | memwall export /dev/stdin --to csv").out, shell("memwall export run.h5 --to csv").out);
  EXPECT_EQ(shell("memwall machines show a100-sxm-40gb >/dev/null; cat '" MEMWALL_SOURCE
                  "/models/hw/machines/t4.textproto' | memwall run '" +
                  kSample + "' --machine /dev/stdin")
                .code,
            0);
  EXPECT_EQ(shell("cat run.h5 | memwall forecast /dev/stdin").code, shell("memwall forecast run.h5").code);
}

TEST_F(InputFiles, APipeWithoutAWriterIsRefusedSoon) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* verb : {"inspect pipe", "export pipe --to csv"})
    expect_refused(std::string("memwall ") + verb, "pipe: this is a pipe to which nobody has written for 5 s");
}

// A name in a capture is whatever its program called a kernel.
TEST_F(InputFiles, NamesNeverCommandATerminal) {
  std::string capture = small_capture();
  const std::string name = "vectorized_elementwise_kernel";
  for (std::size_t at; (at = capture.find(name)) != std::string::npos;)
    capture.replace(at, name.size(), "evil\\u001b[2J\\u009b2J\\u0007\\u202e\\nmemwall: all is well\\nkernel");
  write_content(folder_ / "evil.json", capture);
  write_content(folder_ / "\x1b[2J.json", capture.substr(0, 1000));
  ASSERT_EQ(shell("memwall run evil.json --machine h100-sxm-80gb -o run.h5").code, 0);
  ASSERT_EQ(shell("memwall run evil.json --machine h100-sxm-80gb --scale kernels=2 -o slow.h5").code, 0);
  for (const char* line :
       {"memwall inspect evil.json", "memwall import evil.json --explain",
        "memwall run evil.json --machine h100-sxm-80gb", "memwall run evil.json --machine h100-sxm-80gb --format json",
        "memwall export run.h5 --to csv -o -", "memwall export run.h5 --to chrome -o -",
        "memwall export run.h5 --to json -o -", "memwall render run.h5 -o -.svg; cat ./-.svg",
        "memwall compare run.h5 slow.h5", "memwall compare run.h5 slow.h5 --format csv",
        "memwall inspect \"$(printf '\\033[2J.json')\"", "memwall \"$(printf '\\033[2J')\"",
        "memwall roofline evil.json --machine h100-sxm-80gb"}) {
    const CommandOutcome o = shell(line);
    const std::string all = o.out + o.err;
    EXPECT_GT(all.size(), 20u) << line;
    EXPECT_LE(o.code, 6) << line;
    EXPECT_TRUE(line != std::string("memwall compare run.h5 slow.h5") || o.out.find("evil") != std::string::npos)
        << o.out;
    // There a line of a name stands within quotes or an element.
    const bool quoted =
        std::string(line).find("csv") != std::string::npos || std::string(line).find("svg") != std::string::npos;
    EXPECT_TRUE(quoted || all.find("\nmemwall: all is well") == std::string::npos) << line << "\n"
                                                                                   << all.substr(0, 2000);
    for (const char* command : {"\x1b", "\x07", "\xc2\x9b", "\xe2\x80\xae"})
      EXPECT_EQ(all.find(command), std::string::npos) << line << "\n" << all.substr(0, 2000);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
