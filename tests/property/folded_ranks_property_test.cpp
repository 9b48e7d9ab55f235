// Is a program that stands for several ranks the same as all of them written out: every time, byte and peak?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "sim/engine/simulation.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Nodes of `node` GPUs: two share a PCIe uplink, `per_adapter` a network adapter, all of them the host.
Machine cluster(std::uint32_t node, std::uint32_t per_adapter) {
  Machine m;
  m.name = "cluster";
  m.gpu.multiprocessors = 100;
  m.gpu.collective_multiprocessors = 10;
  m.tiers = {{.name = "hbm", .tier_class = TierClass::device, .capacity = 80'000'000'000, .memory_link = 0},
             {.name = "host", .tier_class = TierClass::host, .capacity = 1'000'000'000'000, .memory_link = 1}};
  m.links = {{.name = "hbm", .bandwidth = 1e12},
             {.name = "host_dram", .bandwidth = 6e10, .sharers = node},
             {.name = "uplink", .bandwidth = 1.5e10, .sharers = 2},
             {.name = "nvlink", .bandwidth = 1e11},
             {.name = "network", .bandwidth = 1e10, .sharers = per_adapter}};
  m.dram_link = 1;
  m.routes = {{.from = 0, .to = 1, .engine = 1, .links = {0, 2, 1}, .bandwidth = 1.2e10, .efficiency = {}},
              {.from = 1, .to = 0, .engine = 0, .links = {1, 2, 0}, .bandwidth = 1.2e10, .efficiency = {}}};
  m.fabrics.resize(2);
  m.fabrics[0] = {.name = "nvlink", .links = {3, 0}, .bus_bandwidth = 8e10, .max_ranks = node, .efficiency = {}};
  m.fabrics[1] = {.name = "network", .links = {4, 0}, .bus_bandwidth = 9e9, .efficiency = {}};
  return m;
}

// A job of tensor, pipeline and data parallelism, numbered with the strides given: ranks of one stage run one program.
struct Layout {
  std::uint32_t tensor = 1, stages = 1, data = 1;
  bool data_before_stages = true;  // Megatron's tp-dp-pp, else tp-pp-dp
  std::uint32_t ranks() const { return tensor * stages * data; }
  std::uint32_t number(std::uint32_t t, std::uint32_t stage, std::uint32_t d) const {
    return data_before_stages ? t + tensor * (d + data * stage) : t + tensor * (stage + stages * d);
  }
  std::uint32_t stage_of(std::uint32_t number) const {
    return data_before_stages ? number / (tensor * data) : number / tensor % stages;
  }
  std::vector<std::uint32_t> tensor_group(std::uint32_t of) const {
    std::vector<std::uint32_t> members;
    for (std::uint32_t t = 0; t < tensor; ++t) members.push_back(of / tensor * tensor + t);
    return members;
  }
  std::vector<std::uint32_t> data_group(std::uint32_t of) const {
    std::vector<std::uint32_t> members;
    for (std::uint32_t d = 0; d < data; ++d) members.push_back(number(of % tensor, stage_of(of), d));
    return members;
  }
};

enum class Work { kernel, to_host, to_device, optimizer, tensor_collective, data_collective, all, hold };
struct Item {
  Work work = Work::kernel;
  Bytes bytes = 0;
  Duration duration{};
  std::uint16_t stream = 0;
};
using Program = std::vector<Item>;

Program random_program(std::size_t meetings) {
  Program program;
  const auto some = [&] {
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
      program.push_back({static_cast<Work>(*rc::gen::inRange(0, 6)), *rc::gen::inRange<Bytes>(1, 50'000'000),
                         microseconds(*rc::gen::inRange(1, 900)), static_cast<std::uint16_t>(*rc::gen::inRange(0, 3))});
    if (*rc::gen::inRange(0, 2) == 1) program.push_back({Work::hold, *rc::gen::inRange<Bytes>(1, 5'000'000), {}, 0});
  };
  for (std::size_t m = 0; m < meetings; ++m) {
    some();
    program.push_back({Work::all, 1'000'000, microseconds(200), 0});
  }
  some();
  return program;
}

// The program of one rank. `meet`: the rendezvous of a collective in one of its groups, kNoRendezvous: nobody is met.
Trace written(const Program& program, const Layout& layout, std::uint32_t number,
              const std::function<std::uint32_t(const Item&, std::size_t)>& meet) {
  TraceBuilder builder;
  Trace& t = builder.trace();
  t.name = "job";
  t.places = {"hbm", "host"};
  t.knowledge.timing = t.knowledge.allocations = true;
  t.job_ranks = layout.ranks();
  std::vector<std::uint32_t> everybody;
  for (std::uint32_t r = 0; r < layout.ranks(); ++r) everybody.push_back(r);
  for (const auto& members : {everybody, layout.tensor_group(number), layout.data_group(number)})
    t.groups.push_back({std::to_string(t.groups.size()) + " with " + std::to_string(members.front()) + " of stage " +
                            std::to_string(layout.stage_of(number)),
                        static_cast<std::uint32_t>(members.size()), members});
  t.groups[0].name = "everybody";
  builder.add_thread("main");
  for (const char* stream : {"compute", "communication", "copies"}) builder.add_stream(stream, StreamRole::compute);
  t.steps.push_back({"step", 0, 0});
  builder.append(Op{});
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Item& item = program[i];
    Op op;
    op.stream = item.stream;
    op.bytes = item.bytes;
    op.duration = item.duration;
    op.added = true;
    switch (item.work) {
      case Work::kernel:
        op.kind = OpKind::kernel;
        break;
      case Work::to_host:
      case Work::to_device:
        op.kind = OpKind::copy;
        op.from = item.work == Work::to_device;
        op.to = item.work == Work::to_host;
        op.duration = from_seconds(static_cast<double>(item.bytes) / 1.2e10);
        break;
      case Work::optimizer:
        op.kind = OpKind::host_work;
        op.duration = from_seconds(static_cast<double>(item.bytes) / 2e10);
        break;
      case Work::hold: {
        const StorageId storage =
            builder.add_storage(item.bytes, StorageKind::activation, i % 2 == 0 ? "hbm" : "host", "");
        op = {};
        op.kind = OpKind::alloc;
        op.target = storage;
        break;
      }
      default:
        op.kind = OpKind::collective;
        op.collective = CollectiveKind::all_reduce;
        op.group = item.work == Work::all ? 0 : item.work == Work::tensor_collective ? 1 : 2;
        op.target = t.groups[op.group].ranks > 1 ? meet(item, i) : kNoRendezvous;
        op.duration = from_seconds(static_cast<double>(item.bytes) / 5e9);
    }
    builder.append(op);
  }
  Trace trace = std::move(builder).finish();
  trace.steps.back().last = static_cast<OpId>(trace.ops.size());
  return trace;
}

