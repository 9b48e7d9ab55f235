#include "study/layout/stage_allocator.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/memory/pytorch_allocator.h"

namespace memwall {
namespace {

using Whose = PassEvent::Whose;
constexpr Address kNowhere = ~Address{0};

// The allocator and what it has reached, counted as TierMemory of the engine does.
class CountedAllocator {
 public:
  explicit CountedAllocator(Bytes capacity) : capacity_(capacity), allocator_(capacity) {}

  Address allocate(Bytes bytes, std::uint16_t stream) {
    std::optional<Address> address = allocator_.allocate(bytes, stream);
    if (!address) {
      lift(bytes);
      address = allocator_.allocate(bytes, stream);
      if (!address) throw std::logic_error("An allocator without limits refuses a storage.");
    }
    const Usage& used = allocator_.usage();
    reached_.reserved = std::max(reached_.reserved, used.reserved);
    reached_.allocated = std::max(reached_.allocated, used.allocated);
    if (is_lifted_ && used.allocated > capacity_) {
      if (std::exchange(in_one_piece_, false)) reached_.missing = 0;
      reached_.missing = std::max(reached_.missing, used.allocated - capacity_);
    }
    return address.value();
  }
  void free(Address address) { allocator_.free(address); }
  const ReservedStage& reached() const { return reached_; }
  bool has_served_all() const { return !is_lifted_ && allocator_.events().retries == 0; }
  std::vector<SegmentState> segments() const { return allocator_.segments(); }

 private:
  void lift(Bytes bytes) {
    const Usage& used = allocator_.usage();
    const Bytes over = std::max(used.allocated + bytes, used.reserved) - capacity_;
    in_one_piece_ = over <= 0;
    reached_.missing = std::max(reached_.missing, over > 0 ? over : std::max<Bytes>(1, bytes));
    is_lifted_ = true;
    allocator_.lift_limits();
  }

  Bytes capacity_;
  PytorchAllocator allocator_;
  ReservedStage reached_;
  bool is_lifted_ = false, in_one_piece_ = false;
};

// The blocks by address, with who is in each, told by places in the schedule and not by number.
struct BlockLayout {
  std::int64_t microbatch = 0;
  std::size_t in_flight = 0;
  std::vector<std::uint64_t> words[2];  // of large and of small blocks
};

class StageFollower {
 public:
  StageFollower(const StageTrace& program, const std::vector<const ChunkEvents*>& chunks, std::int64_t period,
                Bytes capacity)
      : trace_(program.trace),
        lives_(program.lives),
        places_(program.passes),
        chunks_(chunks),
        period_(period),
        device_(device_place(trace_)),
        allocator_(capacity),
        where_(trace_.storages.size(), kNowhere),
        made_by_pass_(trace_.storages.size(), false),
        is_permanent_(trace_.storages.size(), false),
        born_(trace_.storages.size(), 0) {
    for (const PassPlace& place : places_) {
      if (!place.marked) continue;
      if (place.result != kNoStorage) made_by_pass_[place.result] = true;
      for (const StorageId id : place.parameter_gradients)
        if (id != kNoStorage) made_by_pass_[id] = is_permanent_[id] = true;
    }
  }

  StageAllocation run() {
    for (StorageId id = 0; id < where_.size(); ++id)
      if (trace_.storages[id].preexisting && trace_.storages[id].place == device_) {
        is_permanent_[id] = true;
        place(id);
      }
    std::size_t next = 0;
    for (OpId id = 0; id <= lives_.size(); ++id) {
      for (; next < places_.size() && places_[next].begin == id; ++next) {
        if (places_[next].marked) run_pass(places_[next]);
        finish_pass(places_[next]);
      }
      if (id < lives_.size()) step(lives_[id]);
    }
    const bool both = cycles_[0] != 0 && cycles_[1] != 0 && allocator_.has_served_all();
    return {allocator_.reached(), both ? std::lcm(cycles_[0], cycles_[1]) : 0};
  }

 private:
  struct MicroBatch {
    std::vector<Address> made;
    StorageId input = kNoStorage, output = kNoStorage;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  // chunk, micro-batch

  void place(StorageId id) {
    where_[id] = allocator_.allocate(trace_.storages[id].bytes, trace_.storages[id].stream);
    born_[id] = births_++;
  }
  void remove(StorageId id) {
    if (where_[id] == kNowhere) return;  // a pass has freed it
    allocator_.free(std::exchange(where_[id], kNowhere));
  }

  void step(const Tape::StorageChange& change) {
    if (trace_.storages[change.storage].place != device_) return;
    if (!change.begins) return remove(change.storage);
    if (!made_by_pass_[change.storage]) place(change.storage);
  }

  const PassEvents& events_of(const PipelinePass& pass) const {
    const ChunkEvents& chunk = *chunks_[static_cast<std::size_t>(pass.chunk)];
    if (pass.backward) return pass.microbatch == 0 ? chunk.first_backward : chunk.backward;
    return pass.microbatch == 0 ? chunk.first_forward : chunk.forward;
  }

