#include "study/sweep/sweep_journal.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "sim/files/input_file.h"
#include "sim/files/own_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// Of another layout: not read.
constexpr int kApplication = 0x6d777377, kVersion = 1;  // "mwsw"
constexpr int kBusyMilliseconds = 10'000;

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }
std::string hash_text(const std::string& text) { return hex(XXH3_128bits(text.data(), text.size())); }

std::string hash_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: it cannot be read.", path.string()));
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    XXH3_128bits_update(state, block.data(), static_cast<std::size_t>(in.gcount()));
  const std::string text = hex(XXH3_128bits_digest(state));
  XXH3_freeState(state);
  return text;
}

// Names and contents of the files below, in order.
std::string hash_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file()) files.push_back(at->path());
  std::ranges::sort(files);
  std::string text;
  for (const fs::path& file : files) text += file.lexically_relative(folder).string() + "\n" + hash_file(file) + "\n";
  return hash_text(text);
}

bool is_network_file(const std::string& name) {
  std::error_code error;
  return name.ends_with(".textproto") && fs::is_regular_file(name, error);
}

// With the files that it is based on, where it is a network's; a machine's has none.
std::string hash_network(const std::string& name) {
  std::string text = hash_file(name);
  try {
    for (const fs::path& file : load_training_job(name).files) text += hash_file(file);
  } catch (const std::exception&) {
  }
  return hash_text(text);
}

// Formats of tables are read with the tables beside them.
std::string hash_place(const std::string& name) {
  std::error_code error;
  if (fs::is_regular_file(name, error) && name.ends_with(".csv")) {
    const fs::path folder = fs::path(name).parent_path();
    return hash_file(name) + hash_folder(folder.empty() ? fs::path(".") : folder);
  }
  if (is_network_file(name)) return hash_network(name);
  if (fs::is_regular_file(name, error)) return hash_file(name);
  if (fs::is_directory(name, error)) return hash_folder(name);
  // What comes through a pipe is kept for as long as the program runs, and is what a step is read from.
  const fs::path kept = fs::exists(name, error) ? readable_path_or_none(name) : fs::path();
  return kept.empty() ? "" : hash_file(kept);
}

// Numbers as text that reads back as the same bits.
std::string fields_text(const PointRecord& record) {
  std::string text;
  for (const auto& [name, value] : record.fields) text += fmt::format("{}={}\n", name, value);
  return text;
}

std::optional<std::vector<std::pair<std::string, double>>> parse_fields(std::string_view text) {
  std::vector<std::pair<std::string, double>> fields;
  while (!text.empty()) {
    const std::size_t equals = text.find('='), end = text.find('\n');
    if (equals == std::string_view::npos || end == std::string_view::npos || equals > end) return std::nullopt;
    double value = 0;
    const auto read = std::from_chars(text.data() + equals + 1, text.data() + end, value);
    if (read.ec != std::errc() || read.ptr != text.data() + end) return std::nullopt;
    fields.emplace_back(text.substr(0, equals), value);
    text.remove_prefix(end + 1);
  }
  return fields;
}

