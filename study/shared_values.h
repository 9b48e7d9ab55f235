// Values that are made once for each key and shared by all who ask, from any thread.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace memwall {

// Keeps at most `most` values; of more, those asked for longest ago are forgotten (who holds one keeps it).
template <class Value>
class SharedValues {
 public:
  explicit SharedValues(std::size_t most) : most_(most) {}

  // Of equal keys at once, one thread makes the value and the others wait for it. What `make` throws reaches all of
  // them, and is not kept.
  template <class Make>
  std::shared_ptr<const Value> get(const std::string& key, const Make& make) {
    std::promise<std::shared_ptr<const Value>> promise;
    std::shared_future<std::shared_ptr<const Value>> future;
    std::uint64_t mine = 0;
    {
      const std::lock_guard lock(mutex_);
      auto [at, is_new] = values_.try_emplace(key);
      at->second.asked = ++clock_;
      if (is_new) {
        at->second.future = promise.get_future().share();
        mine = at->second.made = clock_;
      }
      future = at->second.future;
      forget_oldest();
    }
    if (mine == 0) return future.get();
    try {
      promise.set_value(std::make_shared<const Value>(make()));
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      if (const auto at = values_.find(key); at != values_.end() && at->second.made == mine) values_.erase(at);
    }
    return future.get();
  }

  // Who asks next makes the value anew; who holds it keeps it.
  void forget(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }

 private:
  struct Entry {
    std::shared_future<std::shared_ptr<const Value>> future;
    std::uint64_t asked = 0, made = 0;  // at which call
  };

  void forget_oldest() {
    if (values_.size() <= most_) return;
    auto oldest = values_.begin();
    for (auto at = values_.begin(); at != values_.end(); ++at)
      if (at->second.asked < oldest->second.asked) oldest = at;
    values_.erase(oldest);
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::map<std::string, Entry> values_;
  std::uint64_t clock_ = 0;
};

}  // namespace memwall
