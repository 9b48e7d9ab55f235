// The opcodes of pickle protocols 0 to 5 by byte. Source: CPython, Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <string_view>

namespace memwall {

// Those that plain data needs.
enum class PickleOpcode : std::uint8_t {
  mark = '(',
  stop = '.',
  binfloat = 'G',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binunicode = 'X',
  empty_list = ']',
  append = 'a',
  appends = 'e',
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  setitems = 'u',
  empty_dict = '}',
  empty_tuple = ')',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  short_binunicode = 0x8c,
  memoize = 0x94,
  frame = 0x95
};

// Those that it does not need: the name, and why it is refused. Name "" = no opcode at all.
struct RefusedOpcode {
  std::string_view name, why;
};
RefusedOpcode refused_opcode(std::uint8_t byte);

}  // namespace memwall
