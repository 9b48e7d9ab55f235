// Does `memwall roofline` print exactly what it should of a captured step, and refuse what it cannot do?
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {


// Two layers: a product, then scale and activation; the loss's gradient; an update. The scaled products are used
// by the activation alone.
constexpr const char* kCapture =
    R"({"format":"memwall-capture","version":1,"name":"two layers","mode":"fake","device":"cuda","program":{"torch":"2.9.0","memwall_capture":"0.1.0"},"choices":{"optimizer":"foreach"},"samples_per_step":4,"notes":["Written by hand."]}
{"storage":0,"bytes":8388608,"kind":"parameter","place":"hbm","label":"layers.0.weight","preexisting":true}
{"storage":1,"bytes":8388608,"kind":"input","place":"hbm","label":"x"}
{"storage":2,"bytes":8388608,"kind":"input","place":"host_pinned","label":"batch","preexisting":true}
{"step":"step 0"}
{"alloc":1}
{"copy":8388608,"from":"host_pinned","to":"hbm","reads":[2],"writes":[1],"name":"aten::copy_"}
{"storage":3,"bytes":8388608,"kind":"activation","place":"hbm","label":"aten::mm"}
{"alloc":3}
{"op":"aten::mm","id":0,"module":"layers.0","phase":"forward","reads":[0,1],"writes":[3],"inputs":[[[2048,2048],"fp16",1],[[2048,2048],"fp16",0]],"outputs":[[[2048,2048],"fp16",3]],"flops":17179869184,"bytes":25165824,"class":"gemm","dtype":"fp16","saves":[1]}
{"storage":4,"bytes":8388608,"kind":"activation","place":"hbm","label":"aten::mul"}
{"alloc":4}
{"op":"aten::mul","id":1,"module":"layers.0","phase":"forward","reads":[3],"writes":[4],"inputs":[[[2048,2048],"fp16",3]],"outputs":[[[2048,2048],"fp16",4]],"flops":4194304,"bytes":16777216,"class":"elementwise","dtype":"fp16"}
{"free":3}
{"storage":5,"bytes":8388608,"kind":"activation","place":"hbm","label":"aten::relu"}
{"alloc":5}
{"op":"aten::relu","id":2,"module":"layers.0","phase":"forward","reads":[4],"writes":[5],"inputs":[[[2048,2048],"fp16",4]],"outputs":[[[2048,2048],"fp16",5]],"flops":4194304,"bytes":16777216,"class":"elementwise","dtype":"fp16","saves":[5]}
{"free":4}
{"storage":6,"bytes":8388608,"kind":"activation","place":"hbm","label":"aten::mm"}
{"alloc":6}
{"op":"aten::mm","id":3,"module":"layers.1","phase":"forward","reads":[0,5],"writes":[6],"inputs":[[[2048,2048],"fp16",5],[[2048,2048],"fp16",0]],"outputs":[[[2048,2048],"fp16",6]],"flops":17179869184,"bytes":25165824,"class":"gemm","dtype":"fp16","saves":[5]}
{"op":"aten::_foreach_add_","id":4,"phase":"optimizer","reads":[0,6],"writes":[0],"flops":4194304,"bytes":25165824,"class":"optimizer","dtype":"fp32","kernels":1}
{"synchronize":"device"}
)";

class RooflineCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_content(folder_ / "step.mwc", kCapture); }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }

  void prints(const std::string& name, const std::string& arguments) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    expect_golden(name + ".txt", o.out);
  }

  void refuses(const std::string& arguments, int code, const std::string& sentence) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
  }

  ScratchFolder folder_;
};

TEST_F(RooflineCommand, Tables) {
  prints("roofline_table", "roofline step.mwc --machine rtx-2080ti");
  prints("roofline_csv", "roofline step.mwc --machine rtx-2080ti --top 2 --csv");
  prints("roofline_json", "roofline step.mwc --machine rtx-2080ti --fusion fusion:epilogues=gemm --format json");
  prints("help_roofline", "roofline --help");
  prints("policies_show_fusion", "policies show fusion");
}

TEST_F(RooflineCommand, APictureIsWrittenBesideTheTables) {
  EXPECT_EQ(run("roofline step.mwc --machine rtx-2080ti --svg picture.svg").code, 0);
  const std::string picture = content_of(folder_ / "picture.svg");
  EXPECT_NE(picture.find("two layers on rtx-2080ti: roofline"), std::string::npos);
  EXPECT_NE(picture.find("mm, forward"), std::string::npos);
  EXPECT_EQ(run("roofline step.mwc --machine rtx-2080ti --svg -").out, picture);
}

// After fusion there is nothing left to save, and the table says so.
TEST_F(RooflineCommand, AFusedStepHasNothingLeft) {
  const CommandOutcome o = run("roofline step.mwc --machine rtx-2080ti --policy fusion");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("fused(mul,relu)"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("aten::relu"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("nothing is left to merge"), std::string::npos) << o.out;
}

TEST_F(RooflineCommand, RefusesInASentence) {
  refuses("roofline step.mwc", 2, "nothing in it was measured; give --machine");
  refuses("roofline step.mwc --machine rtx-2080ti --svg picture.png", 2, "the picture is written as .svg");
  refuses("roofline step.mwc --machine rtx-2080ti --json --csv", 2, "choose one");
  refuses("roofline step.mwc --machine rtx-2080ti --fusion fusion:what=some", 2, "elementwise");
  refuses("roofline step.mwc --machine rtx-2080ti --fusion checkpoint", 2, "fusion");
  refuses("roofline absent.mwc --machine rtx-2080ti", 6, "absent.mwc");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
