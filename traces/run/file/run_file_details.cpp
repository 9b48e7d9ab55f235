// What a viewer asks of a run in a file one by one: an op, a name, a storage; and what it searches for.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "sim/error.h"
#include "traces/run/file/run_file_source.h"
#include "traces/run/file/run_tables.h"

namespace memwall {
namespace {

double share(std::uint64_t done, std::uint64_t of) {
  return of == 0 ? 1 : static_cast<double>(done) / static_cast<double>(of);
}

// All rows of a table in chunks: take(row, its number).
template <class T, class Take>
void for_each_row(OpenTable& table, const LoadProgress& progress, const std::vector<std::string_view>& wanted,
                  Take take) {
  for (std::size_t first = 0; first < table.rows(); first += kColumnChunk) {
    report(progress, share(first, table.rows()));
    const auto rows = table.read<T>(first, std::min(kColumnChunk, table.rows() - first), wanted);
    for (std::size_t i = 0; i < rows.size(); ++i) take(rows[i], first + i);
  }
}

}  // namespace

StorageColumns RunInFile::storages(const LoadProgress& progress) const {
  StorageColumns columns;
  columns.bytes.reserve(outline_.storages);
  for_each_row<Storage>(table("storages"), progress, {"bytes", "kind", "place", "label", "preexisting"},
                        [&](const Storage& storage, std::size_t row) {
                          check_->storage(storage, row);
                          columns.bytes.push_back(storage.bytes);
                          columns.kind.push_back(storage.kind);
                          columns.label.push_back(storage.label);
                          columns.preexisting.push_back(storage.preexisting);
                        });
  return columns;
}

std::vector<Residency> RunInFile::residency(const LoadProgress& progress) const {
  std::vector<Residency> residencies;
  residencies.reserve(outline_.residencies);
  for_each_row<Residency>(table("residency"), progress, {}, [&](const Residency& residency, std::size_t row) {
    check_->residency(residency, row);
    residencies.push_back(residency);
  });
  return residencies;
}

std::vector<std::uint32_t> RunInFile::at_peak(std::uint32_t tier) const {
  if (tier >= outline_.run.machine.tiers.size()) return {};
  OpenTable& rows = table(fmt::format("at_peak/{}", tier));
  auto residencies = rows.read<std::uint32_t>(0, rows.rows());
  for (std::size_t i = 0; i < residencies.size(); ++i)
    check_->below(residencies[i], outline_.residencies, "/at_peak", i);
  return residencies;
}

// Peers stand in the order of their ops.
void RunInFile::read_peer(OpId id, OpRecord& record) const {
  OpenTable& peers = table("peers");
  std::size_t low = 0, high = peers.rows();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const PeerRow row = peers.read<PeerRow>(middle, 1).front();
    if (row.op == id) {
      check_->below(row.peer, outline_.ops, "/peers/peer", middle);
      record.peer = row.peer;
      return;
    }
    if (row.op < id)
      low = middle + 1;
    else
      high = middle;
  }
}

OpDetail RunInFile::op(OpId id) const {
  if (id >= outline_.ops) throw InputError(fmt::format("Op {} of a run of {} ops.", id, outline_.ops));
  OpDetail detail;
  detail.id = id;
  detail.op = table("ops").read<Op>(id, 1).front();
  check_->op(detail.op, id);
  detail.record = table("spans").read<OpRecord>(id, 1).front();
  check_->record(detail.op, detail.record, id);
  read_peer(id, detail.record);
  detail.uses = table("uses").read<Use>(detail.op.first_use, detail.op.use_count);
  for (std::size_t i = 0; i < detail.uses.size(); ++i) check_->use(detail.uses[i], detail.op.first_use + i);
  detail.name = text(detail.op.name);
  detail.operator_name = text(detail.op.operator_name);
  detail.module = text(detail.op.module);
  return detail;
}

std::string RunInFile::text(StringId id) const {
  if (id >= outline_.strings) throw InputError(fmt::format("Text {} of a run of {} texts.", id, outline_.strings));
  const std::size_t first = id == 0 ? 0 : id - 1;
  const auto ends = table("string_ends").read<std::uint32_t>(first, id == 0 ? 1 : 2);
  const std::uint32_t begin = id == 0 ? 0 : ends.front(), end = ends.back();
  OpenTable& bytes = table("string_bytes");
  if (end < begin || end > bytes.rows())
    context_.refuse(fmt::format("'/string_ends/value', row {}: found {}, which is out of order.", id, end));
  const auto letters = bytes.read<char>(begin, end - begin);
  return {letters.begin(), letters.end()};
}

std::vector<std::string> RunInFile::texts(const LoadProgress& progress) const {
  OpenTable& bytes = table("string_bytes");
  std::string letters;
  letters.reserve(bytes.rows());
  for_each_row<char>(bytes, progress, {}, [&](char c, std::size_t) { letters += c; });
  std::vector<std::string> texts;
  std::uint32_t begin = 0;
  for_each_row<std::uint32_t>(table("string_ends"), {}, {}, [&](std::uint32_t end, std::size_t row) {
    if (end < begin || end > letters.size())
      context_.refuse(fmt::format("'/string_ends/value', row {}: found {}, which is out of order.", row, end));
    texts.push_back(letters.substr(begin, end - begin));
    begin = end;
  });
  return texts;
}

