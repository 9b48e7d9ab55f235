// CUDA events, as a caching allocator needs them for blocks that several streams use.
#pragma once

#include <cstdint>

namespace memwall {

class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Marks the present end of `stream`.
  virtual std::uint64_t record(std::uint16_t stream) = 0;
  // Has the stream passed the mark? Once true, always true.
  virtual bool complete(std::uint64_t event) = 0;
  // Waits until it has.
  virtual void synchronize(std::uint64_t event) = 0;
};

}  // namespace memwall
