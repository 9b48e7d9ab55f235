// Spans that were read, within a budget of bytes: the least recently looked at go first.
//
// find() never reads: a frame draws what is there, and says what is missing; a worker loads that,
// and the next frame is sharper. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gui/model/lane_blocks.h"
#include "gui/model/level_of_detail.h"
#include "gui/model/loaded_block.h"
#include "gui/model/recent_uses.h"
#include "traces/run/run_source.h"

namespace memwall::gui {

// What let an op begin, and what it let begin.
struct OpRelations {
  OpDetail detail;
  // A part of another op (its call, or its work) that a part of this one let begin.
  struct Follower {
    OpId op = kNoOp;
    bool call = false;     // that waited
    bool of_call = false;  // for this op's call
  };
  std::vector<Follower> followers;  // of at most kMostFollowers ops, ascending
};

class SpanCache {
 public:
  static constexpr std::size_t kDefaultBudget = std::size_t{256} << 20;
  // Numbers of blocks from here on: `block - kMoveBlocks` counts blocks of a pager's moves.
  static constexpr std::uint32_t kMoveBlocks = 0x80000000;
  // Not blocks: what the last find_relations(), the last find_uses() missed.
  static constexpr std::uint32_t kRelations = 0xffffffff, kUses = 0xfffffffe;
  static bool is_block(std::uint32_t number) { return number < kUses; }
  static constexpr std::size_t kMostFollowers = 16;
  explicit SpanCache(std::shared_ptr<const RunSource> source, std::size_t budget = kDefaultBudget);

  // Null if it is not in memory.
  std::shared_ptr<const LoadedBlock> find(std::uint32_t block) const;
  // Reads it where it is not. Of kRelations, kUses: reads those, and returns an empty block. Throws InputError.
  std::shared_ptr<const LoadedBlock> load(std::uint32_t block);
  // Of the last few ops. Null if they are not in memory; load(kRelations) then reads them.
  std::shared_ptr<const OpRelations> find_relations(OpId op) const;
  // The ops that use a storage, of the last few storages. Null if they are not in memory; load(kUses) then reads them.
  std::shared_ptr<const StorageUses> find_uses(StorageId storage) const;
  // Reads them where they are not. Throws InputError.
  std::shared_ptr<const StorageUses> load_uses(StorageId storage) const { return uses_.of(*source_, storage); }
  // The block that holds an op.
  static std::uint32_t block_of(OpId op) { return op / kSpanBlock; }

  const LevelOfDetail& level_of_detail() const { return level_of_detail_; }
  // REQUIRES: lane < outline().lanes.size().
  const LaneBlockSearch& blocks_of(std::uint32_t lane) const { return searches_[lane]; }
  const LaneTable& lanes() const { return lanes_; }
  // The number for find() and load() of a lane's block.
  std::uint32_t number_of(std::uint32_t lane, const LaneBlock& block) const;
  // Blocks of spans, and levels of detail.
  std::size_t resident_bytes() const;

 private:
  struct Entry {
    std::shared_ptr<const LoadedBlock> block;
    std::list<std::uint32_t>::iterator age;
  };
  std::shared_ptr<const LoadedBlock> read(std::uint32_t block);
  void read_names(LoadedBlock& block);
  void load_relations();
  void load_wanted_uses();
  std::shared_ptr<const RunSource> source_;
  std::size_t budget_, resident_ = 0;
  LaneTable lanes_;
  std::vector<LaneBlockSearch> searches_;  // per lane
  LevelOfDetail level_of_detail_;
  mutable std::mutex mutex_;
  mutable std::list<std::uint32_t> ages_;  // most recently used first
  mutable std::map<std::uint32_t, Entry> entries_;
  std::unordered_map<StringId, std::shared_ptr<const std::string>> names_;  // at most kMostNames
  mutable OpId wanted_ = kNoOp;                                             // by the last find_relations()
  mutable StorageId wanted_uses_ = kNoStorage;                              // by the last find_uses()
  std::list<std::shared_ptr<const OpRelations>> relations_;                 // the last few, newest first
  RecentUses uses_;
};

}  // namespace memwall::gui
