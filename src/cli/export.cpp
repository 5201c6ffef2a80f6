// stepscope export: a run in the format of another tool, or as one file of the page.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/export_parquet.h"
#include "cli/install.h"
#include "cli/run_list.h"
#include "cli/say.h"
#include "cli/stored_run.h"
#include "engine/engine.h"
#include "exporter/exporter.h"
#include "store/reading.h"

namespace stepscope::cli {
namespace {

struct ExportOptions {
  std::string run, to, output;
  bool overwrite = false;
};

struct Source {
  StoredRun run;
  store::Reading reading;  // what a table is read from; the other formats want all of it at once
};
using Write = Status (*)(Source&, exporter::Output&);

template <typename WriteHistory>
Status whole(const Source& source, WriteHistory write) {
  const auto run = read_stored_run(source.run);
  if (!run) return run.error();
  return write(*run, engine::diagnose(*run));
}
Status perfetto(Source& source, exporter::Output& out) {
  return whole(source, [&](const auto& run, const auto& findings) {
    exporter::write_perfetto(run, findings, out);
    return ok();
  });
}
Status otlp(Source& source, exporter::Output& out) {
  return whole(source, [&](const auto& run, const auto& findings) {
    exporter::write_otlp(run, findings, out);
    return ok();
  });
}
Status html(Source& source, exporter::Output& out) {
  return whole(source, [&](const auto& run, const auto& findings) {
    const std::string page = find_page_folder(own_path(), current_environment());
    return exporter::write_html(run, findings, page, out);
  });
}

Result<exporter::Table> table(Source& source) {
  return exporter::Table::of(source.reading.run(),
                             [&](int32_t rank) { return source.reading.steps(rank); });
}
Status csv(Source& source, exporter::Output& out) {
  const auto rows = table(source);
  return rows ? rows->write_csv(out) : Status(rows.error());
}
Status parquet(Source& source, exporter::Output& out) {
  const auto rows = table(source);
  return rows ? write_parquet(*rows, out) : Status(rows.error());
}

struct Format {
  const char *name, *ending;
  Write write;
};
constexpr std::array kFormats = {
    Format{"perfetto", ".perfetto.json", &perfetto},
    Format{"csv", ".csv", &csv},
    Format{"parquet", ".parquet", &parquet},
    Format{"otlp", ".otlp.jsonl", &otlp},
    Format{"html", ".html", &html},
};

std::string names() {
  std::string all;
  for (const Format& one : kFormats) all += std::string(all.empty() ? "" : "|") + one.name;
  return all;
}

// A file's name that needs no quotes, of a run's.
std::string plain_name(const std::string& name) {
  constexpr size_t kMost = 80;
  std::string out;
  for (const char c : name.substr(0, kMost)) {
    const bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || (c == '.' && !out.empty());
    out += fine ? c : '_';
  }
  return out.empty() || out.front() == '-' ? "run" + out : out;
}

std::string size_text(off_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size < 1e3) return std::to_string(bytes) + " bytes";
  return size < 1e6 ? fmt::format("{:.1f} KB", size / 1e3) : fmt::format("{:.1f} MB", size / 1e6);
}

// The half-written file of an export that is told to end goes with it.
char unfinished[4096];
extern "C" void end_by(int number) {
  ::unlink(unfinished);
  ::raise(number);  // SA_RESETHAND: as if nobody had listened
}
void leave_nothing_of(const std::string& path) {
  if (path.empty() || path.size() >= sizeof unfinished) return;
  path.copy(unfinished, path.size());
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    now.sa_handler = end_by;
    now.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(number, &now, nullptr);
  }
}

int export_run(const ExportOptions& options) {
  const Format* format = nullptr;
  for (const Format& one : kFormats)
    if (options.to == one.name) format = &one;
  if (format == nullptr)
    return wrong_use({"there is no format " + shell_quote(printable(options.to, 80)),
                      "one of these: --to " + names()});
  const auto run = find_stored_run(options.run);
  if (!run) return wrong_use(run.error());
  auto reading = store::Reading::open(run->folder);
  if (!reading) return wrong_use(reading.error());
  if (reading->run().id.empty()) return wrong_use(nothing_recorded(run->folder));
  Source source{*run, std::move(*reading)};
  const std::string path = options.output.empty()
                               ? plain_name(source.reading.run().name) + format->ending
                               : options.output;
  auto output = exporter::Output::open(path, options.overwrite);
  if (!output) return wrong_use(output.error());
  leave_nothing_of(output->temporary());
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error that write() tells
  const Status written = format->write(source, *output);
  if (!written) return written.error().message.empty() ? kWrongUse : wrong_use(written.error());
  const bool is_file = !output->temporary().empty();
  if (const Status done = output->finish(); !done) return wrong_use(done.error());
  if (run->live) say("the run goes on: this is what it was so far");
  if (is_file)
    say("wrote " + shell_quote(printable(path, 300)) + " (" + size_text(output->size()) + ")");
  return kFine;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* export_app =
      app.add_subcommand("export", "Write a run as a trace, a table, metrics, or a page");
  export_app->footer(
      "perfetto: Trace Event JSON, for ui.perfetto.dev and chrome://tracing\n"
      "csv:      a row a rank and step, with its phases; parquet: the same (needs pyarrow)\n"
      "otlp:     OpenTelemetry metrics, a request as JSON a line\n"
      "html:     the page of the run in one file, to look at without a server");
  export_app->add_option("RUN", options->run,
                         "Folder, name or id of the run, or its run.db (default: the newest)");
  export_app->add_option("--to", options->to, "The format")->required()->option_text(names());
  export_app
      ->add_option("--output", options->output,
                   "The file; - is standard output (default: named after the run, in the current "
                   "folder)")
      ->option_text("FILE");
  export_app->add_flag("--overwrite", options->overwrite, "Replace the file if it is there");
  export_app->callback([&action, options] { action = [options] { return export_run(*options); }; });
}

}  // namespace stepscope::cli
