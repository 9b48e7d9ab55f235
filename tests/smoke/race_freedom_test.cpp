// Is memory safe between streams in every composition of policies? Every op that uses what another
// stream wrote must be ordered behind it by events, or a GPU would run the rewritten step wrong.
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::vector<std::string> kCheckpoint = {"", "checkpoint:mode=full", "checkpoint:mode=every,every=2"};
const std::vector<std::string> kZero = {"",
                                        "zero:stage=0,ranks=4",
                                        "zero:stage=1,ranks=4",
                                        "zero:stage=2,ranks=4",
                                        "zero:stage=3,ranks=4",
                                        "ddp:ranks=4",
                                        "fsdp:ranks=4",
                                        "fsdp:version=1,ranks=4"};
// With an optimizer of its own to offload.
const std::vector<std::string> kDeepSpeed = {
    "deepspeed:stage=2,ranks=4,overlap_comm=1", "deepspeed:stage=3,ranks=4",
    "deepspeed:stage=3,ranks=4,param_persistence_threshold=0,max_reuse_distance=0",
    "deepspeed:stage=3,ranks=4,param_persistence_threshold=0,offload_optimizer=cpu,offload_param=cpu"};
const std::vector<std::string> kOffload = {"",
                                           "offload:what=activations,to=host,min_bytes=0",
                                           "offload:what=activations,to=host,min_bytes=0,pinned=0",
                                           "offload:what=activations,to=host,min_bytes=0,stream=compute",
                                           "offload:what=activations,to=peer,min_bytes=0",
                                           "offload:what=optimizer,to=host",
                                           "offload:what=optimizer,to=host,cpu_adam=0",
                                           "offload:what=optimizer,to=nvme",
                                           "offload:what=gradients,to=host,min_bytes=0",
                                           "offload:what=parameters,to=host,min_bytes=0"};

TEST(RaceFreedom, InEveryComposition) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  GptShape shape;
  shape.layers = 4;
  shape.steps = 2;
  const Trace step = gpt_step(shape);
  ASSERT_EQ(races(step), std::vector<std::string>{});
  for (const std::string& checkpoint : kCheckpoint)
    for (const std::string& zero : kZero)
      for (const std::string& offload : kOffload) {
        std::vector<PolicySpec> specs;
        for (const std::string& text : {checkpoint, zero, offload})
          if (!text.empty()) specs.push_back(parse_policy(text));
        EXPECT_EQ(races(apply_rewriters(step, specs, machine, *pricer), 2), std::vector<std::string>{})
            << checkpoint << " " << zero << " " << offload;
      }
  for (const std::string& checkpoint : kCheckpoint)
    for (const std::string& deepspeed : kDeepSpeed)
      for (const char* offload : {"", "offload:what=activations,to=host,min_bytes=0"}) {
        std::vector<PolicySpec> specs;
        for (const std::string& text : {checkpoint, deepspeed, std::string(offload)})
          if (!text.empty()) specs.push_back(parse_policy(text));
        EXPECT_EQ(races(apply_rewriters(step, specs, machine, *pricer), 2), std::vector<std::string>{})
            << checkpoint << " " << deepspeed << " " << offload;
      }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
