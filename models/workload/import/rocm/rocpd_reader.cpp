#include "models/workload/import/rocm/rocpd_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/rocm/rocm_fields.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;
using Columns = std::vector<string_view>;

constexpr string_view kPrefix = "rocpd_", kExpected = "rocpd database of rocprofv3";

// Of one table's name: "rocpd_string_0199..." is "string" of the set "_0199...".
struct TableName {
  string_view kind, set;
};
std::optional<TableName> table_name(string_view table) {
  static constexpr string_view kKinds[] = {
      "kernel_dispatch",    "memory_copy",  "memory_allocate", "region",    "event", "arg",   "info_agent",
      "info_kernel_symbol", "info_process", "string",          "timestamp", "track", "sample"};
  if (!table.starts_with(kPrefix)) return std::nullopt;
  table.remove_prefix(kPrefix.size());
  for (const string_view kind : kKinds) {
    if (!table.starts_with(kind)) continue;
    const string_view set = table.substr(kind.size());
    const bool plain = std::all_of(set.begin(), set.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
    // "rocpd_event_operation_0199...": an id's first letter is a digit of 16, a further word's is not only that.
    const auto hexadecimal = [](unsigned char c) { return std::isxdigit(c) != 0 || c == '_' || c == '-'; };
    if (set.empty() || (plain && set.front() == '_' && std::all_of(set.begin(), set.end(), hexadecimal)))
      return TableName{kind, set};
  }
  return std::nullopt;
}

struct RocpdEvent {
  std::int64_t stack = 0, parent = 0;
  StringId message = 0, stream = 0, event = 0;  // the last two: arguments
  RocmDomain domain = RocmDomain::other;
};

struct RocpdSymbol {
  StringId name = 0;
  std::uint32_t registers = 0;
};

struct RocpdTrack {
  std::int64_t process = 0, thread = 0, agent = 0, queue = 0, stream = 0;
};

// The tables of one set: their numbers mean nothing in another.
class SetReader {
 public:
  SetReader(const SqliteDatabase& database, string_view set, RocmProfile& profile)
      : database_(database), set_(set), p_(profile) {}

  void read() {
    read_names();
    read_events();
    read_kernels();
    read_copies();
    read_regions();
    read_allocations();
    database_.read(table("sample"), {"id"}, 0, [this](const SqliteRow&) { ++p_.instants; });
  }

 private:
  std::string table(string_view kind) const { return std::string(kPrefix) + std::string(kind) + std::string(set_); }

  template <class Value>
  static Value find(const std::unordered_map<std::int64_t, Value>& of, std::int64_t id) {
    const auto found = of.find(id);
    return found == of.end() ? Value{} : found->second;
  }

  // --- names ---
  void read_names() {
    database_.read(table("string"), {"id", "string"}, 2, [this](const SqliteRow& row) {
      if (row.has(0)) names_.insert_or_assign(row.number(0, 0), p_.strings.intern(row.text(1)));
    });
    database_.read(table("timestamp"), {"id", "value"}, 2, [this](const SqliteRow& row) {
      if (row.has(0) && row.has(1)) times_.insert_or_assign(row.number(0, 0), row.number(1, 0));
    });
    database_.read(
        table("track"), {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"}, 1, [this](const SqliteRow& row) {
          tracks_.insert_or_assign(row.number(0, 0), RocpdTrack{row.number(1, 0), row.number(2, 0), row.number(3, 0),
                                                                row.number(4, 0), row.number(5, 0)});
        });
    database_.read(table("info_process"), {"id", "pid", "command"}, 1, [this](const SqliteRow& row) {
      const std::uint32_t index = process(row.number(0, 0));
      p_.processes[index].id = row.number(1, row.number(0, 0));
      p_.processes[index].command = row.text(2);
    });
    const Columns symbol{"id", "display_name", "kernel_name", "arch_vgpr_count"};
    database_.read(table("info_kernel_symbol"), symbol, 1, [this](const SqliteRow& row) {
      const std::size_t named = row.text(1).empty() ? 2 : 1;
      symbols_.insert_or_assign(row.number(0, 0), RocpdSymbol{p_.strings.intern(row.text(named)), row.small(3, 0)});
    });
    read_agents();
  }

  void read_agents() {
    const Columns columns{"id", "pid", "type", "type_index", "product_name", "model_name", "name", "extdata"};
    database_.read(table("info_agent"), columns, 1, [this](const SqliteRow& row) {
      RocmAgent& agent = rocm_add(p_.agents, p_.path);
      agent.id = row.number(0, 0);
      agent.process = process(row.number(1, 0));
      agent.gpu = row.text(2) == "GPU";
      agent.ordinal = row.number(3, -1);
      for (const std::size_t column : {4u, 5u, 6u})
        if (agent.name.empty()) agent.name = row.text(column);
      describe_rocm_agent(row.text(7), agent);
    });
  }

  // Index of a process by its number in this set.
  std::uint32_t process(std::int64_t id) {
    const auto [found, added] = processes_.try_emplace(id, static_cast<std::uint32_t>(p_.processes.size()));
    if (added) {
      if (p_.processes.size() >= 4096)
        throw InputError(p_.path.string() + ": found a 4,097th process; expected at most 4,096.");
      p_.processes.push_back({id, ""});
    }
    return found->second;
  }

  // --- events and their arguments ---
  void read_events() {
    const Columns columns{"id", "category_id", "stack_id", "parent_stack_id", "extdata"};
    database_.read(table("event"), columns, 1, [this](const SqliteRow& row) {
      RocpdEvent event;
      event.domain = domain(find(names_, row.number(1, -1)));
      event.stack = row.number(2, 0);
      event.parent = row.number(3, 0);
      if (event.domain == RocmDomain::marker) event.message = message(row.text(4));
      events_.insert_or_assign(row.number(0, 0), event);
    });
    database_.read(table("arg"), {"event_id", "name", "value"}, 3, [this](const SqliteRow& row) {
      const string_view name = row.text(1);
      const bool stream = is_stream_argument(name);
      if (!stream && name != "event") return;
      const auto event = events_.find(row.number(0, -1));
      if (event == events_.end() || event->second.domain != RocmDomain::hip) return;
      (stream ? event->second.stream : event->second.event) = p_.strings.intern(row.text(2));
    });
  }

  RocmDomain domain(StringId category) {
    const auto [found, added] = domains_.try_emplace(category);
    if (added) found->second = rocm_domain(p_.strings[category]);
    return found->second;
  }

  // {"message": "forward"}
  StringId message(string_view text) {
    if (text.size() < 3) return 0;
    const simdjson::padded_string padded(text);
    string_view found;
    return parser_.parse(padded)["message"].get(found) == simdjson::SUCCESS ? p_.strings.intern(found) : 0;
  }

  // --- records ---
  // Columns 0 to 9 of every table of records.
  static Columns record_columns(const Columns& more) {
    Columns columns{"start", "end",      "start_id", "end_id",    "track_id",
                    "pid",   "agent_id", "queue_id", "stream_id", "event_id"};
    columns.insert(columns.end(), more.begin(), more.end());
    return columns;
  }
  static constexpr std::size_t kFirst = 10;  // column behind them

  // Start and end of a row. False where they are none: the row is left out.
  bool times(const SqliteRow& row, std::int64_t& start, std::int64_t& end) {
    const auto time = [&](std::size_t direct, std::size_t referred) -> std::optional<std::int64_t> {
      if (row.has(direct)) return row.number(direct);
      const auto found = times_.find(row.number(referred, -1));
      return found == times_.end() ? std::nullopt : std::optional(found->second);
    };
    const auto first = time(0, 2), last = time(1, 3);
    if (!first || !last || !is_rocm_span(*first, *last)) {
      ++p_.without_times;
      return false;
    }
    start = *first;
    end = *last;
    return true;
  }

  RocpdTrack place(const SqliteRow& row) const {
    RocpdTrack place = find(tracks_, row.number(4, -1));
    if (row.has(5)) place.process = row.number(5, 0);
    if (row.has(6)) place.agent = row.number(6, 0);
    if (row.has(7)) place.queue = row.number(7, 0);
    if (row.has(8)) place.stream = row.number(8, 0);
    return place;
  }

  RocmWork* add_work(const SqliteRow& row) {
    std::int64_t start = 0, end = 0;
    if (!times(row, start, end)) return nullptr;
    const RocpdTrack at = place(row);
    RocmWork& work = rocm_add(p_.work, p_.path);
    work.process = process(at.process);
    work.start = start;
    work.end = end;
    work.agent = at.agent;
    work.queue = at.queue;
    work.stream = at.stream;
    work.correlation = find(events_, row.number(9, -1)).stack;
    return &work;
  }

  void read_kernels() {
    const Columns columns = record_columns({"kernel_id", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
                                            "grid_size_x", "grid_size_y", "grid_size_z", "group_segment_size"});
    database_.read(table("kernel_dispatch"), columns, 0, [this](const SqliteRow& row) {
      RocmWork* kernel = add_work(row);
      if (kernel == nullptr) return;
      const RocpdSymbol symbol = find(symbols_, row.number(kFirst, -1));
      kernel->name = symbol.name;
      kernel->registers = symbol.registers;
      for (std::size_t i = 0; i < 3; ++i) {
        kernel->group_items[i] = row.small(kFirst + 1 + i, 0);
        kernel->work_items[i] = row.small(kFirst + 4 + i, 0);
      }
      kernel->group_memory = row.small(kFirst + 7, 0);
    });
  }

  void read_copies() {
    const Columns columns = record_columns({"src_agent_id", "dst_agent_id", "size"});
    database_.read(table("memory_copy"), columns, 0, [this](const SqliteRow& row) {
      RocmWork* copy = add_work(row);
      if (copy == nullptr) return;
      copy->copy = true;
      copy->source_agent = row.number(kFirst, -1);
      copy->destination_agent = row.number(kFirst + 1, -1);
      copy->bytes = rocm_bytes(row.number(kFirst + 2, -1));
    });
  }

  void read_regions() {
    database_.read(table("region"), record_columns({"tid", "name_id"}), 0, [this](const SqliteRow& row) {
      std::int64_t start = 0, end = 0;
      if (!times(row, start, end)) return;
      const RocpdTrack at = place(row);
      const RocpdEvent event = find(events_, row.number(9, -1));
      if (event.domain == RocmDomain::other || (event.domain == RocmDomain::marker && event.message == 0)) {
        ++p_.other_calls;
        return;
      }
      RocmCall& call = rocm_add(p_.calls, p_.path);
      call.process = process(at.process);
      call.domain = event.domain;
      call.start = start;
      call.end = end;
      call.name = event.message != 0 ? event.message : find(names_, row.number(kFirst + 1, -1));
      call.stream = event.stream;
      call.event = event.event;
      call.thread = rocm_thread(row.number(kFirst, at.thread));
      call.correlation = event.stack;
    });
  }

  void read_allocations() {
    database_.read(table("memory_allocate"), record_columns({"type", "level", "address", "size"}), 0,
                   [this](const SqliteRow& row) {
                     std::int64_t start = 0, end = 0;
                     if (!times(row, start, end)) return;
                     const string_view type = row.text(kFirst);
                     const bool release = type == "FREE";
                     if (!release && type != "ALLOC") return;
                     if (row.text(kFirst + 1) == "SCRATCH") {
                       p_.scratch += !release;
                       return;
                     }
                     const RocpdTrack at = place(row);
                     const RocpdEvent event = find(events_, row.number(9, -1));
                     RocmAllocation& allocation = rocm_add(p_.allocations, p_.path);
                     allocation.process = process(at.process);
                     allocation.release = release;
                     allocation.time = end;
                     allocation.agent = at.agent;
                     allocation.address = static_cast<std::uint64_t>(row.number(kFirst + 2, 0));
                     allocation.size = std::max<Bytes>(rocm_bytes(row.number(kFirst + 3, 0)), 0);
                     allocation.correlation = event.stack;
                     allocation.ancestor = event.parent;
                   });
  }

  const SqliteDatabase& database_;
  const string_view set_;
  RocmProfile& p_;
  simdjson::dom::parser parser_;
  std::unordered_map<std::int64_t, StringId> names_;
  std::unordered_map<std::int64_t, std::int64_t> times_;
  std::unordered_map<std::int64_t, RocpdTrack> tracks_;
  std::unordered_map<std::int64_t, RocpdSymbol> symbols_;
  std::unordered_map<std::int64_t, RocpdEvent> events_;
  std::unordered_map<std::int64_t, std::uint32_t> processes_;
  std::unordered_map<StringId, RocmDomain> domains_;  // by the name of a category
};

}  // namespace

