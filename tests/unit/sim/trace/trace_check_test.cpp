// Is every kind of unsound trace refused with a sentence that names the place?
#include "sim/trace/trace_check.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class TraceCheck : public ::testing::Test {
 protected:
  TraceCheck() {
    builder_.trace().knowledge.allocations = true;
    builder_.add_thread("main");
    builder_.add_stream("compute", StreamRole::compute);
    storage_ = builder_.add_storage(100, StorageKind::activation, "hbm", "x");
  }
  OpId kernel(std::vector<Use> uses) {
    Op op;
    op.kind = OpKind::kernel;
    return builder_.append(op, uses);
  }
  void expect_fault(const std::string& words) {
    const auto sentences = check(builder_.trace());
    ASSERT_FALSE(sentences.empty()) << "expected: " << words;
    EXPECT_NE(sentences[0].find(words), std::string::npos) << sentences[0];
    EXPECT_THROW(require_sound(builder_.trace(), "test"), InputError);
  }
  TraceBuilder builder_;
  StorageId storage_ = 0;
};

TEST_F(TraceCheck, ASoundTraceHasNoFaults) {
  builder_.alloc(storage_, 0);
  kernel({{storage_, 0, Access::write}});
  kernel({{storage_, TraceBuilder::kLatest, Access::read}});
  builder_.free(storage_, 0);
  EXPECT_TRUE(check(builder_.trace()).empty());
}

TEST_F(TraceCheck, ReadingWhatNobodyWrote) {
  builder_.alloc(storage_, 0);
  kernel({{storage_, 0, Access::read}});
  expect_fault("which nobody has written");
}

TEST_F(TraceCheck, UsingWhatWasFreed) {
  builder_.alloc(storage_, 0);
  kernel({{storage_, 0, Access::write}});
  builder_.free(storage_, 0);
  kernel({{storage_, TraceBuilder::kLatest, Access::read}});
  expect_fault("which was freed before");
}

TEST_F(TraceCheck, FreeingTwice) {
  builder_.alloc(storage_, 0);
  builder_.free(storage_, 0);
  builder_.free(storage_, 0);
  expect_fault("which was freed before");
}

TEST_F(TraceCheck, FreeingWhatWasNeverAllocated) {
  builder_.free(storage_, 0);
  expect_fault("was never allocated");
}

TEST_F(TraceCheck, ReadingAnOldVersion) {
  builder_.alloc(storage_, 0);
  kernel({{storage_, 0, Access::write}});
  kernel({{storage_, 0, Access::write}});
  kernel({{storage_, 1, Access::read}});
  expect_fault("reads version 1");
}

TEST_F(TraceCheck, NegativeSizes) {
  builder_.trace().storages[storage_].bytes = -5;
  expect_fault("-5 bytes");
}

TEST_F(TraceCheck, SizesThatNoMemoryHas) {
  builder_.trace().storages[storage_].bytes = Bytes{1} << 60;
  expect_fault("expected 0 to 2^50");
}

TEST_F(TraceCheck, MoreEventsThanAProgramCanHave) {
  builder_.trace().event_count = 4'000'000'000u;
  expect_fault("4000000000 events");
}

TEST_F(TraceCheck, NegativeDurations) {
  builder_.trace().ops[kernel({})].duration = microseconds(-1);
  expect_fault("negative duration");
  EXPECT_THROW(require_sound_costs(builder_.trace(), "test"), InputError);
}

TEST_F(TraceCheck, OfCostsLooksAtNothingElse) {
  kernel({});
  builder_.free(storage_, 0);
  EXPECT_NO_THROW(require_sound_costs(builder_.trace(), "test"));
  expect_fault("was never allocated");
}

TEST_F(TraceCheck, WaitingForAnEventThatNothingRecorded) {
  builder_.wait(builder_.add_event(), 0, 0);
  expect_fault("which nothing has recorded before");
}

TEST_F(TraceCheck, IndicesOutOfRange) {
  builder_.trace().ops[kernel({})].stream = 9;
  expect_fault("stream that is not listed");
}

