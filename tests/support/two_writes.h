// Ranks whose GPU holds one of the two storages that they write: a pager moves the first to the host.
#pragma once

#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"

namespace memwall {

inline constexpr Bytes kGB = 1'000'000'000;

// Writes 6 GB in a kernel of 1 ms, then 6 GB more.
inline RankAuthor two_writes(std::uint32_t number) {
  RankAuthor author(number);
  Trace& t = author.trace();
  t.knowledge.dataflow = t.knowledge.allocations = true;
  const std::uint8_t hbm = t.place("hbm");
  for (int i = 0; i < 2; ++i) {
    Storage& storage = t.storages.emplace_back();
    storage.bytes = 6 * kGB;
    storage.place = hbm;
    Op alloc;
    alloc.kind = OpKind::alloc;
    alloc.target = static_cast<std::uint32_t>(i);
    author.builder().append(alloc);
    const OpId kernel = author.kernel(microseconds(1000));
    t.ops[kernel].first_use = static_cast<std::uint32_t>(t.uses.size());
    t.ops[kernel].use_count = 1;
    t.uses.push_back({static_cast<StorageId>(i), 1, Access::write});
  }
  return author;
}

// The machine of round numbers with 10 GB on its GPU: 10 GB/s from there to the host.
inline Machine small_gpu() {
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].capacity = 10 * kGB;
  return machine;
}

}  // namespace memwall
