#include "study/sweep/sweep_journal.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "sim/files/input_file.h"
#include "sim/files/own_file.h"
#include "study/sweep/journal_database.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

std::optional<double> PointRecord::find(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &std::pair<std::string, double>::first);
  return found == fields.end() ? std::nullopt : std::optional(found->second);
}

PointKeys::PointKeys()
    : program_(
          hash_text(hash_file(own_file().path) + hash_folder(machine_folder()) + hash_folder(workload_folder()))) {}

std::string PointKeys::hash(const std::string& text) { return hash_text(text); }

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

std::string PointKeys::key(const Scenario& scenario, bool accept_gaps, bool folded) {
  std::string text =
      program_ + "\n" + to_text(scenario) + (accept_gaps ? "\naccept_gaps" : "") + (folded ? "\nfolded" : "") + "\n";
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

SweepJournal::SweepJournal(const fs::path& path) : path_(path), database_(std::make_unique<JournalDatabase>(path)) {}
SweepJournal::~SweepJournal() = default;

std::optional<PointRecord> SweepJournal::find(const std::string& key, bool needs_all) const {
  JournalStatement query(*database_, "SELECT has_all, error, cause, fields FROM point WHERE key = ?");
  auto outcome = JournalStatement::Outcome::failed;
  if (query) {
    query.bind(1, key);
    outcome = query.step();
  }
  if (outcome == JournalStatement::Outcome::done) return std::nullopt;
  std::optional<std::vector<std::pair<std::string, double>>> fields;
  if (outcome == JournalStatement::Outcome::row) fields = parse_fields(query.text(3));
  if (!fields)
    throw InputError(
        fmt::format("{}: a point cannot be read ({}); expected a journal of memwall sweep. Delete it to "
                    "begin anew.",
                    path_.string(), database_->message()));
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
  JournalStatement insert(*database_, "INSERT OR REPLACE INTO point VALUES(?, ?, ?, ?, ?, ?)");
  if (insert) {
    insert.bind(1, key);
    insert.bind(2, to_text(scenario));
    insert.bind(3, record.has_all ? 1 : 0);
    insert.bind(4, record.error);
    insert.bind(5, record.cause);
    insert.bind(6, fields_text(record));
    if (insert.step() == JournalStatement::Outcome::done) return true;
  }
  failure_ = fmt::format("{}: {}; finished points are no longer kept, those that are in it stay.", path_.string(),
                         database_->message());
  return false;
}

}  // namespace memwall
