#include "tests/support/pickle_damage.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace memwall {
namespace {

// Bytes after the opcode; of texts, those of the length too.
std::size_t argument_bytes(const std::string& pickle, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < pickle.size() ? static_cast<std::uint8_t>(pickle[i]) : std::uint8_t{0};
  };
  switch (byte(at)) {
    case 0x80:
    case 'K':
    case 'h':
    case 'q':
      return 1;
    case 'M':
      return 2;
    case 'J':
    case 'j':
    case 'r':
      return 4;
    case 'G':
    case 0x95:
      return 8;
    case 0x8a:
    case 0x8c:
      return 1 + std::size_t{byte(at + 1)};
    case 'X':
      return 4 + (std::size_t{byte(at + 1)} | std::size_t{byte(at + 2)} << 8 | std::size_t{byte(at + 3)} << 16 |
                  std::size_t{byte(at + 4)} << 24);
    default:
      return 0;
  }
}

const std::vector<std::string>& odd_opcodes() {
  using namespace std::string_literals;
  static const std::vector<std::string> kOpcodes = {"N"s,
                                                    "\x88"s,
                                                    "\x89"s,
                                                    "K\x00"s,
                                                    "K\x01"s,
                                                    "M\xff\xff"s,
                                                    "J\xff\xff\xff\xff"s,
                                                    "J\x00\x00\x00\x80"s,
                                                    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s,
                                                    "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s,
                                                    "\x8a\x07\xff\xff\xff\xff\xff\xff\x7f"s,
                                                    "\x8a\x07\x00\x00\x00\x00\x00\x00\x02"s,
                                                    "\x8a\x00"s,
                                                    "\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01"s,
                                                    "G\x7f\xf8\x00\x00\x00\x00\x00\x00"s,
                                                    "]"s,
                                                    "}"s,
                                                    ")"s,
                                                    "("s,
                                                    "a"s,
                                                    "e"s,
                                                    "s"s,
                                                    "u"s,
                                                    "t"s,
                                                    "."s,
                                                    "\x85"s,
                                                    "\x86"s,
                                                    "\x87"s,
                                                    "\x94"s,
                                                    "h\x00"s,
                                                    "h\x05"s,
                                                    "h\xff"s,
                                                    "j\xff\xff\xff\xff"s,
                                                    "j\x00\x00\x01\x00"s,
                                                    "q\x00"s,
                                                    "r\xff\xff\xff\xff"s,
                                                    "r\x03\x00\x00\x00"s,
                                                    "c"s,
                                                    "R"s,
                                                    "0"s,
                                                    "2"s,
                                                    "\x8f"s,
                                                    "B"s,
                                                    "X\xff\xff\xff\xff"s,
                                                    "X\xff\xff\xff\x00"s,
                                                    "\x8c\xff"s,
                                                    "\x8c\x02\xc3\x28"s,
                                                    "\x95\xff\xff\xff\xff\xff\xff\xff\xff"s,
                                                    "\x95\x04\x00\x00\x00\x00\x00\x00\x00"s,
                                                    "\x8c\x06"
                                                    "action"s,
                                                    "\x8c\x05"
                                                    "state"s,
                                                    "\x8c\x0atotal_size"s,
                                                    "\x8c\x08"
                                                    "filename"s,
                                                    "\x8c\x08segments"s,
                                                    "\x8c\x06"
                                                    "blocks"s,
                                                    "\x8c\x04size"s,
                                                    "\x8c\x04"
                                                    "addr"s,
                                                    "\x8c\x06"
                                                    "frames"s,
                                                    "\x8c\x03oom"s,
                                                    "\x8c\x0b"
                                                    "device_free"s,
                                                    "\x8c\x07history"s,
                                                    "\x8c\x09real_size"s,
                                                    "\x8c\x07time_us"s,
                                                    "\x8c\x05small"s,
                                                    "\x8c\x08inactive"s,
                                                    "\x8c\x02-1"s};
  return kOpcodes;
}

}  // namespace

std::vector<std::string> pickle_opcodes(const std::string& pickle) {
  std::vector<std::string> opcodes;
  for (std::size_t at = 0; at < pickle.size();) {
    const std::size_t size = 1 + argument_bytes(pickle, at);
    if (size > pickle.size() - at) break;
    if (static_cast<std::uint8_t>(pickle[at]) != 0x95) opcodes.push_back(pickle.substr(at, size));
    at += size;
  }
  return opcodes;
}

std::string with_damaged_opcodes(const std::string& pickle, const std::string& other, std::mt19937_64& random) {
  std::vector<std::string> opcodes = pickle_opcodes(pickle);
  const auto& odd = odd_opcodes();
  // Mostly one, for then more of the file is still as it should be.
  for (std::size_t changes = 1 + (random() % 3 == 0 ? random() % 4 : 0); changes > 0 && opcodes.size() > 4; --changes) {
    // Not the protocol, for then nothing else is seen.
    const std::size_t at = 1 + random() % (opcodes.size() - 1);
    const std::size_t end = std::min(opcodes.size(), at + 1 + random() % (random() % 4 == 0 ? 40 : 3));
    const auto place = [&](std::size_t i) { return opcodes.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (random() % 7) {
      case 0:
        opcodes.erase(place(at), place(end));
        break;
      case 1: {
        const std::vector<std::string> stretch(place(at), place(end));
        opcodes.insert(place(at), stretch.begin(), stretch.end());
        break;
      }
      case 2: {
        const std::vector<std::string> stretch(place(at), place(end));
        opcodes.erase(place(at), place(end));
        opcodes.insert(place(1 + random() % opcodes.size()), stretch.begin(), stretch.end());
        break;
      }
      case 3: {
        const std::vector<std::string> others = pickle_opcodes(other);
        const std::size_t from = random() % others.size();
        const std::size_t to = std::min(others.size(), from + 1 + random() % 60);
        opcodes.insert(place(at), others.begin() + static_cast<std::ptrdiff_t>(from),
                       others.begin() + static_cast<std::ptrdiff_t>(to));
        break;
      }
      case 4:
        std::swap(opcodes[at], opcodes[1 + random() % (opcodes.size() - 1)]);
        break;
      case 5: {  // an argument byte
        std::string& opcode = opcodes[at];
        if (opcode.size() > 1) opcode[1 + random() % (opcode.size() - 1)] = static_cast<char>(random());
        break;
      }
      default:
        opcodes[at] = odd[random() % odd.size()];
    }
  }
  std::string result;
  for (const std::string& opcode : opcodes) result += opcode;
  return result;
}

}  // namespace memwall
