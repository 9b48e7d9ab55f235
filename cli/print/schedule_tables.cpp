#include "cli/print/schedule_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "cli/print/table_cells.h"
#include "sim/human_text.h"
#include "sim/memory/pytorch_allocator.h"
#include "validate/replay/executor_places.h"

namespace memwall {
namespace {

Table ops_table(const Trace& schedule) {
  std::array<std::uint64_t, kOpKinds> counts{};
  for (const Op& op : schedule.ops) ++counts[static_cast<std::size_t>(op.kind)];
  Table table{.name = "ops", .title = "Ops by kind", .columns = {"kind", "ops"}, .headings = {}, .rows = {}};
  for (int kind = 0; kind < kOpKinds; ++kind)
    if (counts[static_cast<std::size_t>(kind)] > 0)
      table.rows.push_back({cell(std::string(to_string(static_cast<OpKind>(kind)))),
                            count_cell(counts[static_cast<std::size_t>(kind)])});
  return table;
}

Table transfers_table(const Trace& schedule) {
  std::map<std::string, std::pair<std::uint64_t, Bytes>> directions;
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) continue;
    auto& [count, bytes] = directions[fmt::format("{} to {}{}", schedule.places[op.from], schedule.places[op.to],
                                                  op.pageable ? ", pageable" : "")];
    ++count;
    bytes += op.bytes;
  }
  Table table{.name = "transfers",
              .title = "Copies and storage I/O",
              .columns = {"direction", "ops", "bytes"},
              .headings = {},
              .rows = {}};
  for (const auto& [name, sums] : directions)
    table.rows.push_back({cell(name), count_cell(sums.first), bytes_cell(sums.second)});
  return table;
}

Table memory_table(const Trace& schedule) {
  const DeviceNeeds device = device_needs(schedule);
  const FixedPlaces fixed = plan_fixed_places(schedule);
  Table table{.name = "memory",
              .title = "Memory that a replay needs",
              .columns = {"place", "allocated_bytes", "reserved_bytes"},
              .headings = {"place", "allocated", "reserved"},
              .rows = {}};
  table.rows.push_back({cell("hbm"), bytes_cell(device.allocated), bytes_cell(device.reserved)});
  table.rows.push_back({cell("host"), bytes_cell(fixed.host.allocated), bytes_cell(fixed.host.reserved)});
  table.rows.push_back({cell("nvme"), bytes_cell(fixed.file.allocated), bytes_cell(fixed.file.reserved)});
  return table;
}

Table work_table(const Trace& schedule) {
  double flops = 0;
  Bytes traffic = 0;
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::kernel) continue;
    flops += op.flops;
    traffic += op.bytes;
  }
  Table table{
      .name = "work", .title = "What its kernels do", .columns = {"flops", "bytes"}, .headings = {}, .rows = {}};
  table.rows.push_back({number_cell(fmt::format("{:.4g}", flops), plain_number(flops)), bytes_cell(traffic)});
  return table;
}

Table notes_table(const Trace& schedule, const std::string& shortage) {
  Table table{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {}, .rows = {}, .prose = true};
  if (!shortage.empty()) table.rows.push_back({cell(shortage)});
  for (const std::string& note : schedule.notes) table.rows.push_back({cell(note)});
  return table;
}

// What its allocations come to on a GPU of that many bytes; nothing where one of them finds no memory.
struct DeviceCourse {
  DeviceNeeds needs;
  std::uint64_t retries = 0;
};
std::optional<DeviceCourse> device_course(const Trace& schedule, Bytes capacity) {
  PytorchAllocator allocator(capacity);
  std::vector<Address> addresses(schedule.storages.size());
  DeviceNeeds needs;
  bool served = true;
  const auto on_device = [&](StorageId id) { return schedule.places[schedule.storages[id].place] == "hbm"; };
  const auto place = [&](StorageId id) {
    const auto address = allocator.allocate(schedule.storages[id].bytes, schedule.storages[id].stream);
    served = served && address;
    if (!served) return;
    addresses[id] = *address;
    needs.allocated = std::max(needs.allocated, allocator.usage().allocated);
    needs.reserved = std::max(needs.reserved, allocator.usage().reserved);
  };
  for (StorageId id = 0; id < schedule.storages.size(); ++id)
    if (schedule.storages[id].preexisting && on_device(id)) place(id);
  for (const Op& op : schedule.ops) {
    if (!served) return {};
    if (op.kind == OpKind::alloc && on_device(op.target)) place(op.target);
    if (op.kind == OpKind::free && on_device(op.target)) allocator.free(addresses[op.target]);
  }
  if (!served) return {};
  return DeviceCourse{needs, allocator.events().retries};
}

}  // namespace

DeviceNeeds device_needs(const Trace& schedule) { return device_course(schedule, Bytes{1} << 60)->needs; }

std::string device_shortage(const Trace& schedule, const Machine& machine) {
  const Bytes usable = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].holds();
  const DeviceNeeds needs = device_needs(schedule);
  if (needs.reserved <= usable) return "";
  const auto limited = device_course(schedule, usable);
  if (!limited)
    return fmt::format(
        "A replay does not fit {}: its allocations come to {} in use and {} reserved in hbm, of {} usable. It needs a "
        "larger GPU, or --scale bytes.",
        machine.name, human_bytes(needs.allocated), human_bytes(needs.reserved), human_bytes(usable));
  return fmt::format(
      "A replay fits {} only because the allocator gives its cache back ({}): left alone, {} would be reserved in hbm, "
      "of {} usable.",
      machine.name, counted_text(limited->retries, "time"), human_bytes(needs.reserved), human_bytes(usable));
}

std::vector<Table> schedule_tables(const Trace& schedule, const std::string& shortage) {
  return {ops_table(schedule), transfers_table(schedule), work_table(schedule), memory_table(schedule),
          notes_table(schedule, shortage)};
}

}  // namespace memwall
