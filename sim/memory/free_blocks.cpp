#include "sim/memory/free_blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace memwall {
namespace {

constexpr int kBinsPerOctave = 64;

bool before(const FreeBlocks::Entry& a, const FreeBlocks::Entry& b) {
  return a.size != b.size ? a.size > b.size : a.address > b.address;
}

}  // namespace

std::size_t FreeBlocks::bin_of(Bytes size) {
  const auto quanta = static_cast<std::uint64_t>(size / kQuantum);
  if (quanta < kBinsPerOctave) return quanta;
  const int octave = std::bit_width(quanta) - std::bit_width(unsigned{kBinsPerOctave});
  // (quanta >> octave) is in [64, 128): 64 bins per octave, behind the 64 exact ones.
  return static_cast<std::size_t>(octave) * kBinsPerOctave + (quanta >> octave);
}

std::size_t FreeBlocks::next_filled(std::size_t bin) const {
  std::size_t word = bin / 64;
  if (word >= filled_.size()) return bins_.size();
  const std::uint64_t here = filled_[word] & (~0ULL << (bin % 64));
  if (here != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(here));
  if (word == 63) return bins_.size();
  const std::uint64_t later = filled_words_ & (~0ULL << (word + 1));
  if (later == 0) return bins_.size();
  word = static_cast<std::size_t>(std::countr_zero(later));
  return word * 64 + static_cast<std::size_t>(std::countr_zero(filled_[word]));
}

std::size_t FreeBlocks::previous_filled(std::size_t bin) const {
  std::size_t word = std::min(bin / 64, filled_.size() - 1);
  const std::uint64_t below = bin / 64 < filled_.size() ? (1ULL << (bin % 64)) - 1 : ~0ULL;
  const std::uint64_t here = filled_[word] & below;
  if (here != 0) return word * 64 + static_cast<std::size_t>(std::bit_width(here)) - 1;
  const std::uint64_t earlier = filled_words_ & ((1ULL << word) - 1);
  if (earlier == 0) return bins_.size();
  word = static_cast<std::size_t>(std::bit_width(earlier)) - 1;
  return word * 64 + static_cast<std::size_t>(std::bit_width(filled_[word])) - 1;
}

void FreeBlocks::mark_empty(std::size_t bin) {
  filled_[bin / 64] &= ~(1ULL << (bin % 64));
  if (filled_[bin / 64] == 0) filled_words_ &= ~(1ULL << (bin / 64));
}

// Fields one by one instead of an Entry: a struct that was just written and is then copied whole stalls.
void FreeBlocks::insert(Bytes size, Address address, std::uint32_t block) {
  assert(size >= kQuantum && size <= kLargest && size % kQuantum == 0);
  const std::size_t number = bin_of(size);
  if (number >= bins_.size()) bins_.resize(number + 1);
  Bin& bin = bins_[number];
  if (bin.empty()) {
    filled_[number / 64] |= 1ULL << (number % 64);
    filled_words_ |= 1ULL << (number / 64);
    bin.push_back({size, address, block});
  } else if (const Entry& last = bin.back(); last.size != size ? last.size > size : last.address > address) {
    bin.push_back({size, address, block});
  } else {
    const Entry entry{size, address, block};
    bin.insert(std::lower_bound(bin.begin(), bin.end(), entry, before), entry);
  }
}

void FreeBlocks::erase(Bytes size, Address address, std::uint32_t block) {
  const std::size_t number = bin_of(size);
  Bin& bin = bins_[number];
  auto found = std::lower_bound(bin.begin(), bin.end(), Entry{size, address, 0}, before);
  while (found != bin.end() && found->block != block) ++found;
  assert(found != bin.end() && found->size == size && found->address == address);
  bin.erase(found);
  if (bin.empty()) mark_empty(number);
}

std::uint32_t FreeBlocks::take_best(Bytes size) {
  std::size_t number = bin_of(size);
  if (number >= bins_.size()) return kNone;
  Bin* bin = &bins_[number];
  // The bin of `size` may hold smaller blocks too; they stand at its back.
  auto best = bin->end();
  if (!bin->empty() && bin->front().size >= size) {
    best = bin->back().size >= size
               ? bin->end() - 1
               : std::partition_point(bin->begin(), bin->end(), [&](const Entry& e) { return e.size >= size; }) - 1;
  } else {
    number = next_filled(number + 1);
    if (number >= bins_.size()) return kNone;
    bin = &bins_[number];
    best = bin->end() - 1;
  }
  const std::uint32_t block = best->block;
  bin->erase(best);
  if (bin->empty()) mark_empty(number);
  return block;
}

const FreeBlocks::Entry* FreeBlocks::find_from(Bytes size, Address address) const {
  const Entry key{size, address, 0};
  std::size_t number = bin_of(size);
  if (number < bins_.size()) {
    const Bin& bin = bins_[number];
    const auto behind = std::partition_point(bin.begin(), bin.end(), [&](const Entry& e) { return !before(key, e); });
    if (behind != bin.begin()) return &*(behind - 1);
  }
  number = next_filled(number + 1);
  return number < bins_.size() ? &bins_[number].back() : nullptr;
}

const FreeBlocks::Entry* FreeBlocks::find_before(Bytes size, Address address) const {
  const Entry key{size, address, 0};
  std::size_t number = bin_of(size);
  if (number < bins_.size()) {
    const Bin& bin = bins_[number];
    const auto smaller = std::partition_point(bin.begin(), bin.end(), [&](const Entry& e) { return !before(key, e); });
    if (smaller != bin.end()) return &*smaller;
  }
  number = previous_filled(number);
  return number < bins_.size() ? &bins_[number].front() : nullptr;
}

std::vector<FreeBlocks::Entry> FreeBlocks::entries() const {
  std::vector<Entry> all;
  for (const Bin& bin : bins_) all.insert(all.end(), bin.rbegin(), bin.rend());
  return all;
}

}  // namespace memwall
