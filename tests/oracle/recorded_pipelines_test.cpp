// Do generated pipelines of torchtitan run the passes, messages, gathers and reductions that
// torch.distributed.pipelining runs with fully_shard in each stage: the same ones, in the same order, with the same
// bytes, among the same ranks? Recorded in real processes (gloo); and the actions of torch's own schedule object for
// more ranks (traces/samples/captures/collectives/record_pipelines.py).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/pipeline_actions.h"
#include "sim/trace/pipeline_chunk.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::filesystem::path kFile = std::filesystem::path(MEMWALL_SOURCE) / "traces" / "samples" / "captures" /
                                    "collectives" / "recorded_pipelines.json";

struct RecordedPipeline {
  std::string name, settings;
  std::vector<std::vector<std::string>> ranks;  // calls of each: "forward of stage 0, micro-batch 1", ...
};

void PrintTo(const RecordedPipeline& c, std::ostream* out) { *out << c.name; }

using Element = simdjson::dom::element;

std::int64_t number(Element element) { return std::int64_t(element); }
std::string text_of(Element element) { return std::string(std::string_view(element)); }

std::string described(std::string_view kind, Bytes bytes, const std::vector<std::uint32_t>& ranks) {
  return fmt::format("{} of {} among {}", kind, bytes, fmt::join(ranks, ","));
}
std::string message_text(bool send, Bytes bytes, std::int64_t peer) {
  return fmt::format("{} {} {} {}", send ? "send" : "receive", bytes, send ? "to" : "from", peer);
}

std::string call_text(Element call) {
  const std::string kind = text_of(call["kind"]);
  if (kind == "forward" || kind == "backward")
    return fmt::format("{} of stage {}, micro-batch {}", kind, number(call["stage"]), number(call["microbatch"]));
  if (kind == "messages") {
    std::vector<std::string> all;
    for (const Element one : call["all"].get_array())
      all.push_back(message_text(bool(one["send"]), number(one["bytes"]), number(one["peer"])));
    return fmt::format("{}", fmt::join(all, ", "));
  }
  std::vector<std::uint32_t> ranks;
  for (const Element rank : call["ranks"].get_array()) ranks.push_back(static_cast<std::uint32_t>(number(rank)));
  return described(kind, number(call["bytes"]), ranks);
}

std::vector<RecordedPipeline> recorded_pipelines() {
  simdjson::dom::parser parser;
  const Element file = parser.load(kFile.string());
  const Element n = file["network"];
  std::vector<RecordedPipeline> cases;
  for (const Element row : file["cases"].get_array()) {
    const std::string schedule = text_of(row["schedule"]);
    RecordedPipeline& c = cases.emplace_back();
    c.name = text_of(row["name"]);
    c.settings = fmt::format(
        "llama3-8b:layers={},width={},heads={},key_value_heads={},inner={},vocabulary={},sequence={},precision=bf16,"
        "master_parameters=true,parallel_framework=torchtitan,pipeline={},data_parallel={},interleave={},micro_batch={}"
        ","
        "batch={}{}",
        number(n["layers"]), number(n["width"]), number(n["heads"]), number(n["kv_heads"]), number(n["inner"]),
        number(n["vocabulary"]), number(file["length"]), number(row["pipeline"]), number(row["shards"]),
        number(row["stages_per_rank"]), number(file["micro_batch"]),
        number(file["micro_batch"]) * number(row["microbatches"]),
        schedule == "GPipe" ? ",pipeline_schedule=gpipe" : "");
    for (const Element rank : row["ranks"].get_array()) {
      c.ranks.emplace_back();
      for (const Element call : rank.get_array()) c.ranks.back().push_back(call_text(call));
    }
  }
  return cases;
}

