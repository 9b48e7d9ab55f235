// Does any damage to an ExecutionTrace end in a sound trace or in a sentence, and in nothing else?
#include <gtest/gtest.h>

#include <random>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_cost.h"
#include "sim/error.h"
#include "tests/support/damage.h"
#include "tests/support/operator_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kFlat = R"j({"schema":"1.0.1","pid":7,"nodes":[
 {"name":"aten::addmm","id":14,"rf_id":5,"parent":2,"fw_parent":9,"seq_id":661,"scope":0,"tid":1,"fw_tid":3,
  "op_schema":"aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  "inputs":[[7,8,0,6,4,"cuda:0"],[3,4,0,20,4,"cuda:0"],[[13,6,0,30,4,"cuda:0"],"<None>"],1,1],
  "input_shapes":[[6],[4,5],[[5,6],[]],[],[]],"input_types":["Tensor(float)","Tensor(float)","GenericList[Tensor(float),None]","Int","Int"],
  "outputs":[[18,19,0,24,4,"cuda:0"]],"output_shapes":[[4,6]],"output_types":["Tensor(float)"]}]})j";
const std::string kAttributes = R"j({"schema":"1.1.1-chakra.0.0.4","pid":7,"nodes":[
 {"id":14,"name":"aten::convolution_backward","ctrl_deps":2,
  "inputs":{"values":[[7,8,0,48,4,"cuda:0"],[3,4,0,48,4,"cuda:0"],[13,6,0,9,4,"cuda:0"],true],
            "shapes":[[1,1,6,8],[1,1,6,8],[1,1,3,3],[]],"types":["Tensor(float)","Tensor(float)","Tensor(float)","Bool"]},
  "outputs":{"values":[[18,19,0,48,4,"cuda:0"]],"shapes":[[1,1,6,8]],"types":["Tensor(float)"]},
  "attrs":[{"name":"rf_id","type":"uint64","value":5},{"name":"tid","type":"uint64","value":1},
           {"name":"op_schema","type":"string","value":"aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, bool transposed) -> Tensor"}]}]})j";

TEST(ExecutionTraceFuzz, DamagedTextIsReadOrRefused) {
  std::mt19937_64 random(1'010'101);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    try {
      const ExecutionTrace trace =
          parse_execution_trace(damaged(round % 2 == 0 ? kFlat : kAttributes, random), "et.json");
      for (const ExecutionNode& node : trace.nodes) {
        const OperatorCost cost = cost_of(trace, node);
        EXPECT_GE(cost.flops, 0);
        EXPECT_GE(cost.bytes, 0);
      }
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 8), "et.json:");
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(ExecutionTraceFuzz, AHugeOrDeepDocumentIsRefusedQuickly) {
  EXPECT_THROW(parse_execution_trace(std::string(1'000'000, '['), "et.json"), InputError);
  std::string deep = kFlat;
  deep.replace(deep.find("[7,8,0,6,4"), 1, std::string(501, '['));
  EXPECT_THROW(parse_execution_trace(deep, "et.json"), InputError);
}

// A program without sense: operators that nest at random, ids that come back, kernels and
// allocations anywhere (where the capture has memory events), arguments that lie about what is written.
void write_random(Scene& scene, bool with_memory, std::mt19937_64& random) {
  static const char* const kNames[] = {"aten::add_",          "aten::relu",      "aten::zero_",
                                       "aten::_foreach_mul_", "nccl:all_reduce", "c10d::allreduce_",
                                       "Optimizer.step#X",    "AccumulateGrad",  "aten::mm"};
  static const char* const kSchemas[] = {"", "x(Tensor(a!) self, Tensor weight) -> ()",
                                         "x(Tensor self, Tensor(a!)[] out) -> Tensor", "broken(",
                                         "x(Tensor output, Tensor momentum1_dev)"};
  static const Phase kPhases[] = {Phase::unknown, Phase::forward, Phase::backward, Phase::optimizer};
  const auto any = [&](auto& of) { return of[random() % std::size(of)]; };
  const auto tensors = [&] {
    SceneArguments result(random() % 4);
    for (auto& argument : result)
      for (std::size_t i = 0; i < 1 + random() % 3; ++i)
        argument.push_back({static_cast<std::int64_t>(random() % 12), static_cast<std::int64_t>(random() % 3) * 128});
    return result;
  };
  std::vector<StorageId> live;
  for (int i = 0; i < 3; ++i) live.push_back(scene.older(512));
  int depth = 0;
  for (int step = 0; step < 60; ++step) {
    switch (random() % 6) {
      case 0:
      case 1:
        scene.begin(any(kNames), any(kSchemas), tensors(), tensors()), ++depth;
        break;
      case 2:
        if (depth > 0) scene.end(), --depth;
        break;
      case 3:
        scene.kernel(any(kPhases), random() % 5 == 0 ? OpKind::collective : OpKind::kernel);
        break;
      case 4:
        if (with_memory) live.push_back(scene.alloc(static_cast<Bytes>(1 + random() % 3) * 512));
        break;
      default:
        if (live.empty()) break;
        const std::size_t at = random() % live.size();
        scene.free(live[at]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  while (depth-- > 0) scene.end();
}

Bytes held_at_start(const Trace& trace) {
  Bytes total = trace.untracked_bytes;
  for (const Storage& s : trace.storages) total += s.preexisting ? s.bytes : 0;
  return total;
}

TEST(ExecutionTraceFuzz, JoiningANonsensicalProgramLeavesASoundTrace) {
  std::mt19937_64 random(7);
  std::size_t uses = 0, left_out = 0;
  for (int round = 0; round < 3'000; ++round) {
    const bool with_memory = round % 4 != 0;
    Scene scene(with_memory);
    scene.begin("step");
    write_random(scene, with_memory, random);
    scene.end();
    if (random() % 2 == 0)
      for (ExecutionNode& node : scene.execution.nodes)
        if (random() % 10 == 0) node.parent = static_cast<std::int64_t>(random() % 50);
    const Bytes before = held_at_start(scene.imported.trace);
    const JoinReport report = scene.join();  // expects it to be sound
    if (with_memory) {
      EXPECT_EQ(held_at_start(scene.imported.trace), before + report.storages.overdrawn_bytes);
    }
    EXPECT_LE(report.storages.claimed, report.storages.births);
    EXPECT_EQ(report.storages.claimed + report.storages.workspaces, report.storages.allocations);
    uses += report.dataflow.reads + report.dataflow.writes;
    left_out += report.dataflow.left_out_dead + report.dataflow.left_out_unwritten;
  }
  EXPECT_GT(uses, 10'000U);
  EXPECT_GT(left_out, 100U);  // nonsense was there to be left out
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
