// Where `memwall watch` has its samples from: a log that grows, a pipe, or the driver.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "models/workload/forecast/memory_samples.h"

namespace memwall {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // The next sample if there is one now. Never waits for longer than a pipe does.
  virtual std::optional<MemorySample> poll() = 0;
  // Nothing will ever follow.
  virtual bool ended() const = 0;
  // Samples come by themselves, as fast as they are read (a log), or one per poll (the driver).
  virtual bool paced_by_file() const = 0;
  virtual std::string title() const = 0;
  virtual Bytes capacity() const { return 0; }  // 0 = unknown
};

// `path` "-" is stdin, which ends; a file is followed as it grows. Throws InputError, as poll() does.
std::unique_ptr<SampleSource> open_sample_log(const std::string& path);

// GPU `index` through NVML. Throws UsageError.
std::unique_ptr<SampleSource> open_driver(const std::string& library, unsigned index);

}  // namespace memwall
