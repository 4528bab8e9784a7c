#include "cli/commands.h"

int main(int argc, char** argv) { return terrace::RunCommandLine(argc, argv); }
