// A run to disk.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "traces/run/file/hdf5_output.h"
#include "traces/run/file/machine_layout.h"
#include "traces/run/file/run_file.h"
#include "traces/run/file/run_layout.h"
#include "traces/run/file/user_block.h"
#include "traces/run/series_levels.h"

namespace memwall {
namespace {

template <class T>
void write_rows(hid_t file, const std::string& name, const T* rows, std::size_t count) {
  write_table(file, name, layout_of<T>(), rows, count);
}

template <class T>
void write_list(hid_t file, const std::string& name, const std::vector<T>& rows) {
  write_rows(file, name, rows.data(), rows.size());
}

// All lists of a table's rows as one table, in which each item names its owner.
template <class Owner, class List>
void write_owned(hid_t file, const std::string& name, const std::vector<Owner>& owners, List list) {
  using Item = typename std::remove_cvref_t<decltype(list(owners.front()))>::value_type;
  std::vector<Owned<Item>> rows;
  for (std::uint32_t i = 0; i < owners.size(); ++i)
    for (const Item& item : list(owners[i])) rows.push_back({i, item});
  write_list(file, name, rows);
}

void write_strings(hid_t file, const StringTable& strings) {
  std::vector<std::uint32_t> ends;
  std::string bytes;
  for (StringId id = 0; id < strings.size(); ++id) {
    bytes += strings[id];
    ends.push_back(static_cast<std::uint32_t>(bytes.size()));
  }
  write_list(file, "string_ends", ends);
  write_rows(file, "string_bytes", bytes.data(), bytes.size());
}

void write_trace(hid_t file, const Trace& trace) {
  write_rows(file, "trace", &trace, 1);
  write_strings(file, trace.strings);
  write_list(file, "threads", trace.threads);
  write_list(file, "streams", trace.streams);
  write_list(file, "places", trace.places);
  write_list(file, "storages", trace.storages);
  write_list(file, "ops", trace.ops);
  write_list(file, "uses", trace.uses);
  write_list(file, "steps", trace.steps);
  write_list(file, "notes", trace.notes);
  write_list(file, "recipe", trace.recipe);
  write_list(file, "budgets", trace.budgets);
  write_list(file, "ranks", trace.rank_table);
  write_owned(file, "rank_members", trace.rank_table, [](const Rank& rank) { return rank.stands_for; });
  write_owned(file, "rank_chunks", trace.rank_table, [](const Rank& rank) { return rank.chunks; });
  write_list(file, "groups", trace.groups);
  write_owned(file, "group_members", trace.groups, [](const ProcessGroup& group) { return group.members; });
}

void write_machine(hid_t file, const RankMachine& machine) {
  write_rows<Machine>(file, "machine", &machine, 1);
  machine_tables(machine, [&](const char* name, const auto& rows) { write_list(file, name, rows); });
  machine_lists(machine,
                [&](const char* name, const auto& owners, auto list) { write_owned(file, name, owners, list); });
  std::vector<std::uint32_t> sharers;
  for (const Tier& tier : machine.tiers) sharers.push_back(tier.sharers);
  write_list(file, "tier_sharers", sharers);
  const MachineOfOne one{static_cast<std::uint32_t>(machine.one.tiers.size()),
                         static_cast<std::uint32_t>(machine.one.links.size())};
  write_rows(file, "machine_of_one", &one, 1);
}

std::vector<PeerRow> peers_of(const SimulationResult& result) {
  std::vector<PeerRow> peers;
  for (OpId id = 0; id < result.records.size(); ++id)
    if (result.records[id].peer != kNoOp) peers.push_back({id, result.records[id].peer});
  return peers;
}

void write_result(hid_t file, const SimulationResult& result) {
  write_list(file, "spans", result.records);
  write_list(file, "peers", peers_of(result));
  write_list(file, "moves", result.moves);
  write_list(file, "tier_results", result.tiers);
  write_list(file, "link_results", result.links);
  write_list(file, "step_results", result.steps);
  for (std::size_t t = 0; t < result.tiers.size(); ++t)
    write_list(file, fmt::format("largest_at_peak/{}", t), result.tiers[t].largest_at_peak);
}

void write_series(hid_t file, const Run& run) {
  for (std::size_t t = 0; t < run.memory.size(); ++t) write_list(file, fmt::format("memory/{}", t), run.memory[t]);
  for (std::size_t l = 0; l < run.link_rates.size(); ++l)
    write_list(file, fmt::format("link_rates/{}", l), run.link_rates[l]);
  for (std::size_t t = 0; t < run.at_peak.size(); ++t) write_list(file, fmt::format("at_peak/{}", t), run.at_peak[t]);
  write_list(file, "residency", run.residency);
}

// Cells of all lanes and levels as one table; how many each level has stands beside it.
void write_lanes(hid_t file, const RunIndex& index) {
  write_list(file, "index/lanes", index.lanes);
  std::vector<Owned<std::uint32_t>> levels;
  std::vector<LaneCell> cells;
  std::vector<Owned<LaneBlock>> blocks;
  for (std::uint32_t lane = 0; lane < index.lanes.size(); ++lane) {
    for (const auto& level : index.cells[lane]) {
      levels.push_back({lane, static_cast<std::uint32_t>(level.size())});
      cells.insert(cells.end(), level.begin(), level.end());
    }
    for (const LaneBlock& block : index.blocks[lane]) blocks.push_back({lane, block});
  }
  write_list(file, "index/levels", levels);
  write_list(file, "index/cells", cells);
  write_list(file, "index/blocks", blocks);
}

// Rows of level 1, then of level 2, ...
template <class Point>
void write_levels(hid_t file, const std::string& name, const std::vector<std::vector<Point>>& series, Time end) {
  for (std::size_t i = 0; i < series.size(); ++i) {
    auto levels = series_levels(series[i], end);
    std::remove_cvref_t<decltype(levels.front())> rows;
    for (const auto& level : levels) rows.insert(rows.end(), level.begin(), level.end());
    write_list(file, fmt::format("index/{}/{}", name, i), rows);
  }
}

void write_index(hid_t file, const Run& run) {
  write_lanes(file, build_run_index(run));
  write_list(file, "index/steps", step_windows(run));
  write_levels(file, "memory", run.memory, run.result.end);
  write_levels(file, "link_rates", run.link_rates, run.result.end);
}

void write_tables(hid_t file, const Run& run, const Hdf5Output& output) {
  write_rows(file, "run", &run, 1);
  write_list(file, "policies", run.policies);
  write_list(file, "inputs", run.inputs);
  write_list(file, "overrides", run.changes.overrides);
  write_list(file, "scale", run.changes.scale);
  write_list(file, "warnings", run.warnings);
  write_machine(file, run.machine);
  output.require_written();  // now and then: the rest of a large run would be written in vain
  write_trace(file, run.trace);
  output.require_written();
  write_result(file, run.result);
  write_list(file, "unchanged_tiers", run.unchanged);
  write_list(file, "tried", run.tried);
  write_list(file, "speedups", run.speedups);
  output.require_written();
  write_series(file, run);
  output.require_written();
  write_index(file, run);
  if (run.provenance) write_rows(file, "provenance", &*run.provenance, 1);
}

void write_hdf5(const Run& run, FileWriter& writer) {
  const Hdf5Section section;
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.get(), kUserBlockBytes);
  H5Pset_obj_track_times(creation.get(), false);
  Hdf5Output output(writer);
  Hdf5Handle file = output.create(creation.get());
  if (!file.valid()) throw std::runtime_error("it cannot be created");
  write_tables(file.get(), run, output);
  const bool closed = file.reset();
  output.require_written();
  if (!closed) throw std::runtime_error("it cannot be closed");
}

}  // namespace

void write_run(const Run& run, const std::filesystem::path& path) {
  FileWriter writer(path);
  try {
    write_hdf5(run, writer);
  } catch (const UsageError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("{}: the run file cannot be written ({}).", path.string(), error.what()));
  }
  write_user_block(writer);
  writer.commit();
}

}  // namespace memwall
