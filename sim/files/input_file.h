// A file that a person named to be read, looked at before anything reads it.
//
// Readers seek, ask for the size, and open a file several times: to tell its kind, to read it, to sum it up. A pipe
// (`memwall import <(ssh host cat x.json)`, a FIFO, /dev/stdin) gives its bytes once. So what comes through one is
// kept, for the life of the program, in an unnamed file of the temporary folder, and that file is what readers open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace memwall {

// The path by which the system calls standard input. Whoever reads a command line puts it in the place of "-";
// everybody else passes it on as any other.
inline constexpr const char* kStandardInput = "/dev/stdin";

inline constexpr std::uint64_t kLargestPipe = std::uint64_t{4} << 30;  // bytes
inline constexpr std::chrono::seconds kLongestSilence{5};              // of a FIFO, before its first byte

// The path to open for `path`: itself, or that of the kept content of a pipe, which lives as long as the program.
//
// Throws InputError "PATH: FOUND; expected EXPECTED." where there is no such file, it is a folder, a device, a
// terminal or a socket (standard input may be one), it may not be read, or reading fails at its first byte; where
// nobody writes to a FIFO for kLongestSilence, more than kLargestPipe bytes come through, or there is no room for them.
// `expected` is a noun: "a trace". `largest`: bytes that may come through a pipe, where its reader takes fewer.
std::filesystem::path readable_path(const std::filesystem::path& path, std::string_view expected = "a file",
                                    std::uint64_t largest = kLargestPipe);

// The same for who only asks: "" instead of a sentence. Never throws InputError.
std::filesystem::path readable_path_or_none(const std::filesystem::path& path);

// All bytes of a file, as readable_path takes it. Throws InputError as it does, and where more than `largest` bytes
// are found (endless files included) or reading fails.
std::string content_of_file(const std::filesystem::path& path, std::size_t largest, std::string_view expected);

}  // namespace memwall
