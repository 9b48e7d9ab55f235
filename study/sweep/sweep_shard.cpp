#include "study/sweep/sweep_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/error.h"
#include "study/sweep/journal_database.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakeTables =
    "CREATE TABLE IF NOT EXISTS shard(study TEXT NOT NULL, fingerprint TEXT NOT NULL, shard INTEGER NOT NULL, shards "
    "INTEGER NOT NULL, points INTEGER NOT NULL, accept_gaps INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS shard_point(number INTEGER PRIMARY KEY, has_all INTEGER NOT NULL, error TEXT NOT NULL, "
    "cause TEXT NOT NULL, fields TEXT NOT NULL);"
    "DELETE FROM shard; DELETE FROM shard_point";

bool insert_head(const JournalDatabase& database, const ShardHead& head) {
  JournalStatement insert(database, "INSERT INTO shard VALUES(?, ?, ?, ?, ?, ?)");
  if (!insert) return false;
  insert.bind(1, study_text(head.study));
  insert.bind(2, head.fingerprint);
  insert.bind(3, static_cast<std::int64_t>(head.shard.index));
  insert.bind(4, static_cast<std::int64_t>(head.shard.count));
  insert.bind(5, static_cast<std::int64_t>(head.points));
  insert.bind(6, head.accept_gaps ? 1 : 0);
  return insert.step() == JournalStatement::Outcome::done;
}

bool insert_records(const JournalDatabase& database, const SweepShard& shard, const std::vector<PointRecord>& records) {
  JournalStatement insert(database, "INSERT INTO shard_point VALUES(?, ?, ?, ?, ?)");
  if (!insert) return false;
  for (std::size_t i = 0; i < records.size(); ++i) {
    insert.bind(1, static_cast<std::int64_t>(shard.index + i * shard.count));
    insert.bind(2, records[i].has_all ? 1 : 0);
    insert.bind(3, records[i].error);
    insert.bind(4, records[i].cause);
    insert.bind(5, fields_text(records[i]));
    if (insert.step() != JournalStatement::Outcome::done) return false;
    insert.reset();
  }
  return true;
}

class ShardReader {
 public:
  explicit ShardReader(const fs::path& path) : path_(path), database_(path, JournalDatabase::Opening::existing) {}

  ShardHead head() {
    if (database_.number("SELECT count(*) FROM sqlite_master WHERE name = 'shard'") != 1)
      fail(
          "it is a journal without a finished shard; run the shard again (memwall sweep --shard), it goes on where it "
          "was stopped");
    JournalStatement query(database_, "SELECT study, fingerprint, shard, shards, points, accept_gaps FROM shard");
    if (!query || query.step() != JournalStatement::Outcome::row)
      fail("the shard in it is not finished; run it again, it goes on where it was stopped");
    const std::int64_t index = query.number(2), count = query.number(3), points = query.number(4);
    if (count < 1 || count > static_cast<std::int64_t>(kMostShards) || index < 0 || index >= count || points < 1 ||
        points > static_cast<std::int64_t>(kMostPoints))
      fail(fmt::format("it says shard {}/{} of {} points, which there is not; run the shard again", index, count,
                       points));
    ShardHead head{.study = parse_study_file(query.text(0), path_.string()),
                   .accept_gaps = query.number(5) != 0,
                   .fingerprint = query.text(1),
                   .shard = {static_cast<std::size_t>(index), static_cast<std::size_t>(count)},
                   .points = static_cast<std::size_t>(points)};
    return head;
  }

  // Into their places among all points.
  void read_points(const ShardHead& head, std::vector<PointRecord>& records) {
    JournalStatement query(database_, "SELECT number, has_all, error, cause, fields FROM shard_point ORDER BY number");
    std::size_t expected = head.shard.index, found = 0;
    while (query && query.step() == JournalStatement::Outcome::row) {
      auto fields = parse_fields(query.text(4));
      if (query.number(0) != static_cast<std::int64_t>(expected) || expected >= records.size() || !fields) break;
      records[expected] = {std::move(*fields), query.text(2), query.text(3), query.number(1) != 0};
      expected += head.shard.count;
      ++found;
    }
    if (found != head.shard.points_of(head.points))
      fail(fmt::format("shard {} holds {} of its {} points; run it again, it goes on where it was stopped",
                       to_string(head.shard), found, head.shard.points_of(head.points)));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: {}.", path_.string(), what));
  }

