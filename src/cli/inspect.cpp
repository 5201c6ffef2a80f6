// stepscope inspect data: what the storage under a folder of data can do.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/identity.h"
#include "cli/say.h"
#include "probe/storage.h"
#include "report/text.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;
using probe::Reading;
using probe::Storage;

struct InspectOptions {
  std::string path;
  double seconds = 10;
  bool json = false;
};

std::string size(double bytes) {
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB"}) {
    if (bytes < 1000) break;
    bytes /= 1000;
    unit = next;
  }
  return fmt::format("{:.3g} {}", bytes, unit);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string headline(const Storage& storage) {
  if (!storage.packing_saves) return "NOT COMPARED  " + storage.not_compared + "\n";
  const std::string saves = percent(*storage.packing_saves);
  if (*storage.packing_saves < probe::kGainNothing)
    return "PACKING GAINS NOTHING HERE  one file saves " + saves +
           " of the time to read the same bytes\n";
  return "PACKING HELPS READING  one file saves " + saves + " of the time to read the same bytes\n";
}

std::string row(const char* name, const Reading& reading, bool opens) {
  if (!reading.not_measured.empty())
    return fmt::format("  {:<18}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", name, "-", "-", "-", "-",
                       reading.not_measured);
  std::string text = fmt::format("  {:<18}  {:>9.0f}  {:>9.1f}", name, reading.files_per_s(),
                                 reading.bytes_per_s() / 1e6);
  text += opens ? fmt::format("  {:>9.1f}  {:>9.1f}", reading.open_us_p50, reading.open_us_p95)
                : fmt::format("  {:>9}  {:>9}", "-", "-");
  text +=
      fmt::format("  {} in {:.2f} s", size(static_cast<double>(reading.bytes)), reading.seconds);
  if (reading.failed > 0) text += fmt::format(", {} files failed", reading.failed);
  return text + "\n";
}

std::string counts(const probe::Scan& scan) {
  std::string text = fmt::format("{}{} files in {} folders, {}", scan.complete ? "" : "at least ",
                                 scan.files, scan.folders, size(static_cast<double>(scan.bytes)));
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(scan.links, "links");
  add(scan.empty_files, "empty");
  add(scan.unreadable, "unreadable");
  add(scan.special, "neither file nor folder (not opened)");
  return text;
}

std::string table(const Storage& storage) {
  std::string text = headline(storage);
  text += fmt::format("\n  {:<18}  {:>9}  {:>9}  {:>9}  {:>9}\n", "one reader", "files/s", "MB/s",
                      "open us", "p95");
  const auto cold = [](const char* name, const Reading& reading) {
    return std::string(name) +
           (reading.cold || !reading.not_measured.empty() ? ", cold" : ", warm");
  };
  text += row(cold("random", storage.cold_random).c_str(), storage.cold_random, true);
  text += row(cold("in order", storage.cold_in_order).c_str(), storage.cold_in_order, true);
  text += row("random, warm", storage.warm_random, true);
  text += row(cold("packed", storage.packed).c_str(), storage.packed, false);
  text += "\nfound            " + counts(storage.scan) + "\n";
  text += fmt::format("sizes            median {}, 95 % below {}, largest seen {}\n",
                      size(static_cast<double>(storage.size_p50)),
                      size(static_cast<double>(storage.size_p95)),
                      size(static_cast<double>(storage.size_max)));
  if (!storage.packed_where.empty())
    text += "packed in        " + printable(storage.packed_where, 200) +
            (storage.packed_elsewhere ? ", which is another file system than the data's" : "") +
            " (removed)\n";
  const bool warm = storage.cold_random.not_measured.empty() && !storage.cold_random.cold;
  if (warm)
    text +=
        "note             the files could not be dropped from the page cache: no figure is cold\n";
  if (storage.packing_saves)
    text +=
        "in training      that share of what reading takes of loading (read_share): "
        "stepscope run ...\n";
  return text;
}

json::value or_null(const Reading& reading, double value) {
  return reading.not_measured.empty() ? json::value(value) : json::value(nullptr);
}

