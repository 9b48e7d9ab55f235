// Finished points of studies in an SQLite file: what was computed once is not computed again, and what is in it
// survives the end of the program at any moment.
//
// A point's key is a hash of all that its result depends on (PointKeys); equal keys have equal results. Each point is
// committed by itself (write-ahead log), so that a program that is killed loses what it was just computing, and nothing
// else. Several programs may use one journal.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/scenario.h"

namespace memwall {

class JournalDatabase;

// What a point gave: fields, or the sentence by which it was refused.
struct PointRecord {
  std::vector<std::pair<std::string, double>> fields{};
  std::string error{};   // "" = it ran
  std::string cause{};   // of an error: "usage", "input", "infeasible"; groups failures
  bool has_all = false;  // all fields of the JSON, or the quick ones

  // Of that name in full; nothing where it is not known.
  std::optional<double> find(std::string_view field) const;
};

// Of everything that a result depends on: memwall's own file (the program, or the Python package's library), the machines
// and workloads that come with it, the scenario, and the content of each file that it names. Hashes of files are kept
// for as long as this lives.
class PointKeys {
 public:
  PointKeys();
  // 32 hexadecimal digits. `accept_gaps`: as SweepRequest has it; `folded`: of a job whose passes are folded. Throws
  // InputError where a file cannot be read.
  std::string key(const Scenario& scenario, bool accept_gaps = false, bool folded = false);
  static std::string hash(const std::string& text);  // 32 hexadecimal digits

 private:
  std::string content_hash(const std::string& name);

  std::string program_;
  std::mutex mutex_;
  std::map<std::string, std::string> hashes_;  // by name; "" = no file
};

// Where a verb keeps it, unless another place is named.
inline constexpr const char* kUsualJournal = "memwall-sweep.sqlite";

class SweepJournal {
 public:
  // Opens or makes it. Throws InputError where the file is no journal, or cannot be opened.
  explicit SweepJournal(const std::filesystem::path& path);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // Nothing where it is not there, or holds fewer fields than are needed. Throws InputError where the file is damaged.
  std::optional<PointRecord> find(const std::string& key, bool needs_all) const;

  // Returns whether it is in the file: not where the disk is full or cannot be written, which failure() then says, nor
  // an error that another attempt may not have (memory that was short, a program that a policy asks).
  bool add(const std::string& key, const Scenario& scenario, const PointRecord& record);
  const std::string& failure() const { return failure_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<JournalDatabase> database_;
  std::string failure_;
};

}  // namespace memwall