  fs::path path_;
  JournalDatabase database_;
};

void require_same_study(const ShardHead& one, const fs::path& path, const ShardHead& first,
                        const fs::path& first_path) {
  if (one.shard.count != first.shard.count)
    throw InputError(fmt::format("{} is shard {} and {} shard {}; expected shards of one number of them.",
                                 first_path.string(), to_string(first.shard), path.string(), to_string(one.shard)));
  if (one.fingerprint != first.fingerprint || one.points != first.points)
    throw InputError(fmt::format(
        "{} and {} are of different studies: other axes or options, another content of a file, or another build of "
        "memwall; expected shards of one study.",
        first_path.string(), path.string()));
}

void require_all(const std::vector<const fs::path*>& journal_of) {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < journal_of.size(); ++i)
    if (journal_of[i] == nullptr) missing.push_back(to_string(SweepShard{i, journal_of.size()}));
  if (missing.empty()) return;
  constexpr std::size_t kNamed = 20;
  const std::size_t more = missing.size() - std::min(missing.size(), kNamed);
  if (more > 0) missing.resize(kNamed);
  throw InputError(fmt::format("Of {} shards these are missing: {}{}; expected all of them.", journal_of.size(),
                               listed(missing), more > 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace

SweepShard parse_shard(const std::string& text) {
  SweepShard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool has_slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = has_slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  if (!has_slash || count.ec != std::errc() || count.ptr != end || shard.count == 0 || shard.count > kMostShards)
    throw UsageError(fmt::format(
        "--shard {}: expected I/N, the number of the shard, from 0 on, and how many there are, at most {}: 0/4.", text,
        kMostShards));
  if (shard.index >= shard.count)
    throw UsageError(fmt::format("--shard {}: shards are counted from 0; expected 0/{} to {}/{}.", text, shard.count,
                                 shard.count - 1, shard.count));
  return shard;
}

std::string to_string(const SweepShard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

std::string shard_journal(const std::string& beginning, const SweepShard& shard) {
  return fmt::format("{}.{}-of-{}.sqlite", beginning, shard.index, shard.count);
}

void finish_shard(const fs::path& journal, const ShardHead& head, const std::vector<PointRecord>& records) {
  JournalDatabase database(journal);
  if (database.run("BEGIN IMMEDIATE") && database.run(kMakeTables) && insert_head(database, head) &&
      insert_records(database, head.shard, records) && database.run("COMMIT"))
    return;
  throw InputError(fmt::format("{}: the finished shard cannot be written ({}); points that are in it stay.",
                               journal.string(), database.message()));
}

MergedShards merged_shards(const std::vector<fs::path>& journals) {
  MergedShards merged;
  std::vector<const fs::path*> journal_of;  // by shard
  ShardHead first;
  for (const fs::path& path : journals) {
    ShardReader reader(path);
    ShardHead head = reader.head();
    if (journal_of.empty()) {
      first = head;
      journal_of.assign(head.shard.count, nullptr);
      merged.records.resize(head.points);
    }
    require_same_study(head, path, first, journals.front());
    if (const fs::path* other = std::exchange(journal_of[head.shard.index], &path); other != nullptr)
      throw InputError(fmt::format("{} and {} are both shard {}; expected each shard once.", other->string(),
                                   path.string(), to_string(head.shard)));
    reader.read_points(head, merged.records);
  }
  require_all(journal_of);
  merged.study = std::move(first.study);
  merged.accept_gaps = first.accept_gaps;
  return merged;
}

}  // namespace memwall