json::object reading_json(const Reading& reading, bool opens) {
  json::object out{{"files", reading.files},
                   {"bytes", reading.bytes},
                   {"failed", reading.failed},
                   {"seconds", or_null(reading, reading.seconds)},
                   {"files_per_s", or_null(reading, reading.files_per_s())},
                   {"bytes_per_s", or_null(reading, reading.bytes_per_s())}};
  if (opens) {
    out["open_us_p50"] = or_null(reading, reading.open_us_p50);
    out["open_us_p95"] = or_null(reading, reading.open_us_p95);
  }
  out["cold"] = reading.not_measured.empty() ? json::value(reading.cold) : json::value(nullptr);
  out["not_measured"] =
      reading.not_measured.empty() ? json::value(nullptr) : json::value(reading.not_measured);
  return out;
}

std::string as_json(const Storage& storage, double seconds) {
  const probe::Scan& scan = storage.scan;
  const bool any = !scan.sample.empty();
  const auto of_sample = [&](int64_t bytes) {
    return any ? json::value(bytes) : json::value(nullptr);
  };
  return json::serialize(json::object{
             {"schema", 1},
             {"path", report::valid_utf8(storage.path)},
             {"found", json::object{{"complete", scan.complete},
                                    {"files", scan.files},
                                    {"folders", scan.folders},
                                    {"bytes", scan.bytes},
                                    {"links", scan.links},
                                    {"empty_files", scan.empty_files},
                                    {"unreadable", scan.unreadable},
                                    {"special", scan.special}}},
             {"sizes", json::object{{"p50_bytes", of_sample(storage.size_p50)},
                                    {"p95_bytes", of_sample(storage.size_p95)},
                                    {"max_bytes", of_sample(storage.size_max)}}},
             {"random", reading_json(storage.cold_random, true)},
             {"in_order", reading_json(storage.cold_in_order, true)},
             {"warm", reading_json(storage.warm_random, true)},
             {"packed", reading_json(storage.packed, false)},
             {"packed_folder", storage.packed_where.empty()
                                   ? json::value(nullptr)
                                   : json::value(report::valid_utf8(storage.packed_where))},
             {"packed_on_other_file_system", storage.packed_elsewhere},
             {"packing_saves",
              storage.packing_saves ? json::value(*storage.packing_saves) : json::value(nullptr)},
             {"not_compared", storage.not_compared.empty() ? json::value(nullptr)
                                                           : json::value(storage.not_compared)},
             {"seconds", seconds}}) +
         "\n";
}

// Beside the data: a file without a name there is on the same disk, and gone with this process.
std::vector<std::string> scratch_folders(const std::string& path) {
  const std::string data = absolute_path(path);
  std::vector<std::string> out{data.substr(0, std::max<size_t>(1, data.rfind('/')))};
  const Environment environment = current_environment();
  if (const auto found = environment.find("TMPDIR"); found != environment.end())
    out.push_back(found->second);
  out.insert(out.end(), {"/tmp", "/var/tmp", absolute_path(".")});
  return out;
}

int inspect_data(const InspectOptions& options) {
  const int64_t begin_ns = monotonic_ns();
  const auto storage = probe::measure(
      {.path = options.path, .scratch = scratch_folders(options.path), .seconds = options.seconds});
  if (!storage) return wrong_use(storage.error());
  const double seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
  print(options.json ? as_json(*storage, seconds) : table(*storage));
  return kFine;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = app.add_subcommand("inspect", "What training data lies on");
  inspect->require_subcommand(1);
  CLI::App* data =
      inspect->add_subcommand("data", "What the storage under a folder of data can do");
  data->footer(
      "Opens and reads a sample of the files with one reader: in random order and in that of the "
      "folder, cold (their pages dropped from the page cache before) and warm; then the same bytes "
      "packed into one file without a name, beside the folder or in TMPDIR, if they take no more "
      "than a tenth of the room. Writes nothing below PATH.");
  data->add_option("PATH", options->path, "Folder that holds the data")->required();
  data->add_option("--seconds", options->seconds, "Take about this long at most (default: 10)")
      ->check(CLI::Range(0.5, 3600.0));
  data->add_flag("--json", options->json, "Print one JSON object");
  data->callback([&action, options] { action = [options] { return inspect_data(*options); }; });
}

}  // namespace stepscope::cli