// What one rank's program does, in the words of the recording. With two ranks the peer is the other one.
std::vector<std::string> generated_calls(const Trace& rank, std::int64_t own) {
  std::vector<std::string> calls;
  std::map<std::string, std::int64_t> passes;
  for (const Op& op : rank.ops) {
    const std::string& name = rank.strings[op.name];
    if (op.kind == OpKind::mark)
      for (const auto& [mark, kind] : {std::pair(kForwardMark, "forward"), {kBackwardMark, "backward"}})
        if (name.starts_with(mark))
          calls.push_back(
              fmt::format("{} of stage {}, micro-batch {}", kind, name.substr(mark.size()), passes[name]++));
    if (op.kind != OpKind::collective) continue;
    const ProcessGroup& group = rank.groups[op.group];
    if (op.collective == CollectiveKind::send_receive) {
      std::vector<std::string> all;
      for (const Access access : {Access::read, Access::write})
        for (const Use& use : rank.uses_of(op))
          if (use.access == access)
            all.push_back(message_text(access == Access::read, rank.storages[use.storage].bytes, 1 - own));
      calls.push_back(fmt::format("{}", fmt::join(all, ", ")));
    } else if (group.name == "data parallel") {
      calls.push_back(described(to_string(op.collective), op.bytes / (group.ranks - 1) * group.ranks, group.members));
    }
  }
  return calls;
}

std::string joined(const std::vector<std::string>& calls) { return fmt::format("\n{}\n", fmt::join(calls, "\n")); }

class RecordedPipelines : public testing::TestWithParam<RecordedPipeline> {};

TEST_P(RecordedPipelines, AreThoseOfTheGeneratedJob) {
  const TrainingJob job = load_training_job(GetParam().settings);
  const std::vector<Trace> ranks = generated_ranks(job.model, job.recipe);
  ASSERT_EQ(ranks.size(), GetParam().ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    EXPECT_EQ(joined(generated_calls(ranks[i], static_cast<std::int64_t>(i))), joined(GetParam().ranks[i]))
        << "rank " << i;
}

INSTANTIATE_TEST_SUITE_P(, RecordedPipelines, testing::ValuesIn(recorded_pipelines()), [](const auto& one) {
  std::string name = "of_" + one.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

// The actions of all ranks, as torch writes them.
std::string torch_text(const PipelineAction& a) {
  static const std::map<PipelineAction::Kind, std::string> words = {
      {PipelineAction::Kind::unshard, "UNSHARD"},
      {PipelineAction::Kind::reshard, "RESHARD"},
      {PipelineAction::Kind::forward, "F"},
      {PipelineAction::Kind::backward, "B"},
      {PipelineAction::Kind::reduce_gradients, "REDUCE_GRAD"},
      {PipelineAction::Kind::wait_for_reduction, "WAIT_REDUCE_GRAD"},
      {PipelineAction::Kind::send_output, "SEND_F"},
      {PipelineAction::Kind::receive_input, "RECV_F"},
      {PipelineAction::Kind::send_gradient, "SEND_B"},
      {PipelineAction::Kind::receive_gradient, "RECV_B"},
      {PipelineAction::Kind::wait_for_output, "WAIT_SEND_F"},
      {PipelineAction::Kind::wait_for_gradient, "WAIT_SEND_B"}};
  return fmt::format("{}{}{}", a.stage, words.at(a.kind), a.microbatch < 0 ? "" : std::to_string(a.microbatch));
}

TEST(RecordedSchedules, ActionsAreThoseOfTorchsSchedule) {
  simdjson::dom::parser parser;
  const Element file = parser.load(kFile.string());
  std::size_t compared = 0, resharded = 0;
  for (const Element row : file["schedules"].get_array()) {
    const PipelineShape shape{number(row["ranks"]), number(row["stages_per_rank"]), number(row["microbatches"]), 0,
                              true};
    const std::vector<std::vector<PipelineAction>> all = pipeline_actions(shape);
    std::size_t rank = 0;
    for (const Element actions : row["actions"].get_array()) {
      std::vector<std::string> ours;
      for (const PipelineAction& a : all.at(rank)) ours.push_back(torch_text(a));
      EXPECT_EQ(fmt::format("{}", fmt::join(ours, " ")), text_of(actions))
          << fmt::format("p {} v {} m {} rank {}", shape.ranks, shape.chunks, shape.microbatches, rank);
      // Again and again where a rank has more stages than may be unsharded at once.
      resharded += shape.chunks > static_cast<std::int64_t>(kMostUnshardedStages) &&
                   std::ranges::count(all[rank], PipelineAction::Kind::unshard, &PipelineAction::kind) > shape.chunks;
      ++rank, ++compared;
    }
    EXPECT_EQ(rank, all.size());
  }
  EXPECT_GE(compared, 40u);
  EXPECT_GE(resharded, 4u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
