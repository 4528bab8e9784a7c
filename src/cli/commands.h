// The `terrace` command: one function a subcommand.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace terrace {

// Parses the command line, runs the command, prints errors. Returns the exit code: 0 done, 1 failed
// at run time, 2 wrong usage or config.
int RunCommandLine(int argc, char** argv);

// Each adds its subcommand to `app`, with a callback that runs it.
void AddTrainCommand(CLI::App& app);
void AddEvalCommand(CLI::App& app);
void AddPredictCommand(CLI::App& app);
void AddDataCommand(CLI::App& app);
void AddInspectCommand(CLI::App& app);
void AddVerifyCommand(CLI::App& app);
void AddSnapshotCommand(CLI::App& app);
void AddExportCommand(CLI::App& app);
void AddRowsCommand(CLI::App& app);
void AddBenchCommand(CLI::App& app);

}  // namespace terrace
