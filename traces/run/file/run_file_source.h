// A run read from a file by range. Internal to traces/run; RunSource says what each function gives.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "traces/run/file/open_table.h"
#include "traces/run/file/run_check.h"
#include "traces/run/run_outline_source.h"
#include "traces/run/run_source.h"
#include "traces/run/series_levels.h"

namespace memwall {

class RunInFile final : public RunSource {
 public:
  // Reads the outline. Throws InputError.
  explicit RunInFile(const std::filesystem::path& path);
  // Reads of each table what HDF5 needs to find any of its rows.
  void touch() const;

  const RunOutline& outline() const override { return outline_; }
  std::vector<LaneCell> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                              std::uint64_t last) const override;
  SpanBlock spans(std::uint32_t block) const override;
  std::vector<MoveRecord> moves(std::uint64_t first, std::uint64_t count) const override;
  std::vector<MemoryHigh> memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const override;
  std::vector<RateHigh> link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const override;
  StorageColumns storages(const LoadProgress& progress) const override;
  std::vector<Residency> residency(const LoadProgress& progress) const override;
  std::vector<std::uint32_t> at_peak(std::uint32_t tier) const override;
  OpDetail op(OpId id) const override;
  std::string text(StringId id) const override;
  std::vector<std::string> texts(const LoadProgress& progress) const override;
  std::vector<OpId> ops_with(const std::vector<bool>& wanted, std::size_t most,
                             const LoadProgress& progress) const override;
  std::vector<OpId> followers(OpId id, std::size_t most) const override;
  std::vector<StorageUse> uses_of(StorageId storage, std::size_t most) const override;
  std::shared_ptr<const Run> whole(const LoadProgress& progress) const override;
  std::size_t resident_bytes() const override;

 private:
  struct LevelRows {
    std::uint64_t first = 0, count = 0;  // in index/cells
  };

  void read_counts();
  void read_index();
  void check_lanes() const;
  void check_lane(std::size_t number) const;
  void read_levels();
  void read_blocks();
  void read_steps();
  template <class Point>
  void check_series_levels(const std::string& name, std::size_t count) const;
  std::uint64_t row_of_bucket(const LevelRows& rows, std::uint64_t bucket) const;
  std::vector<LaneCell> read_cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                                   std::uint64_t count) const;
  template <class Point>
  auto select(const std::string& name, std::uint32_t number, Time begin, Time end, std::size_t most) const;
  void read_peer(OpId id, OpRecord& record) const;
  OpenTable& table(const std::string& name) const;  // opened when first asked for

  ChecksummedFile checksummed_;
  ReadContext context_;
  Hdf5Handle file_;
  RunOutline outline_;
  std::unique_ptr<const RunCheck> check_;
  std::unique_ptr<const EngineLanes> engines_;
  std::vector<std::vector<LevelRows>> levels_;  // per lane
  // Below: by Hdf5Section.
  mutable std::map<std::string, std::unique_ptr<OpenTable>> tables_;
  mutable std::map<std::pair<std::uint32_t, std::uint8_t>, std::vector<LaneCell>> small_levels_;
  mutable std::weak_ptr<const Run> whole_;
};

}  // namespace memwall