bool has_rocpd_tables(const std::filesystem::path& path) {
  try {
    const std::vector<std::string> tables = SqliteDatabase(path, kExpected).tables();
    return std::any_of(tables.begin(), tables.end(), [](const std::string& t) { return t.starts_with(kPrefix); });
  } catch (const InputError&) {
    return false;
  }
}

RocmProfile read_rocpd(const std::filesystem::path& path) {
  const SqliteDatabase database(path, kExpected);
  const std::vector<std::string> tables = database.tables();
  std::map<string_view, bool> sets;  // true: with records
  for (const std::string& table : tables) {
    const auto name = table_name(table);
    if (!name) continue;
    bool& records = sets[name->set];
    records = records || name->kind == "kernel_dispatch" || name->kind == "memory_copy" || name->kind == "region";
  }
  RocmProfile profile;
  profile.path = path;
  profile.writer = "rocprofv3 (rocpd)";
  for (const auto& [set, records] : sets)
    if (records) SetReader(database, set, profile).read();
  if (std::any_of(sets.begin(), sets.end(), [](const auto& set) { return set.second; })) return profile;
  if (database.has("rocpd_api") || database.has("rocpd_op"))
    throw InputError(path.string() +
                     ": found a trace of rocmProfileData (RPD), which is not read; expected a rocpd database: record "
                     "with `rocprofv3 --sys-trace --output-format rocpd -- PROGRAM`.");
  throw InputError(
      fmt::format("{}: expected tables rocpd_kernel_dispatch, rocpd_memory_copy or rocpd_region of a {}, "
                  "found {}.",
                  path.string(), kExpected, fmt::format("{}", fmt::join(tables, ", ")).substr(0, 200)));
}

}  // namespace memwall