struct Job {
  Layout layout;
  std::vector<Program> programs;  // by stage

  Trace unfolded() const {
    std::map<std::vector<std::uint64_t>, std::uint32_t> rendezvous;
    std::vector<RankProgram> ranks;
    for (std::uint32_t r = 0; r < layout.ranks(); ++r) {
      std::uint64_t meetings = 0;
      const auto meet = [&](const Item& item, std::size_t i) {
        std::vector<std::uint64_t> key{item.work == Work::all, meetings++};
        if (item.work != Work::all) {
          const auto group = item.work == Work::tensor_collective ? layout.tensor_group(r) : layout.data_group(r);
          key = {2 + static_cast<std::uint64_t>(item.work), i, group.front(), layout.stage_of(r)};
          --meetings;
        }
        return rendezvous.emplace(key, static_cast<std::uint32_t>(rendezvous.size())).first->second;
      };
      ranks.push_back({r, written(programs[layout.stage_of(r)], layout, r, meet)});
    }
    return joined_ranks(std::move(ranks));
  }

  Trace folded() const {
    std::vector<RankProgram> ranks;
    for (std::uint32_t stage = 0; stage < layout.stages; ++stage) {
      std::uint32_t meetings = 0;
      const auto meet = [&](const Item& item, std::size_t) {
        return item.work == Work::all && layout.stages > 1 ? meetings++ : kNoRendezvous;
      };
      RankProgram& rank = ranks.emplace_back();
      rank.number = layout.number(0, stage, 0);
      for (std::uint32_t r = 0; r < layout.ranks(); ++r)
        if (layout.stage_of(r) == stage && r != rank.number) rank.stands_for.push_back(r);
      rank.trace = written(programs[stage], layout, rank.number, meet);
    }
    return joined_ranks(std::move(ranks));
  }
};