  void run_pass(const PassPlace& place) {
    const PipelinePass& pass = place.pass;
    MicroBatch& flight = flight_[{pass.chunk, pass.microbatch}];
    if (!pass.backward) flight.input = place.received, flight.output = place.result;
    const PassEvents& pass_events = events_of(pass);
    std::vector<Address> made(pass_events.own, kNowhere);
    for (const PassEvent& event : pass_events.events) {
      if (event.whose == Whose::own) {
        Address& where = made[event.number];
        if (event.allocates)
          where = allocator_.allocate(event.bytes, event.stream);
        else
          allocator_.free(std::exchange(where, kNowhere));
      } else if (event.whose == Whose::forward) {
        allocator_.free(std::exchange(flight.made[event.number], kNowhere));
      } else {
        const StorageId id = storage_of(event, place, flight);
        event.allocates ? this->place(id) : remove(id);
      }
    }
    if (pass.backward)
      flight_.erase({pass.chunk, pass.microbatch});
    else
      flight.made = std::move(made);
  }

  static StorageId storage_of(const PassEvent& event, const PassPlace& place, const MicroBatch& flight) {
    switch (event.whose) {
      case Whose::received:
        return place.received;
      case Whose::result:
        return place.result;
      case Whose::input:
        return flight.input;
      case Whose::output:
        return flight.output;
      case Whose::parameter:
        return place.parameter_gradients[event.number];
      case Whose::own:
      case Whose::forward:
        break;
    }
    throw std::logic_error("A pass names a storage of nobody.");
  }

  // Behind the last pass of a period the blocks are compared with those behind earlier ones.
  void finish_pass(const PassPlace& place) {
    const PipelinePass& pass = place.pass;
    if (period_ == 0 || !pass.backward || pass.chunk != 0 || (pass.microbatch + 1) % period_ != 0) return;
    if (cycles_[0] != 0 && cycles_[1] != 0) return;
    BlockLayout now{pass.microbatch + 1, flight_.size(), {}};
    write_words(now);
    for (const bool small : {false, true})
      for (auto before = seen_.rbegin(); before != seen_.rend() && cycles_[small] == 0; ++before)
        if (before->in_flight == now.in_flight && before->words[small] == now.words[small])
          cycles_[small] = now.microbatch - before->microbatch;
    seen_.push_back(std::move(now));
  }

  void write_words(BlockLayout& layout) const {
    const std::unordered_map<Address, std::uint64_t> names = names_of_blocks(layout.microbatch);
    for (const SegmentState& segment : allocator_.segments()) {
      std::vector<std::uint64_t>& all = layout.words[segment.small_pool];
      all.push_back(static_cast<std::uint64_t>(segment.size));
      all.push_back(segment.stream);
      for (const BlockState& block : segment.blocks) {
        all.push_back(static_cast<std::uint64_t>(block.size));
        all.push_back(block.use == BlockState::Use::in_use ? names.at(block.address) : 0);
      }
    }
  }

  // Of what lives on: by number; of what the schedule makes: how many were made since; of passes: by chunk, micro-batch
  // seen from here, and number.
  std::unordered_map<Address, std::uint64_t> names_of_blocks(std::int64_t microbatch) const {
    constexpr std::uint64_t kPermanent = std::uint64_t{1} << 60, kOfStep = std::uint64_t{2} << 60,
                            kOfPass = std::uint64_t{3} << 60, kMicroBatches = 0xffffff;
    std::unordered_map<Address, std::uint64_t> names;
    for (StorageId id = 0; id < where_.size(); ++id)
      if (where_[id] != kNowhere)
        names[where_[id]] = is_permanent_[id] ? kPermanent + id : kOfStep + births_ - born_[id];
    for (const auto& [key, flight] : flight_)
      for (std::size_t i = 0; i < flight.made.size(); ++i)
        if (flight.made[i] != kNowhere)
          names[flight.made[i]] = kOfPass + (static_cast<std::uint64_t>(key.first) << 48) +
                                  ((static_cast<std::uint64_t>(key.second - microbatch) & kMicroBatches) << 24) + i;
    return names;
  }

  const Trace& trace_;
  const std::vector<Tape::StorageChange>& lives_;
  const std::vector<PassPlace>& places_;
  const std::vector<const ChunkEvents*>& chunks_;
  std::int64_t period_;
  std::uint8_t device_;
  CountedAllocator allocator_;
  std::vector<Address> where_;  // by storage of the program
  std::vector<bool> made_by_pass_;
  std::vector<bool> is_permanent_;
  std::vector<std::uint64_t> born_;
  std::uint64_t births_ = 0;
  std::map<Key, MicroBatch> flight_;
  std::vector<BlockLayout> seen_;
  std::int64_t cycles_[2] = {0, 0};  // of large and of small blocks
};

}  // namespace

StageAllocation allocated_stage(const StageTrace& program, const std::vector<const ChunkEvents*>& chunks,
                                std::int64_t period, Bytes capacity) {
  return StageFollower(program, chunks, period, capacity).run();
}

}  // namespace memwall
