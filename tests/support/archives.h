// Archives for tests, byte by byte: no library that might forgive what a reader must bear.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace memwall {

struct ArchiveMember {
  std::string name, content{};
  char type = '0';   // of tar: '0' a file, '1' a hard link, '2' a symbolic link, '5' a folder
  std::string link{};  // what a link names
};

// POSIX.1-1988 (ustar).
inline std::string tar_of(const std::vector<ArchiveMember>& members) {
  std::string tar;
  for (const ArchiveMember& m : members) {
    char header[512] = {};
    std::snprintf(header, 100, "%s", m.name.c_str());
    std::snprintf(header + 100, 8, "%07o", 0644U);
    std::snprintf(header + 124, 12, "%011lo", static_cast<unsigned long>(m.content.size()));
    header[156] = m.type;
    std::snprintf(header + 157, 100, "%s", m.link.c_str());
    std::memcpy(header + 257, "ustar\00000", 8);
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 8, "%06o", sum);
    tar.append(header, sizeof header).append(m.content);
    tar.append((512 - m.content.size() % 512) % 512, '\0');
  }
  return tar.append(1024, '\0');
}

// PKWARE's APPNOTE, members stored as they are.
inline std::string zip_of(const std::vector<ArchiveMember>& members) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string zip, directory;
  for (const ArchiveMember& m : members) {
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(m.content.data()), static_cast<uInt>(m.content.size()));
    const std::string common = number(20, 2) + number(0, 8) + number(crc, 4) + number(m.content.size(), 4) +
                               number(m.content.size(), 4) + number(m.name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(20, 2) + common + number(0, 10) + number(zip.size(), 4) + m.name;
    zip += "PK\3\4" + common + m.name + m.content;
  }
  const std::size_t at = zip.size();
  return zip + directory + "PK\5\6" + number(0, 4) + number(members.size(), 2) + number(members.size(), 2) +
         number(directory.size(), 4) + number(at, 4) + number(0, 2);
}

}  // namespace memwall