std::vector<OpId> RunInFile::ops_with(const std::vector<bool>& wanted, std::size_t most,
                                      const LoadProgress& progress) const {
  const auto is_wanted = [&](std::int64_t id) {
    return id >= 0 && static_cast<std::uint64_t>(id) < wanted.size() && wanted[static_cast<std::size_t>(id)];
  };
  std::vector<OpId> found;
  table("ops").scan({"name", "operator", "module"}, [&](std::size_t first, const auto& cells) {
    report(progress, share(first, outline_.ops));
    for (std::size_t i = 0; i < cells[0].size() && found.size() < most; ++i)
      if (is_wanted(cells[0][i]) || is_wanted(cells[1][i]) || is_wanted(cells[2][i]))
        found.push_back(static_cast<OpId>(first + i));
    return found.size() < most;
  });
  return found;
}

std::vector<OpId> RunInFile::followers(OpId id, std::size_t most) const {
  std::vector<OpId> found;
  if (id == kNoOp) return found;
  table("spans").scan({"call_cause", "cause", "return_cause"}, [&](std::size_t first, const auto& cells) {
    for (std::size_t i = 0; i < cells[0].size() && found.size() < most; ++i)
      if (cells[0][i] == id || cells[1][i] == id || cells[2][i] == id) found.push_back(static_cast<OpId>(first + i));
    return found.size() < most;
  });
  return found;
}

std::vector<StorageUse> RunInFile::uses_of(StorageId storage, std::size_t most) const {
  std::vector<std::uint64_t> rows;  // of uses, ascending
  table("uses").scan({"storage"}, [&](std::size_t first, const auto& cells) {
    for (std::size_t i = 0; i < cells[0].size(); ++i)
      if (cells[0][i] == storage) rows.push_back(first + i);
    return true;
  });
  std::vector<StorageUse> found;
  if (rows.empty()) return found;
  const auto take = [&](OpId op, std::uint64_t begin, std::uint64_t end) {
    for (auto row = std::lower_bound(rows.begin(), rows.end(), begin);
         row != rows.end() && *row < end && found.size() < most; ++row) {
      const Use use = table("uses").read<Use>(static_cast<std::size_t>(*row), 1).front();
      found.push_back({op, use.version, use.access});
    }
  };
  table("ops").scan({"first_use", "use_count"}, [&](std::size_t first, const auto& cells) {
    for (std::size_t i = 0; i < cells[0].size() && found.size() < most; ++i) {
      const std::int64_t begin = cells[0][i], count = cells[1][i];
      if (begin < 0 || count < 0 || begin > static_cast<std::int64_t>(outline_.uses) - count)
        context_.refuse(fmt::format("'/ops/first_use', row {}: rows {} to {} of '/uses' are not there.", first + i,
                                    begin, begin + count));
      take(static_cast<OpId>(first + i), static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(begin + count));
    }
    return found.size() < most;
  });
  return found;
}

std::shared_ptr<const Run> RunInFile::whole(const LoadProgress& progress) const {
  {
    const Hdf5Section section;
    if (auto run = whole_.lock()) return run;
  }
  // What takes time: a row of these is a row read.
  const std::uint64_t rows = 2 * outline_.ops + outline_.uses + outline_.storages + outline_.residencies;
  std::uint64_t done = 0;
  ReadContext context = context_;
  context.on_rows = [&](std::size_t count) {
    done += count;
    report(progress, std::min(1.0, share(done, rows)));
  };
  try {
    auto run = std::make_shared<Run>(outline_.run);
    read_large_parts(context, file_.get(), *run);
    require_consistent(*run, context);
    find_rank_views(*run, context);
    const Hdf5Section section;
    whole_ = run;
    return run;
  } catch (const std::bad_alloc&) {
    context_.refuse(fmt::format("its {} ops do not fit in memory.", outline_.ops));
  }
}

std::size_t RunInFile::resident_bytes() const {
  const Hdf5Section section;
  std::size_t bytes = sizeof(*this) + checksummed_.resident_bytes();
  for (const auto& blocks : outline_.blocks) bytes += blocks.capacity() * sizeof(LaneBlock);
  for (const auto& [level, cells] : small_levels_) bytes += cells.capacity() * sizeof(LaneCell) + 64;
  for (const auto& [name, open] : tables_) bytes += sizeof(*open) + name.size() + open->resident_bytes();
  for (const RunLane& lane : outline_.lanes) bytes += sizeof(lane) + lane.name.size();
  return bytes;
}

void RunInFile::touch() const {
  table("ops").touch<Op>();
  table("spans").touch<OpRecord>();
  table("uses").touch<Use>();
  table("storages").touch<Storage>();
  table("residency").touch<Residency>();
  table("moves").touch<MoveRecord>();
  table("string_ends").touch<std::uint32_t>();
  table("string_bytes").touch<char>();
  for (std::size_t t = 0; t < outline_.run.machine.tiers.size(); ++t) {
    table(fmt::format("memory/{}", t)).touch<MemoryPoint>();
    table(fmt::format("at_peak/{}", t)).touch<std::uint32_t>();
    table(fmt::format("index/memory/{}", t)).touch<MemoryHigh>();
  }
  for (std::size_t l = 0; l < outline_.run.machine.links.size(); ++l) {
    table(fmt::format("link_rates/{}", l)).touch<RatePoint>();
    table(fmt::format("index/link_rates/{}", l)).touch<RateHigh>();
  }
  table("peers").touch<PeerRow>();
  table("index/cells").touch<LaneCell>();
}

}  // namespace memwall
