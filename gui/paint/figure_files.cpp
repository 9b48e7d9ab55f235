// PNG and PDF files of figures.
#include <fmt/format.h>
#include <QBuffer>
#include <QHashFunctions>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>

#include <algorithm>
#include <cctype>

#include "sim/files/file_writer.h"
#include "gui/paint/figure_painter.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw UsageError(fmt::format("{}: the file cannot be written ({}).", path.string(), reason));
}

void write_bytes(const QByteArray& bytes, const fs::path& path) {
  FileWriter file(path);
  file.append({bytes.constData(), static_cast<std::size_t>(bytes.size())});
  file.commit();
}

// Takes `count` bytes at `begin` out of a PDF, and says so in its table of places: every number behind is less by
// them. REQUIRES: the table is a plain one, as Qt writes it; else nothing is taken.
void cut_out(QByteArray& pdf, qsizetype begin, qsizetype count) {
  constexpr qsizetype kDigits = 10, kEntry = 20;  // "0000019342 00000 n \n"
  const qsizetype table = pdf.lastIndexOf("\nxref\n") + 1, end = pdf.lastIndexOf("startxref");
  if (table <= 0 || end < table || begin + count > table) return;
  const qsizetype first = pdf.indexOf('\n', pdf.indexOf('\n', table) + 1) + 1;
  for (qsizetype at = first; at + kEntry <= end && pdf[at + kDigits] == ' '; at += kEntry) {
    const qlonglong place = pdf.mid(at, kDigits).toLongLong();
    if (place > begin) pdf.replace(at, kDigits, QByteArray::number(place - count).rightJustified(kDigits, '0'));
  }
  const qsizetype number = pdf.indexOf('\n', end) + 1;
  pdf.replace(number, pdf.indexOf('\n', number) - number, QByteArray::number(qlonglong(table - count)));
  pdf.remove(begin, count);
}

// Qt writes when a PDF was made, as long as the name of the time zone makes it.
void remove_date(QByteArray& pdf) {
  const qsizetype begin = pdf.lastIndexOf("/CreationDate (");
  if (begin < 0) return;
  const qsizetype end = pdf.indexOf(')', begin);
  if (end >= 0) cut_out(pdf, begin, end + 1 - begin);
}

// A later Qt names each file by a number of its own. Zeros of the same length leave every place in the file right.
void remove_identifier(QByteArray& pdf) {
  const qsizetype begin = pdf.indexOf("/ID [", std::max<qsizetype>(0, pdf.lastIndexOf("\ntrailer")));
  const qsizetype end = begin < 0 ? -1 : pdf.indexOf(']', begin);
  for (qsizetype at = begin + 5; at < end; ++at)
    if (std::isxdigit(static_cast<unsigned char>(pdf[at])) != 0) pdf[at] = '0';
}

// Qt writes fonts and states of a PDF in the order of a hash table, whose seed differs from process to process.
class FixedHashSeed {
 public:
  FixedHashSeed() { QHashSeed::setDeterministicGlobalSeed(); }
  ~FixedHashSeed() { QHashSeed::resetRandomGlobalSeed(); }
  FixedHashSeed(const FixedHashSeed&) = delete;
  FixedHashSeed& operator=(const FixedHashSeed&) = delete;
};

}  // namespace

void write_png(const Figure& figure, const fs::path& path, double scale) {
  const QImage image = image_of(figure, scale);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QImageWriter writer(&buffer, "png");
  if (!writer.write(image)) refuse(path, writer.errorString().toStdString());
  write_bytes(bytes, path);
}

void write_pdf(const Figure& figure, const fs::path& path) {
  constexpr int kPerInch = 1200;  // so fine are the coordinates in the file
  QByteArray bytes;
  {
    const FixedHashSeed seed;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setResolution(kPerInch);
    writer.setCreator("memwall");
    writer.setTitle(QString::fromStdString(figure.title));
    writer.setPageMargins(QMarginsF());
    writer.setPageSize(
        QPageSize(QSizeF(figure.width, figure.height), QPageSize::Point, "figure", QPageSize::ExactMatch));
    QPainter painter;
    if (!painter.begin(&writer)) refuse(path, "Qt cannot make a PDF of this size");
    painter.scale(kPerInch / 72.0, kPerInch / 72.0);
    paint_figure(figure, painter);
  }
  remove_date(bytes);
  remove_identifier(bytes);
  write_bytes(bytes, path);
}

}  // namespace memwall::gui
