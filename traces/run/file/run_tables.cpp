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
    read_optional(run);
    if (has("provenance")) one("provenance", run.provenance.emplace());
  }

 private:
  void read_machine(Machine& machine) {
    one("machine", machine);
    machine_tables(machine, [&](const char* name, auto& items) { list(name, items); });
    machine_lists(machine, [&](const char* name, auto& owners, auto list_of) { owned(name, owners, list_of); });
    if (machine.tiers.size() > std::numeric_limits<std::uint8_t>::max())
      context_.refuse(fmt::format("its machine has {} tiers, expected at most 255.", machine.tiers.size()));
  }

  void read_trace(Trace& trace) {
    one("trace", trace);
    list("threads", trace.threads);
    list("streams", trace.streams);
    list("places", trace.places);
    list("steps", trace.steps);
    list("notes", trace.notes);
  }

  // What files of earlier programs do not have.
  void read_optional(Run& run) {
    read_ranks(run);
    if (has("allocator_settings")) one("allocator_settings", run.allocator_settings);
    if (has("price_errors")) list("price_errors", run.machine.price_errors);
    read_later_machine(run.machine);
    read_machine_of_one(run.machine);
    if (has("tier_pressure")) read_pressure("tier_pressure", run.result.tiers);
    if (!has("unchanged_tiers")) return;
    list("unchanged_tiers", run.unchanged);
    if (run.unchanged.size() != run.machine.tiers.size())
      context_.refuse(fmt::format("table '/unchanged_tiers' has {} rows, but its machine has {} tiers.",
                                  run.unchanged.size(), run.machine.tiers.size()));
    if (has("unchanged_pressure")) read_pressure("unchanged_pressure", run.unchanged);
  }

  void read_later_machine(Machine& machine) {
    MachinePower power;
    if (has("machine_power")) one("machine_power", power);
    machine.idle_watts = power.idle_watts;
    machine.host.watts = power.host_watts;
    std::vector<std::int32_t> memory_links(machine.tiers.size(), -1);
    if (has("tier_memory_links")) list("tier_memory_links", memory_links);
    if (memory_links.size() != machine.tiers.size())
      context_.refuse(fmt::format("table '/tier_memory_links' has {} rows, expected one per tier, {}.",
                                  memory_links.size(), machine.tiers.size()));
    for (std::size_t t = 0; t < memory_links.size(); ++t) {
      if (memory_links[t] < -1 || memory_links[t] >= static_cast<std::int64_t>(machine.links.size()))
        context_.refuse(fmt::format("'/tier_memory_links/value', row {}: found {}, of {} links.", t, memory_links[t],
                                    machine.links.size()));
      machine.tiers[t].memory_link = memory_links[t];
    }
    if (has("route_link_shares"))
      owned(
          "route_link_shares", machine.routes, [](auto& route) -> auto& { return route.link_shares; });
    for (const Route& route : machine.routes)
      if (!route.link_shares.empty() && route.link_shares.size() != route.links.size())
        context_.refuse(fmt::format("table '/route_link_shares' has {} shares of a route over {} links.",
                                    route.link_shares.size(), route.links.size()));
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

  template <class Row>
  void read_rank_indices(const std::string& name, std::vector<Row>& rows, std::size_t ranks) {
    std::vector<std::uint32_t> indices;
    list(name, indices);
    if (indices.size() != rows.size())
      context_.refuse(fmt::format("table '/{}' has {} rows, expected {}.", name, indices.size(), rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (indices[i] >= ranks)
        context_.refuse(
            fmt::format("'/{}/value', row {}: found {}, but there are {} ranks.", name, i, indices[i], ranks));
      rows[i].rank = static_cast<std::uint16_t>(indices[i]);
    }
  }

  void read_ranks(Run& run) {
    Trace& trace = run.trace.edit();
    std::vector<std::uint32_t> job;
    if (has("job_ranks")) list("job_ranks", job);
    if (!job.empty()) trace.job_ranks = job.front();
    if (has("groups")) list("groups", trace.groups);
    if (has("group_members"))
      owned(
          "group_members", trace.groups, [](ProcessGroup & group) -> auto& { return group.members; });
    if (!has("ranks")) return;
    list("ranks", trace.rank_table);
    read_rank_indices("thread_ranks", trace.threads, trace.rank_table.size());
    read_rank_indices("stream_ranks", trace.streams, trace.rank_table.size());
  }

  void read_pressure(const std::string& name, std::vector<TierResult>& tiers) {
    std::vector<TierPressure> rows;
    list(name, rows);
    if (rows.size() != tiers.size())
      context_.refuse(
          fmt::format("table '/{}' has {} rows, expected one per tier, {}.", name, rows.size(), tiers.size()));
    for (std::size_t t = 0; t < tiers.size(); ++t) tiers[t].pressure = rows[t];
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
    if (has("ranks")) read_peers(run);
    run.memory.resize(run.machine.tiers.size());
    for (std::size_t t = 0; t < run.memory.size(); ++t) list(fmt::format("memory/{}", t), run.memory[t]);
    run.link_rates.resize(run.machine.links.size());
    for (std::size_t l = 0; l < run.link_rates.size(); ++l) list(fmt::format("link_rates/{}", l), run.link_rates[l]);
    run.at_peak.resize(run.machine.tiers.size());
    for (std::size_t t = 0; t < run.at_peak.size(); ++t) list(fmt::format("at_peak/{}", t), run.at_peak[t]);
    list("residency", run.residency);
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

}  // namespace memwall
