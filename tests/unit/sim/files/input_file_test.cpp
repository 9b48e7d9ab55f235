// What can be read is read, pipes included; what cannot is a sentence, soon.
#include "sim/files/input_file.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(InputFile, AnOrdinaryFileIsItself) {
  const ScratchFolder folder;
  write_content(folder / "a", "text");
  EXPECT_EQ(readable_path(folder / "a"), folder / "a");
  EXPECT_EQ(content_of_file(folder / "a", 4, "a text"), "text");
  EXPECT_EQ(refusal([&] { content_of_file(folder / "a", 3, "a text"); }),
            (folder / "a").string() + ": it holds more than 3 bytes; expected a text of at most so many.");
}

TEST(InputFile, WhatIsNoFileIsNamed) {
  const ScratchFolder folder;
  const auto sentence = [&](const std::filesystem::path& path) {
    return refusal([&] { readable_path(path, "a trace"); });
  };
  EXPECT_EQ(sentence(folder / "absent"), (folder / "absent").string() + ": there is no such file; expected a trace.");
  EXPECT_EQ(sentence(folder.path()), folder.path().string() + ": this is a folder; expected a trace.");
  EXPECT_EQ(sentence("/dev/zero"), "/dev/zero: this is a device; expected a trace.");
  EXPECT_EQ(sentence("/proc/self/mem"),
            "/proc/self/mem: the system makes this file up as it is read; expected a trace.");
  write_content(folder / "a", "text");
  EXPECT_NE(sentence(folder / "a" / "b").find("the file cannot be opened (Not a directory)"), std::string::npos);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "s").c_str(), sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_NE(sentence(folder / "s").find("this is a socket"), std::string::npos);
  ::close(socket);
}

TEST(InputFile, APipeIsKeptAndCanBeReadAgain) {
  const ScratchFolder folder;
  const std::string content(300'000, 'x');
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_content(folder / "pipe", content); });
  EXPECT_EQ(content_of_file(folder / "pipe", 1 << 20, "a text"), content);
  writer.join();
  EXPECT_EQ(content_of_file(folder / "pipe", 1 << 20, "a text"), content);
  EXPECT_EQ(content_of(readable_path(folder / "pipe")), content);
}

TEST(InputFile, APipeToWhichNobodyWritesIsRefusedSoon) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal([&] { readable_path(folder / "pipe", "a trace"); }),
            (folder / "pipe").string() + ": this is a pipe to which nobody has written for 5 s; expected a trace.");
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLongestSilence + std::chrono::seconds(5));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
