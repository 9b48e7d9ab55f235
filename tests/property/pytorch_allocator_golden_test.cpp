// Do the caching allocator and its reference give the figures that an independent model of PyTorch's rules gave? Then
// their agreement elsewhere is not that of two who make the same mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes M = MiB(1), kUnlimited = Bytes{1} << 50;

template <typename Subject>
class PytorchGoldenVector : public testing::Test {
 protected:
  void start(Bytes capacity = kUnlimited, const AllocatorSettings& settings = {}) {
    allocator_ = std::make_unique<Subject>(capacity, nullptr, settings);
  }
  Address get(Bytes bytes) {
    const auto address = allocator_->allocate(bytes, 0);
    EXPECT_TRUE(address.has_value()) << bytes;
    return address.value_or(0);
  }
  void free(Address address) { allocator_->free(address); }
  Bytes allocated() { return allocator_->usage().allocated; }
  Bytes reserved() { return allocator_->usage().reserved; }
  std::vector<Bytes> free_sizes() {
    std::vector<Bytes> sizes;
    for (const SegmentState& segment : allocator_->segments())
      for (const BlockState& block : segment.blocks)
        if (block.use == BlockState::Use::free) sizes.push_back(block.size);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }
  static AllocatorSettings expandable() {
    AllocatorSettings settings;
    settings.expandable_segments = true;
    return settings;
  }
  std::unique_ptr<Subject> allocator_;
};

using Subjects = testing::Types<PytorchAllocator, ReferenceAllocator>;
TYPED_TEST_SUITE(PytorchGoldenVector, Subjects);
using Sizes = std::vector<Bytes>;

TYPED_TEST(PytorchGoldenVector, SmallAndLargeSegments) {
  this->start();
  std::vector<Address> all{this->get(1)};
  EXPECT_EQ(this->free_sizes(), (Sizes{2'096'640}));
  all.push_back(this->get(M));
  EXPECT_EQ(this->allocated(), 1'049'088);
  EXPECT_EQ(this->free_sizes(), (Sizes{1'048'064}));
  all.push_back(this->get(M + 1));
  EXPECT_EQ(this->allocated(), 2'098'176);
  EXPECT_EQ(this->free_sizes(), (Sizes{1'048'064, 19'922'432}));
  all.push_back(this->get(9 * M));
  EXPECT_EQ(this->reserved(), 22 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{1'048'064, 10'485'248}));
  all.push_back(this->get(10 * M));
  EXPECT_EQ(this->reserved(), 32 * M);
  all.push_back(this->get(10 * M + 1));
  EXPECT_EQ(this->reserved(), 46'137'344);
  EXPECT_EQ(this->allocator_->statistics().inactive_split_bytes[0].current, 13'629'952);
  for (const Address address : all) this->free(address);
  EXPECT_EQ(this->free_sizes(), (Sizes{2 * M, 10 * M, 12 * M, 20 * M}));
  this->get(15 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{2 * M, 5 * M, 10 * M, 12 * M}));
}

TYPED_TEST(PytorchGoldenVector, ARemainderOfOneMebibyteIsNotSplitOff) {
  this->start();
  this->free(this->get(40 * M));
  const Address whole = this->get(39 * M);
  EXPECT_EQ(this->allocated(), 40 * M);
  EXPECT_EQ(this->allocator_->usage().requested, 39 * M);
  this->free(whole);
  this->get(39 * M - 512);
  EXPECT_EQ(this->free_sizes(), (Sizes{M + 512}));
}

TYPED_TEST(PytorchGoldenVector, OutOfMemoryWithFortyMebibytesFree) {
  this->start(100 * M);
  const Address a = this->get(60 * M);
  this->get(30 * M);
  this->free(a);
  const Address c = this->get(20 * M);
  this->get(20 * M);
  this->free(c);
  EXPECT_EQ(this->reserved(), 90 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{20 * M, 20 * M}));
  EXPECT_FALSE(this->allocator_->allocate(45 * M, 0).has_value());
  EXPECT_EQ(this->allocator_->events().retries, 1u);
  EXPECT_EQ(this->allocator_->statistics().num_ooms, 1);
}

TYPED_TEST(PytorchGoldenVector, ExpandableSegmentsServeTheSame) {
  this->start(120 * M, this->expandable());
  const Address a = this->get(60 * M);
  this->get(30 * M);
  EXPECT_EQ(this->reserved(), 100 * M);
  this->free(a);
  const Address c = this->get(20 * M);
  this->get(20 * M);
  this->free(c);
  this->get(45 * M);
  EXPECT_EQ(this->reserved(), 100 * M);
  EXPECT_EQ(this->allocated(), 95 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{5 * M}));
  EXPECT_EQ(this->allocator_->events().retries, 1u);
}

TYPED_TEST(PytorchGoldenVector, PagesInUseAreNotUnmapped) {
  this->start(GiB(1), this->expandable());
  this->get(100);
  this->get(M + 1);
  EXPECT_EQ(this->reserved(), 22 * M);
  this->allocator_->release_cached();
  EXPECT_EQ(this->reserved(), 22 * M);
}

TYPED_TEST(PytorchGoldenVector, UnmappedPagesAreMappedAgainAsNeeded) {
  this->start(GiB(1), this->expandable());
  this->get(50 * M);
  const Address b = this->get(50 * M);
  this->get(50 * M);
  EXPECT_EQ(this->reserved(), 160 * M);
  this->free(b);
  this->allocator_->release_cached();
  EXPECT_EQ(this->reserved(), 120 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{10 * M, 10 * M}));  // before the pages unmapped, and the tail
  this->get(30 * M);
  EXPECT_EQ(this->reserved(), 140 * M);
  EXPECT_EQ(this->free_sizes(), (Sizes{10 * M}));
}

TYPED_TEST(PytorchGoldenVector, OversizeBlocksServeOversizeRequestsOfAboutTheirSize) {
  AllocatorSettings settings;
  settings.max_split_size = 100 * M;
  this->start(kUnlimited, settings);
  this->free(this->get(150 * M));
  this->get(90 * M);
  EXPECT_EQ(this->reserved(), 240 * M);
  const Address whole = this->get(140 * M);
  EXPECT_EQ(this->allocated(), 240 * M);
  this->free(whole);
  this->get(129 * M);
  EXPECT_EQ(this->reserved(), 370 * M);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
