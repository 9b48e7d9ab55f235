#include "validate/replay/cuda/device_content.h"

#include <algorithm>
#include <string>

#include "validate/replay/cuda/synthetic_kernels.h"

namespace memwall {
namespace {

bool is_looked_at(const Buffer& buffer, std::uint64_t tag) {
  return tag != 0 && buffer.place_class == PlaceClass::device && buffer.bytes > 0;
}

}  // namespace

DeviceContent::DeviceContent() : record_(sizeof(ContentRecord)) {
  // Both kernels once, so that they are loaded: in a pass the driver might wait for streams to do that.
  launch_fill(record_.data(), record_.bytes(), 1, nullptr);
  launch_compare(record_.data(), 1, 1, 0, 0, record_.as<ContentRecord>(), nullptr);
  reset();
}

void DeviceContent::reset() {
  checks_ = bytes_ = 0;
  check(cudaMemset(record_.data(), 0, record_.bytes()), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // cudaMemset may return before it is done
}

void DeviceContent::expect(OpId id, unsigned operand, const Buffer& buffer, Bytes bytes, std::uint64_t tag,
                           cudaStream_t stream) {
  if (!is_looked_at(buffer, tag)) return;
  const Bytes looked_at = std::min(bytes, buffer.bytes);
  launch_compare(buffer.data, static_cast<std::size_t>(looked_at), tag, id, operand, record_.as<ContentRecord>(),
                 stream);
  checks_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(static_cast<std::uint64_t>(looked_at), std::memory_order_relaxed);
}

void DeviceContent::expect_all(OpId id, std::span<const Operand> operands, cudaStream_t stream) {
  for (unsigned i = 0; i < operands.size(); ++i)
    expect(id, i, operands[i].buffer, operands[i].buffer.bytes, operands[i].expected, stream);
}

void DeviceContent::fill_all(std::span<const Operand> operands, cudaStream_t stream) const {
  for (const Operand& operand : operands)
    if (is_looked_at(operand.buffer, operand.made))
      launch_fill(operand.buffer.data, static_cast<std::size_t>(operand.buffer.bytes), operand.made, stream);
}

IntegrityCount DeviceContent::count() const {
  ContentRecord found{};
  check(cudaMemcpy(&found, record_.data(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  IntegrityCount count{checks_, bytes_, found.wrong_words, ""};
  if (found.claimed != 0)
    count.first_mismatch = "op " + std::to_string(found.op) + ", operand " + std::to_string(found.operand) +
                           " in device memory: the 8 bytes at byte " + std::to_string(found.word * 8) + " are " +
                           std::to_string(found.found) + "; expected " + std::to_string(found.expected) + ".";
  return count;
}

}  // namespace memwall
