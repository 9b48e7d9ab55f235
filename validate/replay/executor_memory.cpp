#include "validate/replay/executor_memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "sim/error.h"

namespace memwall {

ReplayMemory::ReplayMemory(const Trace& schedule, Backend& backend, Bytes capacity)
    : trace_(schedule),
      backend_(backend),
      capacity_(capacity),
      places_(plan_fixed_places(schedule)),
      allocator_(capacity, &backend.device_memory()),
      addresses_(schedule.storages.size(), kAbsent) {
  try {
    obtain_fixed();
  } catch (...) {
    give_back_fixed();
    throw;
  }
}

ReplayMemory::~ReplayMemory() {
  drop(true);
  allocator_.release_cached();
  give_back_fixed();
}

void ReplayMemory::obtain_fixed() {
  Bytes obtained[2] = {0, 0};  // host, file
  for (const FixedBlock& block : places_.blocks) {
    const bool file = block.place_class == PlaceClass::file;
    const char* what = file                                      ? "the file that stands for NVMe"
                       : block.place_class == PlaceClass::pinned ? "page-locked host memory"
                                                                 : "host memory";
    try {
      fixed_.push_back(file ? backend_.allocate_file(block.bytes)
                            : backend_.allocate_host(block.bytes, block.place_class == PlaceClass::pinned));
    } catch (const std::bad_alloc&) {
      const Bytes needed = file ? places_.file.reserved : places_.host.reserved;
      throw UsageError("Schedule '" + trace_.name + "' needs " + std::to_string(needed) + " bytes of " +
                       (file ? what : "host memory") + ", page-locked blocks rounded up to powers of two; after " +
                       std::to_string(obtained[file]) + " bytes no " + std::to_string(block.bytes) + " more of " +
                       what + " were to be had: " + std::to_string(needed - obtained[file]) + " bytes are missing.");
    }
    obtained[file] += block.bytes;
  }
}

void ReplayMemory::give_back_fixed() {
  for (const Buffer& buffer : fixed_) {
    if (buffer.place_class == PlaceClass::file)
      backend_.free_file(buffer);
    else
      backend_.free_host(buffer);
  }
  fixed_.clear();
}

bool ReplayMemory::on_device(StorageId storage) const { return trace_.places[trace_.storages[storage].place] == "hbm"; }

void ReplayMemory::begin_pass() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (StorageId id = 0; id < addresses_.size(); ++id)
    if (trace_.storages[id].preexisting && on_device(id) && addresses_[id] == kAbsent)
      place(id, "the storage '" + trace_.strings[trace_.storages[id].label] + "', which lives before the first op,");
}

void ReplayMemory::end_pass() { drop(false); }

void ReplayMemory::drop(bool preexisting_too) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (StorageId id = 0; id < addresses_.size(); ++id) {
    if (addresses_[id] == kAbsent || (trace_.storages[id].preexisting && !preexisting_too)) continue;
    allocator_.free(addresses_[id]);
    addresses_[id] = kAbsent;
  }
}

void ReplayMemory::place(StorageId storage, const std::string& asker) {
  const Storage& s = trace_.storages[storage];
  const std::optional<Address> address = allocator_.allocate(s.bytes, s.stream);
  const Usage& usage = allocator_.usage();
  if (!address) {
    // Where enough is free but in pieces, as much as was asked for is missing in one piece.
    const Bytes over = usage.allocated + s.bytes - capacity_;
    throw UsageError("Schedule '" + trace_.name + "' does not fit device memory: " + asker + " takes " +
                     std::to_string(s.bytes) + " bytes while " + std::to_string(usage.allocated) + " are in use and " +
                     std::to_string(usage.reserved) + " reserved of " + std::to_string(capacity_) + "; at least " +
                     std::to_string(over > 0 ? over : s.bytes) + " bytes are missing.");
  }
  addresses_[storage] = *address;
  peak_allocated_ = std::max(peak_allocated_, usage.allocated);
  peak_reserved_ = std::max(peak_reserved_, usage.reserved);
}

void ReplayMemory::alloc(OpId op) {
  const StorageId storage = trace_.ops[op].target;
  if (!on_device(storage)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  place(storage, "op " + std::to_string(op) + " (alloc)");
}

void ReplayMemory::free(OpId op) {
  const StorageId storage = trace_.ops[op].target;
  if (!on_device(storage)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Address& address = addresses_[storage];
  if (address == kAbsent)
    throw std::runtime_error("Op " + std::to_string(op) + " (free) came before the storage was allocated: its thread " +
                             "does not wait for the one that allocates; the schedule lacks a hand_over.");
  allocator_.free(address);
  address = kAbsent;
}

Buffer ReplayMemory::buffer(OpId for_op, StorageId storage, Bytes bytes) const {
  if (!on_device(storage)) {
    Buffer buffer = fixed_[places_.block_of[storage]];
    buffer.bytes = bytes;
    return buffer;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Address address = addresses_[storage];
  if (address == kAbsent)
    throw std::runtime_error("Op " + std::to_string(for_op) + " (" + std::string(to_string(trace_.ops[for_op].kind)) +
                             ") uses storage " + std::to_string(storage) +
                             ", which is not allocated at that moment: its thread does not " +
                             "wait for the one that allocates and frees; the schedule lacks a hand_over.");
  return {PlaceClass::device, reinterpret_cast<void*>(address), 0, bytes};
}

std::vector<PlacePeak> ReplayMemory::peaks() const {
  std::vector<PlacePeak> peaks = {{"hbm", peak_allocated_, peak_reserved_}};
  if (places_.host.allocated > 0) peaks.push_back({"host", places_.host.allocated, places_.host.reserved});
  if (places_.file.allocated > 0) peaks.push_back({"nvme", places_.file.allocated, places_.file.reserved});
  return peaks;
}

}  // namespace memwall
