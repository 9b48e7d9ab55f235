// A machine file as text: parsed, checked against its schema with line and
// column, overridden by dotted path, listed. What it means is machine_file.cpp's.
#pragma once

#include <machine.pb.h>  // generated from machine.proto

#include <functional>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/quantity.h"

namespace memwall {

class MachineText {
 public:
  // `file` is for messages. Throws InputError: syntax, unknown key, missing key or source,
  // bad quantity, a route over a link that does not exist, a name given twice.
  // `base_of`: the machine that `base` names, whole.
  using BaseOf = std::function<schema::Machine(const std::string& name)>;
  MachineText(std::string file, const std::string& content, const BaseOf& base_of);

  // "gpu.hbm.bandwidth=4TB/s". Throws UsageError with the nearest path.
  void set(const std::string& setting);

  std::vector<MachineNumber> numbers() const;
  const schema::Machine& machine() const { return machine_; }

 private:
  std::string file_;
  schema::Machine machine_;
};

// As load_machine finds and overrides it.
MachineText read_machine_text(const std::string& name_or_path, const std::vector<std::string>& settings);

// The points of a curve, in base units of what it has at each size. Throws QuantityError.
EfficiencyCurve parse_curve(const schema::Curve& curve, Dimension dimension = Dimension::share);

}  // namespace memwall
