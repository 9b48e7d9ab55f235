// Do `ddp`, `fsdp` and `deepspeed` add to a step the collectives that PyTorch and DeepSpeed call in it: the same ones,
// in the same order, with the same bytes, among the same ranks? Recorded in real processes (gloo), beside captures of
// the same networks in one process (traces/samples/captures/collectives/record_collectives.py).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/policy/registry.h"
#include "sim/trace/process_group.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::filesystem::path kFolder =
    std::filesystem::path(MEMWALL_SOURCE) / "traces" / "samples" / "captures" / "collectives";

struct RecordedCase {
  std::string name, capture, policy;
  std::vector<std::string> collectives;  // "backward all_reduce of 1051648 among 0,1"
};

void PrintTo(const RecordedCase& c, std::ostream* out) { *out << c.name; }

std::string described(std::string_view phase, std::string_view kind, Bytes bytes,
                      const std::vector<std::uint32_t>& ranks) {
  return fmt::format("{} {} of {} among {}", phase, kind, bytes, fmt::join(ranks, ","));
}

std::string text_of(simdjson::dom::element element) { return std::string(std::string_view(element)); }

std::vector<RecordedCase> recorded_cases() {
  simdjson::dom::parser parser;
  std::vector<RecordedCase> cases;
  const simdjson::dom::element file = parser.load((kFolder / "recorded.json").string());
  for (const simdjson::dom::element row : file["cases"].get_array()) {
    RecordedCase& c = cases.emplace_back(text_of(row["name"]), text_of(row["capture"]), text_of(row["policy"]));
    for (const simdjson::dom::element call : row["collectives"].get_array()) {
      std::vector<std::uint32_t> ranks;
      for (const simdjson::dom::element rank : call["ranks"].get_array())
        ranks.push_back(static_cast<std::uint32_t>(std::uint64_t(rank)));
      c.collectives.push_back(described(text_of(call["phase"]), text_of(call["kind"]),
                                        static_cast<Bytes>(std::int64_t(call["bytes"])), ranks));
    }
  }
  return cases;
}

// Messages of collectives are told by what a rank sends: on this machine all algorithms are rings.
std::vector<std::string> simulated(const std::string& capture, const std::string& policies) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const auto pricer = make_pricer(machine);
  const Trace base = modelled_on(read_mwc(kFolder / (capture + ".mwc.gz")).trace, machine);
  std::vector<PolicySpec> all;
  std::istringstream words(policies);
  for (std::string policy; words >> policy;) all.push_back(parse_policy(policy));
  const Trace trace = apply_rewriters(base, all, machine, *pricer);
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  std::vector<std::string> calls;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::collective) continue;
    const ProcessGroup group = process_group_of(trace, op);
    std::vector<std::uint32_t> ranks = group.members;
    if (ranks.empty()) {
      ranks.resize(group.ranks);
      std::iota(ranks.begin(), ranks.end(), 0u);
    }
    const Bytes message = pricer->message_bytes(op.collective, op.bytes, group.ranks);
    EXPECT_EQ(pricer->wire_bytes(op.collective, message, group.ranks), op.bytes);
    const Phase phase = op.phase == Phase::recompute ? Phase::backward : op.phase;
    calls.push_back(described(to_string(phase), to_string(op.collective), message, ranks));
  }
  return calls;
}

class RecordedCollectives : public testing::TestWithParam<RecordedCase> {};

TEST_P(RecordedCollectives, AreThoseOfThePolicy) {
  const std::vector<std::string> ours = simulated(GetParam().capture, GetParam().policy);
  EXPECT_EQ(fmt::format("\n{}\n", fmt::join(ours, "\n")),
            fmt::format("\n{}\n", fmt::join(GetParam().collectives, "\n")))
      << GetParam().policy;
}

// A setting shows in what was recorded: no policy could be right with another one's recording. Which bucket a gradient
// is in, what is gathered ahead of it, which type and which ranks: each of these differs from the default's.
TEST(RecordedSettings, ShowInTheCollectives) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const RecordedCase& c : recorded_cases()) by_name[c.name] = c.collectives;
  for (const char* other :
       {"ddp-gpt-bucket_cap", "ddp-gpt-two_passes", "fsdp2-gpt", "fsdp2-gpt-hybrid", "deepspeed-llama-stage_3"})
    EXPECT_NE(by_name.at(other), by_name.at("ddp-gpt")) << other;
  for (const char* other :
       {"fsdp2-gpt-reshard", "fsdp2-gpt-no_reshard", "fsdp2-gpt-mixed", "fsdp2-gpt-no_sync", "fsdp2-gpt-backward_ahead",
        "fsdp2-gpt-clipped", "fsdp2-gpt-over_2_of_4", "fsdp2-gpt-hybrid", "fsdp1-gpt", "fsdp1-gpt-forward_prefetch"})
    EXPECT_NE(by_name.at(other), by_name.at("fsdp2-gpt")) << other;
  EXPECT_NE(by_name.at("ddp-resnet-no_broadcast"), by_name.at("ddp-resnet"));
  EXPECT_NE(by_name.at("fsdp2-resnet"), by_name.at("fsdp1-resnet")) << "the order of what is reduced last";
}

// The comparison itself: another setting of the policy than the recorded one is told.
TEST(RecordedSettings, AnotherSettingOfThePolicyIsNotEqual) {
  const std::map<std::string, std::string> others = {
      {"ddp-gpt", "ddp:ranks=2,bucket_cap=25MiB"},
      {"ddp-resnet", "ddp:ranks=2,broadcast_buffers=0"},
      {"fsdp2-gpt", "fsdp:ranks=2,backward_ahead=0"},
      {"fsdp2-gpt-hybrid", "fsdp:ranks=4"},
      {"fsdp2-llama-clipped", "fsdp:ranks=2,clip_grad_norm=1"},  // reduced in bf16
  };
  std::size_t compared = 0;
  for (const RecordedCase& c : recorded_cases()) {
    const auto other = others.find(c.name);
    if (other == others.end()) continue;
    EXPECT_NE(simulated(c.capture, other->second), c.collectives) << other->second;
    ++compared;
  }
  EXPECT_EQ(compared, others.size());
}

INSTANTIATE_TEST_SUITE_P(, RecordedCollectives, testing::ValuesIn(recorded_cases()), [](const auto& one) {
  std::string name = one.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