// Nodes hold ranks of one stage only, or all of them alike: else ranks of a stage are not in equal places.
Job random_job(std::uint32_t node) {
  Job job;
  job.layout.tensor = *rc::gen::element(1u, 2u, 4u);
  job.layout.stages = *rc::gen::inRange(1u, 4u);
  job.layout.data = *rc::gen::element(1u, 2u, 4u, 8u);
  job.layout.data_before_stages = *rc::gen::inRange(0, 2) == 1;
  const std::uint32_t run = job.layout.tensor * job.layout.data;
  const bool is_even = job.layout.data_before_stages
                           ? run % node == 0 || (run * job.layout.stages <= node && run % 2 == 0)
                           : job.layout.stages != 3 && job.layout.ranks() % node == 0;
  RC_PRE(is_even);
  const std::size_t meetings = *rc::gen::inRange<std::size_t>(0, 3);
  for (std::uint32_t stage = 0; stage < job.layout.stages; ++stage) job.programs.push_back(random_program(meetings));
  return job;
}

RC_GTEST_PROP(FoldedRanks, AreAllRanksWrittenOut, ()) {
  const std::uint32_t node = *rc::gen::element(2u, 4u, 8u);
  const Machine machine = cluster(node, *rc::gen::element(1u, 2u));
  const Job job = random_job(node);
  const Trace all = job.unfolded(), few = job.folded();
  RC_ASSERT(check(all).empty());
  RC_ASSERT(check(few).empty());
  RC_ASSERT(rank_count(few) == job.layout.stages);
  const SimulationResult written_out = simulate(all, machine, {}), folded = simulate(few, machine, {});
  RC_CLASSIFY(job.layout.ranks() > node, "several nodes");
  std::vector<std::vector<OpRecord>> by_rank(rank_count(all)), by_stage(rank_count(few));
  for (OpId id = 0; id < all.ops.size(); ++id) by_rank[rank_of(all, all.ops[id])].push_back(written_out.records[id]);
  for (OpId id = 0; id < few.ops.size(); ++id) by_stage[rank_of(few, few.ops[id])].push_back(folded.records[id]);
  const RankMachine many = machine_of_ranks(machine, all), one_each = machine_of_ranks(machine, few);
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    const std::uint32_t stage = job.layout.stage_of(all.rank_table[r].number);
    std::size_t f = 0;
    while (job.layout.stage_of(few.rank_table[f].number) != stage) ++f;
    RC_ASSERT(by_rank[r].size() == by_stage[f].size());
    for (std::size_t i = 0; i < by_rank[r].size(); ++i) {
      RC_ASSERT(by_rank[r][i].start == by_stage[f][i].start);
      RC_ASSERT(by_rank[r][i].end == by_stage[f][i].end);
      RC_ASSERT(by_rank[r][i].host_end == by_stage[f][i].host_end);
    }
    const TierResult& mine = written_out.tiers[many.views[r].tier[0]];
    RC_ASSERT(mine.peak_reserved == folded.tiers[one_each.views[f].tier[0]].peak_reserved);
    for (std::size_t l = 0; l < machine.links.size(); ++l)
      RC_ASSERT(written_out.links[many.views[r].link[l]].bytes == folded.links[one_each.views[f].link[l]].bytes);
  }
}

// Ranks 0 to 7 fold to one program in either way of saying so.
RC_GTEST_PROP(FoldedRanks, AreTheRanksOfOneProgram, ()) {
  const Machine machine = cluster(8, 2);
  Job job;
  job.layout.data = 8;
  job.programs.push_back(random_program(1));
  const Trace few = job.folded();
  Trace one = one_rank(few, 0);
  one.rank_table.clear();
  one.ranks = 8;
  const SimulationResult a = simulate(few, machine, {}), b = simulate(one, machine, {});
  for (OpId id = 0; id < one.ops.size(); ++id) {
    RC_ASSERT(a.records[id].start == b.records[id].start);
    RC_ASSERT(a.records[id].end == b.records[id].end);
  }
  for (std::size_t l = 0; l < machine.links.size(); ++l) RC_ASSERT(a.links[l].bytes == b.links[l].bytes);
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    RC_ASSERT(a.tiers[t].peak_reserved == b.tiers[t].peak_reserved);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
