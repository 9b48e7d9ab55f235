#include "models/workload/import/timed/kernel_properties.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "models/workload/import/timed/name_text.h"

namespace memwall {
namespace {

struct CollectiveName {
  std::string_view kernel, annotation;
  CollectiveKind kind;
};
constexpr CollectiveName kCollectives[] = {
    {"AllReduce", "all_reduce", CollectiveKind::all_reduce},
    {"ReduceScatter", "reduce_scatter", CollectiveKind::reduce_scatter},
    {"AllGather", "all_gather", CollectiveKind::all_gather},
    {"Broadcast", "broadcast", CollectiveKind::broadcast},
    {"AllToAll", "all_to_all", CollectiveKind::all_to_all},
    {"SendRecv", "send", CollectiveKind::send_receive},
    {"SendRecv", "recv", CollectiveKind::send_receive},
    {"Reduce", "reduce", CollectiveKind::reduce},
    {"Barrier", "barrier", CollectiveKind::barrier},
};

}  // namespace

bool is_collective(const CapturedDeviceOp& op, std::string_view name) {
  return op.work == DeviceWork::kernel &&
         (name.starts_with("nccl") || contains(name, "ncclKernel") || contains(name, "ncclDevKernel"));
}

bool is_in_tf32(std::string_view kernel_name) { return kernel_name.find("tf32") != std::string_view::npos; }

bool only_moves_data(std::string_view kernel_name) {
  static constexpr std::string_view kNames[] = {"nchwToNhwc", "nhwcToNchw",      "ToFoldedNhwc",       "AddPadding",
                                                "im2col",     "tensorTransform", "transpose_readWrite"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return kernel_name.find(name) != std::string_view::npos; });
}

CollectiveKind collective_kind(std::string_view kernel_name, std::string_view annotation) {
  // NCCL runs an all-to-all as sends and receives; the annotation knows what was asked for.
  if (annotation.starts_with("nccl:")) {
    std::string_view asked = annotation.substr(5);
    if (asked.starts_with('_')) asked.remove_prefix(1);
    for (const CollectiveName& known : kCollectives)
      if (asked.starts_with(known.annotation)) return known.kind;
  }
  for (const CollectiveName& known : kCollectives)
    if (contains(kernel_name, known.kernel)) return known.kind;
  return CollectiveKind::none;
}

CollectiveKind collective_kind_by_name(std::string_view collective_name) {
  std::string plain;
  for (const char c : collective_name)
    if (c != '_') plain += c;
  constexpr std::pair<std::string_view, CollectiveKind> names[] = {
      {"allreduce", CollectiveKind::all_reduce}, {"reducescatter", CollectiveKind::reduce_scatter},
      {"allgather", CollectiveKind::all_gather}, {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},  {"reduce", CollectiveKind::reduce},
      {"barrier", CollectiveKind::barrier},      {"send", CollectiveKind::send_receive},
      {"recv", CollectiveKind::send_receive},
  };
  for (const auto& [name, kind] : names)
    if (plain.starts_with(name)) return kind;
  return CollectiveKind::none;
}

CopyDirection copy_direction(std::string_view name) {
  CopyDirection d;
  d.pageable = contains(name, "Pageable");
  if (contains(name, "HtoD") || contains(name, "HostToDevice"))
    d.from_host = true;
  else if (contains(name, "DtoH") || contains(name, "DeviceToHost"))
    d.to_host = true;
  else if (contains(name, "DtoD") || contains(name, "DeviceToDevice")) {
  } else if (contains(name, "PtoP") || contains(name, "PeerToPeer"))
    d.between_devices = true;
  else if (contains(name, "HtoH") || contains(name, "HostToHost"))
    d.from_host = d.to_host = true;
  else
    d.known = false;
  return d;
}

double waves_of(const CapturedLaunch& launch, const CapturedDevice& device) {
  if (launch.blocks_per_multiprocessor <= 0 || launch.threads_per_block == 0 || device.threads_per_multiprocessor == 0)
    return 0;
  const double threads = launch.threads_per_block;
  const double most = device.threads_per_multiprocessor;
  double resident = launch.occupancy_percent / 100 * most / threads;
  if (launch.occupancy_percent <= 0) {
    // Not estimated, or rounded down to nothing: threads and registers give an upper bound.
    resident = std::floor(most / threads);
    if (launch.registers_per_thread > 0 && device.registers_per_multiprocessor > 0)
      resident =
          std::min(resident, std::floor(device.registers_per_multiprocessor / (threads * launch.registers_per_thread)));
  }
  return launch.blocks_per_multiprocessor / std::max(resident, 1.0);
}

int element_size(std::string_view type) {
  if (type.starts_with("c10::")) type.remove_prefix(5);
  if (type == "double" || type == "Double" || type == "long int" || type == "long" || type == "Long") return 8;
  if (type == "float" || type == "Float" || type == "int" || type == "Int") return 4;
  if (type == "Half" || type == "BFloat16" || type == "short" || type == "Short") return 2;
  if (type == "signed char" || type == "unsigned char" || type == "Char" || type == "Byte" || type == "bool" ||
      type == "Bool")
    return 1;
  return 0;
}

Bytes wire_bytes(CollectiveKind kind, Bytes message, std::int64_t ranks) {
  if (message <= 0) return 0;
  if (ranks < 2) return message;
  const double n = static_cast<double>(ranks), size = static_cast<double>(message);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return std::llround(2 * (n - 1) / n * size);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return std::llround((n - 1) / n * size);
    case CollectiveKind::all_gather:
      return std::llround((n - 1) * size);  // the input is one rank's share
    default:
      return message;
  }
}

std::int64_t first_tensor_elements(std::string_view input_dims) {
  // [[4432073], [], ...]: the first inner list. It may be one level deeper (a list of tensors).
  std::size_t i = input_dims.rfind('[', input_dims.find_first_of("0123456789]"));
  if (i == std::string_view::npos) return -1;
  std::int64_t elements = 1;
  bool any = false;
  const char* at = input_dims.data() + i + 1;
  const char* end = input_dims.data() + input_dims.size();
  while (at < end && *at != ']') {
    std::int64_t n = 0;
    const auto [stop, error] = std::from_chars(at, end, n);
    if (error == std::errc{}) {
      if (n < 0 || n > (std::int64_t{1} << 40) || elements > (std::int64_t{1} << 44) / std::max<std::int64_t>(n, 1))
        return -1;
      elements *= n;
      any = true;
      at = stop;
    } else {
      ++at;
    }
  }
  return any ? elements : -1;
}

std::string first_tensor_type(std::string_view input_types) {
  const std::size_t open = input_types.find('"');
  if (open == std::string_view::npos) return "";
  const std::size_t close = input_types.find('"', open + 1);
  return close == std::string_view::npos ? "" : std::string(input_types.substr(open + 1, close - open - 1));
}

}  // namespace memwall
