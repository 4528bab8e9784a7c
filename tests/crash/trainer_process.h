// A running `terrace`, to be killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace terrace {

class TrainerProcess {
 public:
  // Standard output and error go to the file `output`.
  TrainerProcess(const std::vector<std::string>& arguments, const std::string& output) {
    std::vector<char*> argv{const_cast<char*>("terrace")};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.data()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ > 0) return;
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(126);
    execv(TERRACE_BINARY, argv.data());
    _exit(127);
  }
  ~TrainerProcess() { Kill(); }
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  bool Running() { return !ended_ && !Reap(WNOHANG); }
  // True if it was running until now.
  bool Kill() {
    if (ended_) return false;
    kill(pid_, SIGKILL);
    Reap(0);
    return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL;
  }
  // Once it has ended by itself; -1: by a signal.
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

 private:
  bool Reap(int options) { return ended_ = waitpid(pid_, &status_, options) == pid_; }

  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace terrace
