#include "models/workload/import/snapshot/pickle_opcodes.h"

namespace memwall {
namespace {

constexpr std::string_view kCode = "which would import or call code";
constexpr std::string_view kOld = "which only protocols before 2 and Python 2 write";
constexpr std::string_view kBytes = "which holds raw bytes";
constexpr std::string_view kSet = "which makes a set";
constexpr std::string_view kStack = "which only pickles of objects with cycles or of code use";
constexpr std::string_view kHuge = "which holds a value too large for any field";

struct Entry {
  std::uint8_t byte;
  RefusedOpcode opcode;
};

constexpr Entry kRefused[] = {{'c', {"GLOBAL", kCode}},
                              {'R', {"REDUCE", kCode}},
                              {'b', {"BUILD", kCode}},
                              {'i', {"INST", kCode}},
                              {'o', {"OBJ", kCode}},
                              {0x81, {"NEWOBJ", kCode}},
                              {0x92, {"NEWOBJ_EX", kCode}},
                              {0x93, {"STACK_GLOBAL", kCode}},
                              {0x82, {"EXT1", kCode}},
                              {0x83, {"EXT2", kCode}},
                              {0x84, {"EXT4", kCode}},
                              {'P', {"PERSID", kCode}},
                              {'Q', {"BINPERSID", kCode}},
                              {'I', {"INT", kOld}},
                              {'L', {"LONG", kOld}},
                              {'F', {"FLOAT", kOld}},
                              {'S', {"STRING", kOld}},
                              {'T', {"BINSTRING", kOld}},
                              {'U', {"SHORT_BINSTRING", kOld}},
                              {'V', {"UNICODE", kOld}},
                              {'g', {"GET", kOld}},
                              {'p', {"PUT", kOld}},
                              {'d', {"DICT", kOld}},
                              {'l', {"LIST", kOld}},
                              {'B', {"BINBYTES", kBytes}},
                              {'C', {"SHORT_BINBYTES", kBytes}},
                              {0x8e, {"BINBYTES8", kBytes}},
                              {0x96, {"BYTEARRAY8", kBytes}},
                              {0x97, {"NEXT_BUFFER", kBytes}},
                              {0x98, {"READONLY_BUFFER", kBytes}},
                              {0x8f, {"EMPTY_SET", kSet}},
                              {0x90, {"ADDITEMS", kSet}},
                              {0x91, {"FROZENSET", kSet}},
                              {'0', {"POP", kStack}},
                              {'1', {"POP_MARK", kStack}},
                              {'2', {"DUP", kStack}},
                              {0x8b, {"LONG4", kHuge}},
                              {0x8d, {"BINUNICODE8", kHuge}}};

}  // namespace

RefusedOpcode refused_opcode(std::uint8_t byte) {
  for (const Entry& entry : kRefused)
    if (entry.byte == byte) return entry.opcode;
  return {};
}

}  // namespace memwall
