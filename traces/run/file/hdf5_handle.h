// HDF5's C handles, closed when they go out of scope. Internal to traces/run.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <utility>

namespace memwall {

// HDF5 has state of its own, and builds of it that are not made for threads are common: one thread at a time. It prints
// its own errors unless told not to; ours are sentences. Sections may be nested.
class Hdf5Section {
 public:
  Hdf5Section() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Section() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Hdf5Section(const Hdf5Section&) = delete;
  Hdf5Section& operator=(const Hdf5Section&) = delete;

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex one;
    return one;
  }
  const std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() { reset(); }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // False if closing fails, which for a written file means that it is not complete.
  bool reset() {
    if (id_ < 0) return true;
    const Hdf5Section section;
    return close_(std::exchange(id_, -1)) >= 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

}  // namespace memwall
