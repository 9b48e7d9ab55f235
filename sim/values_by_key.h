// Values that follow from a key and what is known for good, each made by whoever asks for it first: planners, say, ask
// for the same budgets several times, roughly and in full.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace memwall {

template <typename Key, typename Value>
class ValuesByKey {
 public:
  // The one value of this key, as long as this lives. `make`: () -> Value; where it throws, the next who asks makes it.
  // Others who ask for the same key meanwhile wait; who asks for another one does not.
  template <typename Make>
  const Value& get(const Key& key, Make make) const {
    Slot& slot = slot_of(key);
    const std::lock_guard lock(slot.mutex);
    if (!slot.value) slot.value.emplace(make());
    return *slot.value;
  }

  // Has someone made it?
  bool has(const Key& key) const {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(slots_->mutex);
      const auto found = slots_->all.find(key);
      if (found == slots_->all.end()) return false;
      slot = &found->second;
    }
    const std::lock_guard lock(slot->mutex);
    return slot->value.has_value();
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Value> value;
  };
  struct Slots {
    std::mutex mutex;
    std::map<Key, Slot> all;  // whose nodes stay where they are
  };

  Slot& slot_of(const Key& key) const {
    const std::lock_guard lock(slots_->mutex);
    return slots_->all[key];
  }

  std::unique_ptr<Slots> slots_ = std::make_unique<Slots>();
};

}  // namespace memwall
