// A part of a study, so that several machines share its points: of n shards, shard i has the points i, i + n, i + 2n,
// ... counted from 0. Each has a journal of its own, which holds what the points gave once all of them are finished;
// the shards together are the study.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "study/sweep/study_file.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

struct SweepShard {
  std::size_t index = 0, count = 1;

  bool has(std::size_t point) const { return point % count == index; }
  // Of a study of that many points.
  std::size_t points_of(std::size_t all) const { return index < all ? (all - index - 1) / count + 1 : 0; }
};

inline constexpr std::size_t kMostShards = 100'000;

// "0/4", ..., "3/4". Throws UsageError.
SweepShard parse_shard(const std::string& text);
std::string to_string(const SweepShard& shard);  // "0/4"

// "memwall-sweep.0-of-4.sqlite", where a shard keeps its points unless another place is named.
std::string shard_journal(const std::string& beginning, const SweepShard& shard);

// What a finished shard knows of its study.
struct ShardHead {
  StudyFile study;
  bool accept_gaps = false;
  std::string fingerprint;  // of all points of the study (study/sweep/sweep.h)
  SweepShard shard;
  std::size_t points = 0;  // of the whole study
};

// Writes what the points of a shard gave, in their order, into its journal; what another study's shard had left there
// is replaced. Throws InputError where it cannot be written. REQUIRES: as many records as the shard has points.
void finish_shard(const std::filesystem::path& journal, const ShardHead& head, const std::vector<PointRecord>& records);

struct MergedShards {
  StudyFile study;
  bool accept_gaps = false;
  std::vector<PointRecord> records;  // in the order of the study's points
};

// All shards of one study. Throws InputError where a file is no finished shard, where they are of different studies or
// numbers of shards, where one is there twice, and where some are missing, which are named.
MergedShards merged_shards(const std::vector<std::filesystem::path>& journals);

}  // namespace memwall
