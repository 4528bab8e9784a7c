// For tests: compares a model's hand-written gradients with finite differences, one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace terrace {

// A model with random parameters and a random batch; the objective is a fixed random combination of
// the logits.
class GradientCheck {
 public:
  GradientCheck(std::unique_ptr<Model> model, int64_t rows, uint64_t seed);

  struct Result {
    int64_t checked = 0;
    int64_t kinks = 0;  // left out: the objective bends within the step
    std::vector<std::string> wrong;
  };

  // The model's gradients: of the parameters, then of the vectors [rows, embedding_width], then of
  // the linear sums [rows] if the model has them.
  std::vector<float> Gradients();
  // Compares each of them with a finite difference of the objective.
  Result Compare(const std::vector<float>& gradients);

 private:
  // All that the objective depends on, in the order of Gradients.
  int64_t size() const;
  float* Variable(int64_t i);
  std::string Name(int64_t i) const;
  double Objective();
  // The derivative along variable i by four points, error of order h^4.
  double Slope(int64_t i, double h);

  std::unique_ptr<Model> model_;
  int64_t rows_;
  Stream stream_;
  std::unique_ptr<SliceRun> run_;
  std::vector<float> params_;
  std::vector<float> input_;   // [rows, input_width]
  std::vector<float> linear_;  // [rows]
  std::vector<float> logit_grad_;
};

// Fails the current test for every wrong gradient, or if too few could be checked.
void ExpectRightGradients(std::unique_ptr<Model> model, int64_t rows, uint64_t seed);

}  // namespace terrace
