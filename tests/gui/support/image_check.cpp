#include "tests/gui/support/image_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace memwall::gui {
namespace {

namespace fs = std::filesystem;

constexpr int kBlur = 2;  // pixels to each side

// The three channels of a picture, each blurred by a box in x and in y.
std::vector<std::array<int, 3>> blurred(const QImage& given) {
  const QImage image = given.convertToFormat(QImage::Format_RGB32);
  const int width = image.width(), height = image.height();
  const auto at = [&](int x, int y) { return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + x; };
  std::vector<std::array<int, 3>> rows(at(0, height)), all(rows.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int dx = -kBlur; dx <= kBlur; ++dx) {
        const QRgb p = image.pixel(std::clamp(x + dx, 0, width - 1), y);
        std::array<int, 3>& sum = rows[at(x, y)];
        sum = {sum[0] + qRed(p), sum[1] + qGreen(p), sum[2] + qBlue(p)};
      }
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int dy = -kBlur; dy <= kBlur; ++dy)
        for (std::size_t c = 0; c < 3; ++c) all[at(x, y)][c] += rows[at(x, std::clamp(y + dy, 0, height - 1))][c];
  return all;
}

// Per pixel: the largest difference of a channel.
std::vector<int> differences(const QImage& a, const QImage& b) {
  constexpr int kPixels = (2 * kBlur + 1) * (2 * kBlur + 1);
  const auto left = blurred(a), right = blurred(b);
  std::vector<int> found(left.size(), 0);
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) found[i] = std::max(found[i], std::abs(left[i][c] - right[i][c]) / kPixels);
  return found;
}

// Black where the pictures agree, the brighter the more they differ.
QImage picture_of_differences(const QImage& a, const QImage& b) {
  const std::vector<int> found = differences(a, b);
  QImage picture(a.size(), QImage::Format_RGB32);
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const int difference = found[static_cast<std::size_t>(y) * static_cast<std::size_t>(a.width()) + x];
      const int shade = std::min(255, difference * 4);
      picture.setPixel(x, y, difference > kClearly ? qRgb(255, shade, 0) : qRgb(shade, shade, shade));
    }
  return picture;
}

// Stays after the test, so that a person can look.
fs::path folder_of_failures() {
  const fs::path folder = fs::temp_directory_path() / ("memwall-pictures-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  return folder;
}

std::string saved(const QImage& image, const fs::path& path) {
  return image.save(QString::fromStdString(path.string())) ? path.string() : path.string() + " (could not be written)";
}

}  // namespace

ImageDifference difference_of(const QImage& a, const QImage& b) {
  ImageDifference result;
  const std::vector<int> found = differences(a, b);
  for (const int difference : found) {
    result.mean += difference;
    result.clearly += difference > kClearly;
    result.largest = std::max(result.largest, difference);
  }
  const double pixels = std::max<double>(1, static_cast<double>(found.size()));
  result.mean /= pixels;
  result.clearly /= pixels;
  return result;
}

void expect_same_picture(const QImage& found, const QImage& expected, const std::string& what, double tolerance) {
  if (found.size() != expected.size()) {
    ADD_FAILURE() << what << ": the picture has " << found.width() << " x " << found.height() << " pixels; expected "
                  << expected.width() << " x " << expected.height() << "; it is in "
                  << saved(found, folder_of_failures() / (what + ".png"));
    return;
  }
  const ImageDifference difference = difference_of(found, expected);
  if (difference.clearly <= tolerance) return;
  const fs::path failures = folder_of_failures();
  ADD_FAILURE() << what << ": " << 100 * difference.clearly << " % of the pixels differ clearly (mean "
                << difference.mean << ", largest " << difference.largest << " of 255); at most " << 100 * tolerance
                << " % may.\nfound:      " << saved(found, failures / (what + ".png"))
                << "\nexpected:   " << saved(expected, failures / (what + "_expected.png")) << "\ndifference: "
                << saved(picture_of_differences(found, expected), failures / (what + "_difference.png"));
}

void expect_image(const QImage& found, const std::string& name, double tolerance) {
  const fs::path path = fs::path(MEMWALL_SOURCE "/tests/gui/expected") / (name + ".png");
  if (const char* update = std::getenv("MEMWALL_UPDATE_GOLDEN"); update != nullptr && std::string(update) == "1") {
    fs::create_directories(path.parent_path());
    QImage plain = found.convertToFormat(QImage::Format_RGB32);
    EXPECT_TRUE(plain.save(QString::fromStdString(path.string()))) << path;
    return;
  }
  const QImage expected(QString::fromStdString(path.string()));
  if (expected.isNull()) {
    ADD_FAILURE() << path << " is missing or no picture; MEMWALL_UPDATE_GOLDEN=1 writes it. Found: "
                  << saved(found, folder_of_failures() / (name + ".png"));
    return;
  }
  expect_same_picture(found, expected, name, tolerance);
}

}  // namespace memwall::gui
