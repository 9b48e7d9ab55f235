// A machine file in the making: a copy of another one, whose numbers are replaced one by one, each with
// its source. What is left alone can be marked as such at the end.
//
// Paths are those of MachineNumber: "route.h2d.latency", "gpu.efficiency.gemm.fixed". What a path names
// is made where it is absent; whether the whole hangs together is checked by whoever reads the text.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"

namespace memwall {

class MachineFileBuilder {
 public:
  // `base`: name or path of a machine file. Throws as load_machine does.
  explicit MachineFileBuilder(const std::string& base);
  ~MachineFileBuilder();
  MachineFileBuilder(const MachineFileBuilder&) = delete;
  MachineFileBuilder& operator=(const MachineFileBuilder&) = delete;

  // Each throws std::logic_error where the schema has no such path.
  void set(const std::string& path, const std::string& value, const std::string& source);
  void set_curve(const std::string& path, const std::vector<std::string>& points, const std::string& source);
  void set_source(const std::string& path, const std::string& source);  // of a number or curve that is there
  void set_text(const std::string& path, const std::string& text);      // "gpu.name", "duplex.pcie_duplex.forward"
  void clear(const std::string& path);                                  // nothing, where it is not there
  bool has(const std::string& path) const;
  // In base units; `fallback` where the path is not there. Of numbers only.
  double number(const std::string& path, double fallback = 0) const;
  // The links that a route or fabric crosses, as paths of their bandwidths ("link.pcie_h2d.bandwidth",
  // "gpu.hbm.bandwidth"); empty where there is no such route. `element`: "route.h2d", "fabric.nvlink".
  std::vector<std::string> bandwidths_crossed(const std::string& element) const;

  // Puts `prefix` before the source of every number and curve that was not set.
  void mark_unset(const std::string& prefix);

  std::vector<MachineNumber> numbers() const;
  // The machine file, `comment` (without "#", may have several lines) above it. Same settings, same bytes.
  std::string text(const std::string& comment) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace memwall
