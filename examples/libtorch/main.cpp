// Trains a small classifier on made-up data: `stepscope run build/train [STEPS]`. Prints the last loss.
#include <stepscope/recorder.h>
#include <torch/nn/functional/loss.h>  // torch/torch.h has it all, and takes longer to compile
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdlib>
#include <iostream>

namespace {

constexpr int64_t kBatch = 32, kFeatures = 64, kClasses = 10;

struct Batch {
  torch::Tensor x, y;
};

Batch next_batch() {
  return {torch::randn({kBatch, kFeatures}), torch::randint(kClasses, {kBatch}, torch::kLong)};
}

struct Net : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(kFeatures, 256));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(256, kClasses));

  torch::Tensor forward(const torch::Tensor& x) { return last(torch::relu(first(x))); }
};

}  // namespace

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 200;
  torch::manual_seed(0);
  Net model;
  torch::optim::Adam optimizer(model.parameters());

  stepscope::Run run = stepscope::start();
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    auto step = run.step();
    Batch batch;
    {
      auto phase = step.phase("input");
      batch = next_batch();
    }
    torch::Tensor loss;
    {
      auto phase = step.phase("forward");
      loss = torch::nn::functional::cross_entropy(model.forward(batch.x), batch.y);
    }
    {
      auto phase = step.phase("backward");
      optimizer.zero_grad();
      loss.backward();
    }
    {
      auto phase = step.phase("optimizer");
      optimizer.step();
    }
    step.samples(kBatch);
    last = loss.item<double>();
  }
  std::cout << last << "\n";
}
