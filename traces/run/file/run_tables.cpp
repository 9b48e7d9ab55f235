#include "traces/run/file/run_tables.h"

#include <limits>
#include <string_view>

#include "traces/run/file/table_reader.h"

namespace memwall {
namespace {

class SmallParts : private TableReader {
 public:
  using TableReader::TableReader;

  void read(Run& run) {
    one("run", run);
    list("policies", run.policies);
    list("inputs", run.inputs);
    list("overrides", run.changes.overrides);
    list("scale", run.changes.scale);
    list("warnings", run.warnings);
    read_machine(run.machine);
    read_trace(run.trace.edit());
    list("tier_results", run.result.tiers);
    list("link_results", run.result.links);
    list("step_results", run.result.steps);
    if (run.result.tiers.size() != run.machine.tiers.size())
      context_.refuse(fmt::format("it has results of {} tiers, but a machine of {}.", run.result.tiers.size(),
                                  run.machine.tiers.size()));
    for (std::size_t t = 0; t < run.result.tiers.size(); ++t)
      list(fmt::format("largest_at_peak/{}", t), run.result.tiers[t].largest_at_peak);
    list("unchanged_tiers", run.unchanged);
    if (!run.unchanged.empty() && run.unchanged.size() != run.machine.tiers.size())
      context_.refuse(fmt::format("table '/unchanged_tiers' has {} rows, but its machine has {} tiers.",
                                  run.unchanged.size(), run.machine.tiers.size()));
    list("tried", run.tried);
    list("speedups", run.speedups);
    if (has("provenance")) one("provenance", run.provenance.emplace());
  }

 private:
  void read_machine(RankMachine& machine) {
    one("machine", static_cast<Machine&>(machine));
    machine_tables(machine, [&](const char* name, auto& items) { list(name, items); });
    machine_lists(machine, [&](const char* name, auto& owners, auto list_of) { owned(name, owners, list_of); });
    if (machine.tiers.size() > std::numeric_limits<std::int16_t>::max())
      context_.refuse(fmt::format("its machine has {} tiers, expected at most 32767.", machine.tiers.size()));
    read_tier_sharers(machine);
    read_machine_of_one(machine);
  }

  // How many GPUs a machine file says share a tier; older files do not have it.
  void read_tier_sharers(RankMachine& machine) {
    if (!has("tier_sharers")) return;
    std::vector<std::uint32_t> sharers;
    list("tier_sharers", sharers);
    if (sharers.size() != machine.tiers.size())
      context_.refuse(fmt::format("table '/tier_sharers' has {} rows, but its machine has {} tiers.", sharers.size(),
                                  machine.tiers.size()));
    for (std::size_t t = 0; t < sharers.size(); ++t) machine.tiers[t].sharers = sharers[t];
  }

  void read_trace(Trace& trace) {
    one("trace", trace);
    list("threads", trace.threads);
    list("streams", trace.streams);
    list("places", trace.places);
    list("steps", trace.steps);
    list("notes", trace.notes);
    list("recipe", trace.recipe);
    list("budgets", trace.budgets);
    list("ranks", trace.rank_table);
    owned(
        "rank_members", trace.rank_table, [](Rank & rank) -> auto& { return rank.stands_for; });
    // Files from before there were stages have no such table.
    if (has("rank_chunks"))
      owned(
          "rank_chunks", trace.rank_table, [](Rank & rank) -> auto& { return rank.chunks; });
    list("groups", trace.groups);
    owned(
        "group_members", trace.groups, [](ProcessGroup & group) -> auto& { return group.members; });
  }

  // Its routes are those between its own tiers over its own links.
  void read_machine_of_one(RankMachine& machine) {
    MachineOfOne count;
    one("machine_of_one", count);
    if (count.tiers > machine.tiers.size() || count.links > machine.links.size())
      context_.refuse(fmt::format("'/machine_of_one': found {} tiers and {} links, of {} and {}.", count.tiers,
                                  count.links, machine.tiers.size(), machine.links.size()));
    machine.one = machine;
    machine.one.tiers.resize(count.tiers);
    machine.one.links.resize(count.links);
    std::erase_if(machine.one.routes, [&](const Route& route) {
      return route.from >= count.tiers || route.to >= count.tiers ||
             std::any_of(route.links.begin(), route.links.end(), [&](auto link) { return link >= count.links; });
    });
  }
};

class LargeParts : private TableReader {
 public:
  using TableReader::TableReader;

  void read(Run& run) {
    Trace& trace = run.trace.edit();
    read_strings(trace.strings);
    list("storages", trace.storages);
    list("ops", trace.ops);
    list("uses", trace.uses);
    list("spans", run.result.records);
    list("moves", run.result.moves);
    read_peers(run);
    run.memory.resize(run.machine.tiers.size());
    for (std::size_t t = 0; t < run.memory.size(); ++t) list(fmt::format("memory/{}", t), run.memory[t]);
    run.link_rates.resize(run.machine.links.size());
    for (std::size_t l = 0; l < run.link_rates.size(); ++l) list(fmt::format("link_rates/{}", l), run.link_rates[l]);
    run.at_peak.resize(run.machine.tiers.size());
    for (std::size_t t = 0; t < run.at_peak.size(); ++t) list(fmt::format("at_peak/{}", t), run.at_peak[t]);
    list("residency", run.residency);
  }

  // What compare_parts.h, accounting.h, critical_path.h and energy.h look at. A column that they come to need belongs
  // here: what is not read is 0.
  RunCounts read_ops(Run& run) {
    Trace& trace = run.trace.edit();
    read_strings(trace.strings);
    list("storages", trace.storages, {"bytes", "place", "label"});
    list("ops", trace.ops,
         {"kind", "phase", "wait_for", "placed", "added", "thread", "stream", "name", "operator", "module", "bytes",
          "target", "from", "to"});
    list("spans", run.result.records);
    list("moves", run.result.moves);
    read_peers(run);
    return {trace.ops.size(), trace.storages.size(), count("uses"), trace.strings.size(), count("residency")};
  }

 private:
  void read_strings(StringTable& strings) {
    std::vector<std::uint32_t> ends;
    list("string_ends", ends);
    std::string bytes(table_rows(context_, file_, "string_bytes"), '\0');
    rows("string_bytes", bytes.data(), bytes.size());
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] < begin || ends[i] > bytes.size())
        context_.refuse(fmt::format("'/string_ends/value', row {}: found {}, which is out of order.", i, ends[i]));
      const StringId id = strings.intern(std::string_view(bytes).substr(begin, ends[i] - begin));
      if (id != i) context_.refuse(fmt::format("string {} occurs twice in its table of strings.", i));
      begin = ends[i];
    }
  }

  void read_peers(Run& run) {
    std::vector<PeerRow> peers;
    list("peers", peers);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i].op >= run.result.records.size() || peers[i].peer >= run.result.records.size())
        context_.refuse(fmt::format("'/peers', row {}: names op {} and its peer {} of {} ops.", i, peers[i].op,
                                    peers[i].peer, run.result.records.size()));
      run.result.records[peers[i].op].peer = peers[i].peer;
    }
  }
};

}  // namespace

void read_small_parts(const ReadContext& context, hid_t file, Run& run) { SmallParts(context, file).read(run); }

void read_large_parts(const ReadContext& context, hid_t file, Run& run) { LargeParts(context, file).read(run); }

RunCounts read_op_parts(const ReadContext& context, hid_t file, Run& run) {
  return LargeParts(context, file).read_ops(run);
}

}  // namespace memwall