class Statement {
 public:
  Statement(sqlite3* database, const char* text) {
    if (sqlite3_prepare_v2(database, text, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  explicit operator bool() const { return statement_ != nullptr; }
  void bind(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  void bind(int at, int number) { sqlite3_bind_int(statement_, at, number); }
  int step() { return sqlite3_step(statement_); }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data == nullptr ? "" : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  int number(int column) const { return sqlite3_column_int(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

std::optional<double> PointRecord::find(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &std::pair<std::string, double>::first);
  return found == fields.end() ? std::nullopt : std::optional(found->second);
}

PointKeys::PointKeys()
    : program_(
          hash_text(hash_file(own_file().path) + hash_folder(machine_folder()) + hash_folder(workload_folder()))) {}

std::string PointKeys::content_hash(const std::string& name) {
  if (name.empty()) return "";
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = hashes_.find(name); known != hashes_.end()) return known->second;
  }
  std::string hash = hash_place(name);
  const std::lock_guard lock(mutex_);
  return hashes_.try_emplace(name, std::move(hash)).first->second;
}

std::string PointKeys::key(const Scenario& scenario, bool accept_gaps) {
  std::string text = program_ + "\n" + to_text(scenario) + (accept_gaps ? "\naccept_gaps" : "") + "\n";
  std::vector<std::string> names = scenario.step;
  names.insert(names.end(), scenario.execution_traces.begin(), scenario.execution_traces.end());
  for (const std::string* name :
       {&scenario.onto, &scenario.second_size, &scenario.measured_on, &scenario.machine, &scenario.plan})
    names.push_back(*name);
  // Files that policies name, with a key and without one (exec:planner.py).
  for (const std::string& policy : scenario.policies)
    for (std::size_t before = policy.find_first_of(":=,"); before != std::string::npos;
         before = policy.find_first_of(":=,", before + 1)) {
      const std::size_t end = std::min(policy.find_first_of("=,", before + 1), policy.size());
      names.push_back(policy.substr(before + 1, end - before - 1));
    }
  // Settings may follow the path of a workload's file.
  for (std::string& name : names)
    if (std::error_code error; !fs::exists(name, error)) name = name.substr(0, name.find(':'));
  for (const std::string& name : names) text += content_hash(name) + "\n";
  return hash_text(text);
}

class SweepJournal::Database {
 public:
  explicit Database(const fs::path& path) {
    const int code = sqlite3_open_v2(path.c_str(), &handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
    if (code != SQLITE_OK) fail(path, "it cannot be opened");
    sqlite3_busy_timeout(handle, kBusyMilliseconds);
    prepare(path);
    if (!run("PRAGMA journal_mode=WAL") || !run("PRAGMA synchronous=NORMAL")) fail(path, "it cannot be written");
  }
  ~Database() { sqlite3_close(handle); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool run(const char* text) { return sqlite3_exec(handle, text, nullptr, nullptr, nullptr) == SQLITE_OK; }
  int number(const char* text) {
    Statement statement(handle, text);
    return statement && statement.step() == SQLITE_ROW ? statement.number(0) : -1;
  }

  sqlite3* handle = nullptr;

 private:
  [[noreturn]] void fail(const fs::path& path, const char* what) {
    const std::string why = handle == nullptr ? "no memory" : sqlite3_errmsg(handle);
    sqlite3_close(handle);
    handle = nullptr;
    throw InputError(
        fmt::format("{}: {} ({}); expected a journal of memwall sweep, or a place for one.", path.string(), what, why));
  }

  // Another program's file is left as it is.
  void prepare(const fs::path& path) {
    const int tables = number("SELECT count(*) FROM sqlite_master");
    if (tables < 0) fail(path, "it is no SQLite file");
    if (tables > 0) return require_own(path);
    const std::string make = fmt::format(
        "PRAGMA application_id={}; PRAGMA user_version={};"
        "CREATE TABLE IF NOT EXISTS point(key TEXT PRIMARY KEY, scenario TEXT NOT NULL, has_all INTEGER NOT "
        "NULL, error TEXT NOT NULL, cause TEXT NOT NULL, fields TEXT NOT NULL) WITHOUT ROWID",
        kApplication, kVersion);
    if (!run("BEGIN IMMEDIATE") || !run(make.c_str()) || !run("COMMIT")) fail(path, "it cannot be written");
  }

  void require_own(const fs::path& path) {
    if (number("PRAGMA application_id") != kApplication || number("PRAGMA user_version") != kVersion)
      fail(path, "it is another program's database, or of another version of memwall");
  }
};

SweepJournal::SweepJournal(const fs::path& path) : path_(path), database_(std::make_unique<Database>(path)) {}
SweepJournal::~SweepJournal() = default;

std::optional<PointRecord> SweepJournal::find(const std::string& key, bool needs_all) const {
  Statement query(database_->handle, "SELECT has_all, error, cause, fields FROM point WHERE key = ?");
  int code = SQLITE_ERROR;
  if (query) {
    query.bind(1, key);
    code = query.step();
  }
  if (code == SQLITE_DONE) return std::nullopt;
  std::optional<std::vector<std::pair<std::string, double>>> fields;
  if (code == SQLITE_ROW) fields = parse_fields(query.text(3));
  if (!fields)
    throw InputError(
        fmt::format("{}: a point cannot be read ({}); expected a journal of memwall sweep. Delete it to "
                    "begin anew.",
                    path_.string(), sqlite3_errmsg(database_->handle)));
  PointRecord record{std::move(*fields), query.text(1), query.text(2), query.number(0) != 0};
  if (needs_all && !record.has_all && record.error.empty()) return std::nullopt;
  return record;
}

namespace {

// What another attempt may answer otherwise: memory that was short, another program that was asked.
bool is_for_ever(const Scenario& scenario, const PointRecord& record) {
  const auto asks_a_program = [](const std::string& policy) { return policy.starts_with("exec:"); };
  return record.error.empty() ||
         (record.cause != "internal" && std::ranges::none_of(scenario.policies, asks_a_program));
}

}  // namespace

bool SweepJournal::add(const std::string& key, const Scenario& scenario, const PointRecord& record) {
  if (!failure_.empty() || !is_for_ever(scenario, record)) return false;
  Statement insert(database_->handle, "INSERT OR REPLACE INTO point VALUES(?, ?, ?, ?, ?, ?)");
  if (insert) {
    insert.bind(1, key);
    insert.bind(2, to_text(scenario));
    insert.bind(3, record.has_all ? 1 : 0);
    insert.bind(4, record.error);
    insert.bind(5, record.cause);
    insert.bind(6, fields_text(record));
    if (insert.step() == SQLITE_DONE) return true;
  }
  failure_ = fmt::format("{}: {}; finished points are no longer kept, those that are in it stay.", path_.string(),
                         sqlite3_errmsg(database_->handle));
  return false;
}

}  // namespace memwall