TEST_F(TraceCheck, AHandOverPointsBackward) {
  Op op;
  op.kind = OpKind::hand_over;
  op.target = 7;
  builder_.append(op);
  expect_fault("which is not before it");
}

TEST_F(TraceCheck, RecomputeNamesItsOriginal) {
  builder_.trace().ops[kernel({})].phase = Phase::recompute;
  expect_fault("names no original");
}

class ProducerHash : public TraceCheck {};

TEST_F(ProducerHash, TheSameWorkOnTheSameContentHasTheSameHash) {
  const StorageId in = builder_.add_storage(10, StorageKind::input, "hbm", "in", true);
  const StorageId copy = builder_.add_storage(100, StorageKind::activation, "hbm", "copy");
  const StorageId other = builder_.add_storage(100, StorageKind::activation, "hbm", "other");
  for (const StorageId s : {storage_, copy, other}) builder_.alloc(s, 0);
  const OpId a = kernel({{in, TraceBuilder::kLatest, Access::read}, {storage_, 0, Access::write}});
  const OpId b = kernel({{in, TraceBuilder::kLatest, Access::read}, {copy, 0, Access::write}});
  kernel({{in, TraceBuilder::kLatest, Access::read}, {in, 0, Access::write}});
  const OpId changed = kernel({{in, TraceBuilder::kLatest, Access::read}, {other, 0, Access::write}});
  const auto hashes = producer_hashes(builder_.trace());
  EXPECT_EQ(hashes[a], hashes[b]);
  EXPECT_NE(hashes[a], hashes[changed]) << "its input was overwritten in between";
}

TEST_F(ProducerHash, ACopyKeepsTheContent) {
  const StorageId in = builder_.add_storage(10, StorageKind::input, "hbm", "in", true);
  const StorageId there = builder_.add_storage(10, StorageKind::input, "host", "there");
  const StorageId x = builder_.add_storage(10, StorageKind::activation, "hbm", "x2");
  for (const StorageId s : {storage_, there, x}) builder_.alloc(s, 0);
  Op copy;
  copy.kind = OpKind::copy;
  const OpId direct = kernel({{in, TraceBuilder::kLatest, Access::read}, {storage_, 0, Access::write}});
  const std::vector<Use> moved = {{in, TraceBuilder::kLatest, Access::read}, {there, 0, Access::write}};
  builder_.append(copy, moved);
  const OpId through = kernel({{there, TraceBuilder::kLatest, Access::read}, {x, 0, Access::write}});
  const auto hashes = producer_hashes(builder_.trace());
  EXPECT_EQ(hashes[direct], hashes[through]);
}

TEST_F(ProducerHash, ACollectiveTreatsEachBufferForItself) {
  const StorageId a = builder_.add_storage(10, StorageKind::parameter, "hbm", "a", true);
  const StorageId b = builder_.add_storage(10, StorageKind::parameter, "hbm", "b", true);
  std::vector<StorageId> full;
  for (int i = 0; i < 3; ++i) {
    full.push_back(builder_.add_storage(20, StorageKind::parameter, "hbm", "full"));
    builder_.alloc(full.back(), 0);
  }
  Op gather;
  gather.kind = OpKind::collective;
  gather.collective = CollectiveKind::all_gather;
  builder_.append(gather, std::vector<Use>{{a, TraceBuilder::kLatest, Access::read},
                                           {b, TraceBuilder::kLatest, Access::read},
                                           {full[0], 0, Access::write},
                                           {full[1], 0, Access::write}});
  builder_.append(gather, std::vector<Use>{{a, TraceBuilder::kLatest, Access::read}, {full[2], 0, Access::write}});
  const OpId together = kernel({{full[0], TraceBuilder::kLatest, Access::read}, {a, 0, Access::write}});
  const OpId alone = kernel({{full[2], TraceBuilder::kLatest, Access::read}, {b, 0, Access::write}});
  const auto hashes = producer_hashes(builder_.trace());
  EXPECT_EQ(hashes[together], hashes[alone]);
}

TEST_F(TraceCheck, AReferenceThatEndsBehindTheTrace) {
  builder_.trace().storages[storage_].last_referenced = static_cast<OpId>(builder_.trace().ops.size());
  expect_fault("is referred to until op");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
