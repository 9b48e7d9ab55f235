// One machine file under many settings: read and parsed once, which takes longer than all the rest.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace memwall {

class MachineText;

class MachineVariants {
 public:
  // Throws what load_machine(name_or_path) throws while it reads the file.
  explicit MachineVariants(const std::string& name_or_path);

  // load_machine(name_or_path, settings) as the file was when it was read. May be called from several threads.
  Machine with(const std::vector<std::string>& settings) const;

 private:
  std::string name_;
  std::shared_ptr<const MachineText> text_;  // without settings
};

}  // namespace memwall
