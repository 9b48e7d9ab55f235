// A tensor that only knows its shape: what the generators compute with. Its storage is counted by
// reference, as in PyTorch: it is freed, in the trace, when the last tensor that refers to it goes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/trace/op.h"
#include "sim/trace/shape.h"

namespace memwall {

class Tape;
struct GradientFunction;

// A storage while something refers to it. The destructor writes the `free`.
class StorageLife {
 public:
  // `permanent`: parameters, optimizer states, inputs; they outlive the step and are never freed.
  StorageLife(Tape& tape, StorageId id, bool permanent) : tape_(&tape), id_(id), permanent_(permanent) {}
  ~StorageLife();
  StorageLife(const StorageLife&) = delete;
  StorageLife& operator=(const StorageLife&) = delete;
  Tape& tape() const { return *tape_; }
  StorageId id() const { return id_; }
  bool permanent() const { return permanent_; }

 private:
  Tape* tape_;
  StorageId id_;
  bool permanent_;
};

// Who refers to it: the program's tensors, all by one of these, or what autograd keeps, by others. The program's tells
// the tape when it goes.
class LiveStorage {
 public:
  LiveStorage(Tape& tape, StorageId id, bool permanent)
      : life_(std::make_shared<StorageLife>(tape, id, permanent)), of_program_(true) {}
  ~LiveStorage();
  LiveStorage(const LiveStorage&) = delete;
  LiveStorage& operator=(const LiveStorage&) = delete;
  StorageId id() const { return life_->id(); }
  bool permanent() const { return life_->permanent(); }
  // Is nobody else there who refers to it: neither by this nor by another?
  static bool is_held_once(const std::shared_ptr<LiveStorage>& storage) {
    return storage.use_count() == 1 && storage->life_.use_count() == 1;
  }
  // For autograd to keep.
  std::shared_ptr<LiveStorage> kept() const { return std::shared_ptr<LiveStorage>(new LiveStorage(life_)); }

 private:
  explicit LiveStorage(std::shared_ptr<StorageLife> life) : life_(std::move(life)) {}

  std::shared_ptr<StorageLife> life_;
  bool of_program_ = false;
};

struct Tensor {
  Shape shape;
  Shape strides;  // in elements; 0 where the view repeats
  DataType type = DataType::unknown;
  std::shared_ptr<LiveStorage> storage;
  std::shared_ptr<GradientFunction> function;  // what made it, if a gradient may be asked for
  int output = 0;                              // which of the function's results it is

  explicit operator bool() const { return storage != nullptr; }
  bool requires_gradient() const { return function != nullptr; }
  std::int64_t elements() const;
  std::int64_t size(int dimension) const;  // negative: from the end
  int dimensions() const { return static_cast<int>(shape.size()); }
  Bytes bytes() const { return elements() * bytes_of(type); }
  // Bytes of the elements of a view, each counted once however often the view repeats it.
  Bytes touched_bytes() const;
  bool contiguous() const;
  // The same values without a history, as `detach()`.
  Tensor detached() const;
  void reset() { *this = Tensor(); }
};

using Tensors = std::vector<Tensor>;

Shape contiguous_strides(const Shape& shape);
// Strides of a dense result with the order of dimensions in memory that `like` has (TensorIterator's rule).
Shape strides_like(const Shape& shape, const Tensor& like);
// Strides with which the tensor can be seen as `shape`, or nothing if it has to be copied.
bool view_strides(const Tensor& tensor, const Shape& shape, Shape& strides);
// The shape that an operator of two tensors gives them both.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace memwall
