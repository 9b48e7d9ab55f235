// Can every captured step be priced for every machine and changed by policies, and do they do what they are for?
//
// The steps: a GPT written down as a capture, and the samples of traces/samples/captures.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/capture_writer.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

Trace written_step() {
  const ScratchFolder folder;
  GptShape shape;
  shape.layers = 4;
  shape.hidden = 512;
  shape.sequence = 128;
  shape.batch = 16;
  // As a recorder without a phase of allocs and frees writes it.
  write_content(folder / "gpt.mwc", capture_text(gpt_step(shape), false, false));
  return read_mwc(folder / "gpt.mwc").trace;
}

std::vector<std::string> sample_names() {
  std::vector<std::string> names{"written"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(MEMWALL_SOURCE) / "traces/samples/captures", ignored))
    if (entry.path().string().ends_with(".mwc.gz")) names.push_back(entry.path().stem().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class CapturedStep : public ::testing::TestWithParam<std::string> {
 protected:
  Trace step() const {
    if (GetParam() == "written") return written_step();
    return read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures" / (GetParam() + ".mwc.gz")).trace;
  }
  static SimulationResult run(const Trace& trace, const Machine& machine) {
    SimulationOptions options;
    options.allocator = "ideal";
    return simulate(trace, machine, options);
  }
};

TEST_P(CapturedStep, PoliciesTakeItAndSaveMemory) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const Trace plain = modelled_on(step(), machine);
  const SimulationResult base = run(plain, machine);
  const auto peak_with = [&](const char* policy) {
    SCOPED_TRACE(policy);
    const Trace changed = apply_rewriters(plain, {parse_policy(policy)}, machine, *pricer);
    EXPECT_EQ(check(changed), std::vector<std::string>());
    return run(changed, machine).tiers.front().peak_allocated;
  };
  const Bytes before = base.tiers.front().peak_allocated;
  EXPECT_LT(peak_with("checkpoint:mode=full"), before);
  EXPECT_LT(peak_with("offload:what=activations"), before);
  EXPECT_LT(peak_with("offload:what=optimizer,to=host"), before);
  EXPECT_LT(peak_with("zero:stage=2,ranks=8"), before);
  EXPECT_LT(peak_with("zero:stage=3,ranks=8"), peak_with("zero:stage=1,ranks=8"));
}

// Its states are of 16 bit, as its parameters: all of them are updated on the CPU, and all gradients leave for it.
TEST(CapturedLlama, TheCpuOptimizerFindsEveryParameter) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const Trace plain =
      modelled_on(read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures/llama3_8b.mwc.gz").trace, machine);
  const Trace changed =
      apply_rewriters(plain, {parse_policy("offload:what=optimizer")}, machine, *make_pricer(machine));
  EXPECT_TRUE(std::ranges::any_of(changed.notes, [](const std::string& note) {
    return note.find("8,030,261,248 parameters of 2 bytes, 4 bytes of states each") != std::string::npos;
  }));
  Bytes down = 0, up = 0, staying = 0;
  for (const Op& op : changed.ops) {
    if (op.kind != OpKind::copy || !op.added) continue;
    (changed.places[op.to] == "host" ? down : up) += op.bytes;
  }
  EXPECT_EQ(down, 2 * 8'030'261'248);
  EXPECT_EQ(up, 2 * 8'030'261'248);
  std::set<StorageId> freed;
  for (const Op& op : changed.ops)
    if (op.kind == OpKind::free) freed.insert(op.target);
  for (StorageId id = 0; id < changed.storages.size(); ++id) {
    const Storage& s = changed.storages[id];
    if (s.kind == StorageKind::gradient && changed.places[s.place] == "hbm" && !freed.contains(id)) staying += s.bytes;
  }
  EXPECT_EQ(staying, 0);
}

TEST_P(CapturedStep, EveryMachineGivesItTimes) {
  const Trace plain = step();
  ASSERT_TRUE(measured_nowhere(plain));
  for (const Machine& machine : whole_machines()) {
    SCOPED_TRACE(machine.name);
    const Trace priced = modelled_on(plain, machine);
    double busy = 0;
    for (const Op& op : priced.ops)
      if (runs_on_device(op.kind)) busy += to_seconds(op.duration);
    const SimulationResult result = run(priced, machine);
    EXPECT_GT(busy, 0);
    EXPECT_GE(to_seconds(result.end), 0.999 * busy) << "one stream";
  }
}

// What the policies see is the same, however the step came in: allocs and frees with a phase or without.
TEST(WrittenStep, PoliciesDoTheSameAsToTheTraceItself) {
  GptShape shape;
  shape.layers = 4;
  shape.origin = Origin::modelled;
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const ScratchFolder folder;
  for (const bool with_phases : {true, false}) {
    write_content(folder / "gpt.mwc", capture_text(gpt_step(shape), false, with_phases));
    const Trace imported = modelled_on(read_mwc(folder / "gpt.mwc").trace, machine);
    const Trace itself = modelled_on(as_captured(gpt_step(shape), false), machine);
    for (const char* policy :
         {"checkpoint:mode=full", "offload:what=activations,min_bytes=1", "zero:stage=2,ranks=8"}) {
      SCOPED_TRACE(policy);
      const Trace a = apply_rewriters(imported, {parse_policy(policy)}, machine, *pricer);
      const Trace b = apply_rewriters(itself, {parse_policy(policy)}, machine, *pricer);
      EXPECT_EQ(a.ops.size(), b.ops.size());
      const auto at = [&](const Trace& trace) {
        SimulationOptions options;
        options.allocator = "ideal";
        return simulate(trace, machine, options);
      };
      EXPECT_EQ(at(a).tiers.front().peak_allocated, at(b).tiers.front().peak_allocated);
      EXPECT_EQ(at(a).end, at(b).end);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, CapturedStep, ::testing::ValuesIn(sample_names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
