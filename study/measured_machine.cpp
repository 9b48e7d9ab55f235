#include "study/measured_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/nearest_machine.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr const char* kUnknownDevice =
    "The file does not say which device it was captured on: give --measured-on, or --machine.";

bool has_gpu(const Machine& machine, const std::string& gpu) {
  const auto& aliases = machine.gpu.aliases;
  return machine.gpu.name == gpu || std::find(aliases.begin(), aliases.end(), gpu) != aliases.end();
}

// Notes `given` as the machine of a trace whose file knows no more than the GPU's name (which may be "").
void take_given(Trace& trace, const std::string& given, const std::string& gpu, Bytes gpu_memory) {
  if (measured_nowhere(trace))
    throw UsageError(fmt::format(
        "--measured-on {}: nothing in \"{}\" was measured; give --machine, for which its durations are modelled.",
        given, trace.name));
  const Machine machine = load_machine(given);
  if (!gpu.empty() && !has_gpu(machine, gpu)) {
    const std::string own = machine_for_device(gpu, gpu_memory);
    if (!own.empty())
      throw UsageError(fmt::format(
          "--measured-on {}: its GPU is {}, but the file says that it was measured on {}; expected {}, or another "
          "machine with that GPU.",
          given, machine.gpu.name, gpu, own));
    trace.notes.push_back(fmt::format(
        "The file says it was measured on {}, a GPU that no machine file names: --measured-on {} is believed.", gpu,
        given));
  } else {
    trace.notes.push_back(fmt::format("It was measured on {}, as --measured-on says.", given));
  }
  std::erase_if(trace.notes, [](const std::string& note) { return note == kUnknownDevice; });
  trace.machine = given;
}

}  // namespace

std::string unknown_gpu_sentence(const std::string& gpu, Bytes memory) {
  const std::string nearest = nearest_machine_for_device(gpu, memory);
  const std::string size = memory > 0 ? " with " + human_bytes(memory) : "";
  // A file knows the GPU's name where its memory is another: a larger card of the same name, or a part of one (MIG).
  if (!nearest.empty() && has_gpu(load_machine(nearest), gpu))
    return fmt::format(
        "It was measured on {}{}, whose machine file, {}, has another amount of memory, {}: give --measured-on {} if "
        "that "
        "stands for it, or with a file of your own.",
        gpu, size, nearest, human_bytes(load_machine(nearest).tiers.front().capacity), nearest);
  return fmt::format(
      "It was measured on {}{}, a GPU of which there is no machine file: give --measured-on with one that "
      "stands for it{}.",
      gpu, size,
      nearest.empty() ? ", or with a file of your own"
                      : fmt::format(" (the nearest is {}), or with a file of your own", nearest));
}

void require_machine(const std::string& given) {
  if (!given.empty()) load_machine(given);
}

void name_machine(Trace& trace, const std::string& given) {
  if (given.empty() || given == trace.machine) return;
  const bool says_gpu = has_machine(trace.machine);
  take_given(trace, given, says_gpu ? load_machine(trace.machine).gpu.name : trace.machine, 0);
}

void name_machine(const ImportedStep& step, Trace& trace, const std::string& given) {
  if (!trace.machine.empty()) return name_machine(trace, given);
  if (!given.empty()) return take_given(trace, given, step.gpu, step.gpu_memory);
  if (step.gpu.empty()) {
    if (trace.knowledge.timing) trace.notes.push_back(kUnknownDevice);
    return;
  }
  const std::string machine = machine_for_device(step.gpu, step.gpu_memory);
  trace.machine = machine.empty() ? step.gpu : machine;
  trace.notes.push_back(machine.empty() ? unknown_gpu_sentence(step.gpu, step.gpu_memory)
                                        : fmt::format("{} with {} is the GPU of machine {}.", step.gpu,
                                                      human_bytes(step.gpu_memory), machine));
}

}  // namespace memwall
