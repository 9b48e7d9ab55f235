// The tensors that a walk over a profile's operators has met: which storage each lies in, how big it is, who has read
// it.
//
// A profile gives operators' inputs by shape and type alone. Whoever resolves one asks which tensors that are alive
// could be it: of its shape and type, or of no known shape in a storage of its size, or, as a view that nobody listed,
// of as many elements.
// Internal to the inference.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/workload/import/execution_trace/storage_join.h"
#include "models/workload/import/timed/recorded_call.h"
#include "sim/trace/trace.h"

namespace memwall {

using TensorId = std::uint32_t;
inline constexpr TensorId kNoTensor = 0xffffffff;

struct KnownStorage {
  StorageId id = kNoStorage;  // in the trace; kNoStorage: there is none yet
  Bytes bytes = 0;            // rounded to 512
  bool older = false;         // than the window
  bool alive = true;
  std::uint32_t maker = kNoIndex;  // the operator that was open when it was allocated
  std::int64_t function = -1;      // sequence number of the backward function that was open or had just ended
  TensorId first = kNoTensor;      // the first tensor that lies in it
};

struct KnownTensor {
  std::uint32_t storage = 0;  // index into TensorTable::storages
  Shape shape;
  int element_bytes = 0;  // 0 = unknown
  bool shaped = false;    // the shape is known
  bool alive = true;      // may still be an input of what follows
  bool backward = false;  // made in the backward pass
  bool weight = false;    // an operator's schema calls it so: found under its own key, never among others
  std::uint32_t reads = 0;
  std::int64_t first_reader = -1;  // sequence number of the operator that read it first, -1 = none or unknown
};

// What is looked for.
struct WantedTensor {
  Shape shape;
  int element_bytes = 0;
  double bytes() const { return element_count(shape) * element_bytes; }
};

// How well a tensor fits; worse ones are below better ones.
enum class Fit : std::uint8_t { none, same_elements, near_size, same_size, exact };

class TensorTable {
 public:
  std::uint32_t add_storage(const KnownStorage& storage);
  TensorId add(KnownTensor tensor);
  // The shape of a tensor that had none.
  void learn(TensorId tensor, const WantedTensor& as);
  void free(std::uint32_t storage);
  Fit fit(TensorId tensor, const WantedTensor& wanted) const;
  // Those alive that fit at all, the newest first.
  std::vector<TensorId> matching(const WantedTensor& wanted);

  // Of the newest tensor alive of that shape; 0 = there is none, or its type is unknown.
  int element_bytes_of(const Shape& shape) const;

  std::vector<KnownStorage> storages;
  std::vector<KnownTensor> tensors;

 private:
  bool usable(TensorId t) const { return tensors[t].alive && storages[tensors[t].storage].alive; }
  void collect(std::vector<TensorId>& list, std::vector<TensorId>& found) const;

  std::map<Shape, std::vector<TensorId>> by_shape_;
  std::map<Bytes, std::vector<TensorId>> by_size_;  // of their storage
};

}  // namespace memwall
