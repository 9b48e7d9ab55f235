// What follows from a profile alone, made by whoever asks for it first: planners ask for the same dozens of times, each
// time for another budget.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <typeinfo>

namespace memwall {

class DerivedValues {
 public:
  // The one value of this type. `make`: () -> T; it may ask for values of other types.
  template <typename T, typename Make>
  const T& once(Make make) const {
    const std::lock_guard lock(*mutex_);
    std::shared_ptr<const void>& there = values_[typeid(T)];
    if (there == nullptr) there = std::make_shared<const T>(make());
    return *static_cast<const T*>(there.get());
  }

 private:
  std::unique_ptr<std::recursive_mutex> mutex_ = std::make_unique<std::recursive_mutex>();
  mutable std::map<std::type_index, std::shared_ptr<const void>> values_;
};

}  // namespace memwall
