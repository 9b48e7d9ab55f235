// Does every kind of misspelled name get the nearest valid one?
#include <gtest/gtest.h>

#include <string>

#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(NearestNames, AreToldForEveryKindOfName) {
  const ScratchFolder folder;
  write_content(folder / "small.pickle", pickled(small_snapshot()));
  const std::string sample = "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt' ";
  const struct {
    std::string arguments;
    const char* nearest;
  } mistakes[] = {
      {"runn x", "nearest: \"run\""},
      {"help rnu", "nearest: \"run\""},
      {"rnu --help", "nearest: \"run\""},
      {"machines shw t4", "nearest: \"show\""},
      {"manual rnu", "nearest: \"run\""},
      {"completion bsh", "'bash'"},
      {"run x --polcy y", "nearest: \"--policy\""},
      {"machines --formt csv", "nearest: \"--format\""},
      {"machines --format jsn", "nearest: \"json\""},
      {"machines --color nver", "'never'"},
      {"machines show t5", "nearest: \"t4\""},
      {"run " + sample + "--machine H100-SXM-80GB", "nearest: \"h100-sxm-80gb\""},
      {"run " + sample + "--measured-on h100-sxm-80g", "nearest: \"h100-sxm-80gb\""},
      {"run " + sample + "--policy zer", "'zero'"},
      {"run " + sample + "--policy Zero", "'zero'"},
      {"run " + sample + "--policy zero:stge=1", "'stage'"},
      {"run " + sample + "--policy offload:what=optimzer", "'optimizer'"},
      {"run " + sample + "--pager lr", "'lru'"},
      {"run " + sample + "--allocator pytorh", "'pytorch'"},
      {"run " + sample + "--alloc-conf expandable_segment:True", "'expandable_segments'"},
      {"run " + sample + "--set gpu.hbm.bandwith=4TB/s", "nearest: \"gpu.hbm.bandwidth\""},
      {"run " + sample + "--scale kernel=2", "nearest: \"kernels\""},
      {"schedule " + sample + "-o x.schedule --scale byts=1/2", "'bytes'"},
      {"generate llama3-8", "nearest: \"llama3-8b\""},
      {"generate llama3-8b --set layrs=4", "nearest: \"layers\""},
      {"generate llama3-8b --set optimizer=adamx", "nearest: \"adam\""},
      {"export x.h5 --to perfeto", "nearest: \"perfetto\""},
      {"render small.pickle --view memroy", "nearest: \"memory\""},
      {"render small.pickle --axis evnts", "'events'"},
      {"render small.pickle --view segments --at pek", "'peak'"},
      {"validate --live --backend hots", "'host'"},
      {"policies show ofload", "'offload'"},
  };
  for (const auto& mistake : mistakes) {
    const CommandOutcome o = run_memwall(folder, mistake.arguments);
    EXPECT_EQ(o.code, 2) << mistake.arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << mistake.arguments;
    EXPECT_NE(o.err.find(mistake.nearest), std::string::npos) << mistake.arguments << "\n" << o.err;
  }
}

// Who gives a setting of the step as an option is told where it stands.
TEST(NearestNames, SettingsOfTheStepAreToldTheirPlace) {
  const ScratchFolder folder;
  const std::string sample = "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'";
  const struct {
    std::string arguments;
    const char* says;
  } mistakes[] = {
      {"run gpt2-124m --machine t4 --batch 4",
       "batch is a setting of the step, given behind its name: gpt2-124m:batch=N."},
      {"run gpt2-124m:batch=2,layers=1 --batch-size=4", "gpt2-124m:layers=1,batch=4."},
      {"plan gpt2-124m --seq_len=2048", "gpt2-124m:sequence=2048."},
      {"run " + sample + " --batch=4", "a captured step takes --policy batch:4."},
      {"run " + sample + " --sequence 2048", "--second-size CAPTURE --policy batch:tokens=N."},
      {"run " + sample + " --layers=2", "a network's name or the file of its configuration (NETWORK:layers=2)."},
      {"explain " + sample + " --precision=bf16", "--policy precision:bf16"},
      {"run gpt2-124m --machine t4 --set batch=2",
       "--set batch=2: it changes numbers of the machine, and batch is a setting of the step, given behind its name: "
       "gpt2-124m:batch=2."},
      {"run " + sample + " --set batch=2", "a captured step takes --policy batch:2."},
      {"sweep " + sample + " --over policy=none --set sequence=7", "NETWORK:sequence=7"},
      {"plan gpt3-175b --gpus 8 --global-batch 8 --machine dgx-a100-80gb --set tensor=8", "gpt3-175b:tensor=8."},
  };
  for (const auto& mistake : mistakes) {
    const CommandOutcome o = run_memwall(folder, mistake.arguments);
    EXPECT_EQ(o.code, 2) << mistake.arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << mistake.arguments;
    EXPECT_NE(o.err.find(mistake.says), std::string::npos) << mistake.arguments << "\n" << o.err;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
