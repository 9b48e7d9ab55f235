// Values that are stored once and named by numbers: strings and shapes of a trace. Copies share what is stored until
// one of them takes a new value, so that a trace that differs from another in its times alone costs no copy of its
// names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memwall {

// `Map`: from Value to std::uint32_t, whose nodes do not move. Number 0 is the empty value.
template <class Value, class Map>
class Interned {
 public:
  Interned() : stored_(std::make_shared<Stored>()) { add(Value()); }
  Interned(const Interned& other) : stored_(other.stored_), is_shared_(true) { other.is_shared_.store(true); }
  Interned(Interned&& other) noexcept
      : stored_(std::move(other.stored_)), former_(std::move(other.former_)), is_shared_(other.is_shared_.load()) {
    other.stored_ = empty();
    other.is_shared_.store(true);
  }
  Interned& operator=(const Interned& other) {
    if (this != &other) *this = Interned(other);
    return *this;
  }
  Interned& operator=(Interned&& other) noexcept {
    std::swap(stored_, other.stored_);
    std::swap(former_, other.former_);
    const bool own = is_shared_.load();
    is_shared_.store(other.is_shared_.load());
    other.is_shared_.store(own);
    return *this;
  }

  std::uint32_t intern(const Value& value) {
    if (const auto known = stored_->ids.find(value); known != stored_->ids.end()) return known->second;
    if (is_shared_.load()) unshare();
    return add(value);
  }

  // Valid for as long as this or a copy of it lives.
  const Value& operator[](std::uint32_t id) const { return *stored_->values[id]; }
  std::size_t size() const { return stored_->values.size(); }

 private:
  struct Stored {
    Map ids;  // owns the values
    std::vector<const Value*> values;
  };

  // What was moved from holds nothing but the empty value.
  static const std::shared_ptr<Stored>& empty() {
    static const std::shared_ptr<Stored> kEmpty = [] {
      auto stored = std::make_shared<Stored>();
      stored->values.push_back(&stored->ids.try_emplace(Value(), 0U).first->first);
      return stored;
    }();
    return kEmpty;
  }

  std::uint32_t add(const Value& value) {
    const auto [entry, is_new] = stored_->ids.try_emplace(value, static_cast<std::uint32_t>(stored_->values.size()));
    if (is_new) stored_->values.push_back(&entry->first);
    return entry->second;
  }

  void unshare() {
    auto own = std::make_shared<Stored>();
    own->values.reserve(stored_->values.size() + 1);
    for (const Value* value : stored_->values)
      own->values.push_back(&own->ids.try_emplace(*value, static_cast<std::uint32_t>(own->values.size())).first->first);
    former_.push_back(std::move(stored_));  // who holds a reference from before may use it on
    stored_ = std::move(own);
    is_shared_.store(false);
  }

  std::shared_ptr<Stored> stored_;
  std::vector<std::shared_ptr<const Stored>> former_;
  // Once copied, for good: a count of owners says nothing of what another thread still reads.
  mutable std::atomic<bool> is_shared_{false};
};

}  // namespace memwall
