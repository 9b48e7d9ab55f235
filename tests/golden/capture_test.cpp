// Do import, inspect and run say exactly what they should of a captured step, and is a bad one refused in a sentence?
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

// One linear layer, its gradient, an update.
constexpr const char* kCapture =
    R"({"format":"memwall-capture","version":1,"name":"linear","mode":"fake","device":"cuda","program":{"torch":"2.9.0","memwall_capture":"0.1.0"},"choices":{"optimizer":"foreach","autocast":"bf16"},"samples_per_step":4,"notes":["Written by hand."]}
{"storage":0,"bytes":33554432,"kind":"parameter","place":"hbm","label":"layers.0.weight","preexisting":true}
{"storage":1,"bytes":33554432,"kind":"input","place":"hbm","label":"x"}
{"storage":2,"bytes":33554432,"kind":"input","place":"host_pinned","label":"batch","preexisting":true}
{"step":"step 0"}
{"alloc":1}
{"copy":33554432,"from":"host_pinned","to":"hbm","reads":[2],"writes":[1],"name":"aten::copy_"}
{"storage":3,"bytes":33554432,"kind":"activation","place":"hbm","label":"aten::mm"}
{"alloc":3}
{"op":"aten::mm","id":0,"module":"layers.0","phase":"forward","reads":[0,1],"writes":[3],"inputs":[[[4096,4096],"bf16",1],[[4096,4096],"bf16",0]],"outputs":[[[4096,4096],"bf16",3]],"flops":137438953472,"bytes":100663296,"class":"gemm","dtype":"bf16","saves":[1]}
{"op":"aten::view","id":1,"module":"layers.0","phase":"forward","reads":[3],"writes":[],"kernels":0}
{"loss":true}
{"storage":4,"bytes":33554432,"kind":"gradient","place":"hbm","label":"layers.0.weight.grad"}
{"alloc":4}
{"op":"aten::mm","id":2,"module":"layers.0","phase":"backward","reads":[1,3],"writes":[4],"flops":137438953472,"bytes":100663296,"class":"gemm","dtype":"bf16","forward":0}
{"free":3}
{"free":1}
{"collective":"all_reduce","bytes":33554432,"ranks":8,"group":"dp","phase":"backward","reads":[4],"writes":[4]}
{"op":"aten::_foreach_add_","id":3,"phase":"optimizer","reads":[0,4],"writes":[0],"bytes":100663296,"class":"optimizer","dtype":"fp32","kernels":2}
{"free":4}
{"synchronize":"device"}
)";

class CapturedStepCommands : public ::testing::Test {
 protected:
  void SetUp() override { write_content(folder_ / "step.mwc", kCapture); }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }

  void equals_golden(const std::string& name, const std::string& text) { expect_golden(name + ".txt", text); }

  // `text` as a capture must be refused by import with exit code 6 and this sentence, and nothing be written.
  void refuses(const std::string& text, const std::string& sentence) {
    write_content(folder_ / "bad.mwc", text);
    const CommandOutcome o = run("import bad.mwc -o bad.mwt");
    EXPECT_EQ(o.code, 6) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(sentence), std::string::npos) << "expected: " << sentence << "\nfound: " << o.err;
    EXPECT_FALSE(fs::exists(folder_ / "bad.mwt"));
  }

  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  ScratchFolder folder_;
};

TEST_F(CapturedStepCommands, ImportReportsWhatItFound) {
  const CommandOutcome o = run("import step.mwc -o step.mwt");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
  equals_golden("import_capture", o.err);
  EXPECT_TRUE(fs::exists(folder_ / "step.mwt"));
}

TEST_F(CapturedStepCommands, InspectOffersThePolicies) {
  const CommandOutcome o = run("inspect step.mwc");
  EXPECT_EQ(o.code, 0) << o.err;
  equals_golden("inspect_capture", o.out);
}

TEST_F(CapturedStepCommands, RunModelsItForTheMachineAndSaysSo) {
  const CommandOutcome o = run("run step.mwc --machine h100-sxm-80gb --no-provenance");
  EXPECT_EQ(o.code, 0) << o.err;
  equals_golden("run_capture", o.out);
}

TEST_F(CapturedStepCommands, TheFileAndItsTraceAndItsGzipAreTheSame) {
  write_content(folder_ / "packed", gzipped(kCapture));
  ASSERT_EQ(run("import packed -o step.mwt").code, 0);
  const std::string arguments = " --machine a100-sxm-40gb --policy offload:what=activations --format json";
  const auto result = [&](const std::string& file) {  // all but which file it was
    const CommandOutcome o = run("run " + file + arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("\"inputs\""), std::string::npos);
    return o.out.substr(0, o.out.find("\"inputs\""));
  };
  EXPECT_EQ(result("packed"), result("step.mwc"));
  EXPECT_EQ(result("step.mwt"), result("step.mwc"));
}

TEST_F(CapturedStepCommands, ScheduleTakesItToo) {
  const std::string text = kCapture;
  const std::size_t begin = text.find("{\"collective\""), end = text.find('\n', begin) + 1;
  write_content(folder_ / "alone.mwc", text.substr(0, begin) + text.substr(end));  // a schedule is for one GPU
  const CommandOutcome o = run("schedule alone.mwc --machine h100-sxm-80gb -o step.mws");
  EXPECT_EQ(o.code, 0) << o.err;
}

TEST_F(CapturedStepCommands, WithoutAMachineItAsksForOne) {
  const CommandOutcome o = run("run step.mwc");
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_NE(
      o.err.find("step.mwc: nothing in it was measured; give --machine, for which its durations are then modelled "
                 "(`memwall machines` lists them)."),
      std::string::npos)
      << o.err;
}

TEST_F(CapturedStepCommands, BadFilesAreRefused) {
  const std::string good = kCapture;
  refuses(replaced(good, "\"version\":1", "\"version\":2"), "bad.mwc, line 1: the capture is of version 2");
  refuses(replaced(good, "\"mode\":\"fake\"", "\"mode\":\"fakes\""), "bad.mwc, line 1: \"mode\" is 'fakes'");
  refuses(replaced(good, "{\"alloc\":3}\n", ""),
          "bad.mwc, line 9: the record writes storage 3 'aten::mm', which has not been");
  refuses(replaced(good, "{\"free\":3}", "{\"free\":1}"),
          "bad.mwc, line 17: the record frees storage 1 'x', which was freed in line 16.");
  refuses(replaced(good, "\"reads\":[0,4]", "\"reads\":[0,3]"),
          "bad.mwc, line 19: the record reads storage 3 'aten::mm', which was freed in line 16.");
  refuses(good.substr(0, good.size() - 5), "bad.mwc, line 21: found JSON that cannot be parsed");
  const std::string packed = gzipped(good);
  refuses(packed.substr(0, packed.size() / 2), "expected a whole gzip stream");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
