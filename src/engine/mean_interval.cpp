#include "engine/mean_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace stepscope::engine {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Fewer blocks would leave the spread a guess; longer correlation than that shows as a wide interval all the same.
constexpr size_t kLeastBlocks = 6;
constexpr double kMostPersistence = 0.97;
constexpr double kOdd = 3.5;  // times the median deviation

// Lower-tail quantile of the normal distribution (Acklam 2003, 1e-9), 0 < p < 0.5.
double normal_quantile(double p) {
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) *
                  q -
              2.549732539343734e+00) *
                 q +
             4.374664141464968e+00) *
                q +
            2.938163982698783e+00) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
             3.754408661907416e+00) *
                q +
            1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
            1.383577518672690e+02) *
               r -
           3.066479806614716e+01) *
              r +
          2.506628277459239e+00) *
         q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
            6.680131188771972e+01) *
               r -
           1.328068155288572e+01) *
              r +
          1);
}

// Without the reach of single odd steps, behind which the correlation of all others would hide.
std::vector<double> clipped(const std::vector<double>& residual) {
  std::vector<double> sizes(residual.size());
  std::transform(residual.begin(), residual.end(), sizes.begin(),
                 [](double x) { return std::fabs(x); });
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double most = kOdd * *middle;
  if (most <= 0) return residual;
  std::vector<double> out(residual.size());
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) sum += out[i] = std::clamp(residual[i], -most, most);
  for (double& x : out) x -= sum / static_cast<double>(out.size());
  return out;
}

// Autocovariance at lags 0 to `most`, of deviations weighted by their steps.
std::vector<double> autocovariances(const std::vector<double>& residual, size_t most) {
  std::vector<double> out(most + 1);
  for (size_t lag = 0; lag <= most; ++lag) {
    double sum = 0;
    for (size_t i = lag; i < residual.size(); ++i) sum += residual[i] * residual[i - lag];
    out[lag] = sum / static_cast<double>(residual.size());
  }
  return out;
}

// Politis and White: from the lag on after which the correlation stays within noise, a flat-top window gives the
// spectrum at 0 and its slope, and these the length with the least error.
size_t block_length(const std::vector<double>& residual) {
  const auto n = static_cast<double>(residual.size());
  const auto least = static_cast<size_t>(std::lround(std::cbrt(n)));
  const size_t most = std::max<size_t>(1, residual.size() / kLeastBlocks);
  const auto quiet = static_cast<size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(n)))));
  const size_t lags =
      std::min(residual.size() - 1, static_cast<size_t>(std::ceil(std::sqrt(n))) + quiet);
  const auto r = autocovariances(residual, 2 * lags < residual.size() ? 2 * lags : lags);
  if (r[0] <= 0) return std::min(std::max<size_t>(least, 1), most);
  const double noise = 2 * std::sqrt(std::log10(n) / n);
  size_t settled = 0, run = 0;
  for (size_t lag = 1; lag <= lags && run < quiet; ++lag) {
    run = std::fabs(r[lag] / r[0]) < noise ? run + 1 : 0;
    if (run == 0) settled = lag;
  }
  const size_t window = std::min(2 * std::max<size_t>(settled, 1), r.size() - 1);
  double spectrum = r[0], slope = 0;
  for (size_t lag = 1; lag <= window; ++lag) {
    const double at = static_cast<double>(lag) / static_cast<double>(window);
    const double taper = at <= 0.5 ? 1 : 2 * (1 - at);
    spectrum += 2 * taper * r[lag];
    slope += 2 * taper * static_cast<double>(lag) * r[lag];
  }
  const double variance = 4.0 / 3 * spectrum * spectrum;
  const double best = variance > 0 ? std::cbrt(2 * slope * slope / variance * n) : n;
  const size_t length = best < n ? static_cast<size_t>(std::ceil(best)) : residual.size();
  return std::clamp<size_t>(std::max(length, least), 1, most);
}

// A block knows nothing of what correlates beyond it. By how much its variance is too small, were the series an
// autoregression of the first order: the estimate of its one coefficient is too low in short series, so it is raised.
double beyond_block(const std::vector<double>& residual, size_t length) {
  const auto n = static_cast<double>(residual.size()), l = static_cast<double>(length);
  const auto r = autocovariances(residual, 1);
  if (r[0] <= 0) return 1;
  const double seen = r[1] / r[0];
  const double p = std::clamp(seen + (1 + 3 * seen) / n, 0.0, kMostPersistence);
  const double in_block =
      (1 + p) / (1 - p) - 2 * p * (1 - std::pow(p, l)) / (l * (1 - p) * (1 - p));
  return (1 + p) / (1 - p) / in_block;
}

}  // namespace

double student_t(double tails, double freedom) {
  const double n = std::max(freedom, 1.0);
  constexpr double kHalfPi = std::numbers::pi / 2;
  if (n < 1.5) return std::cos(tails * kHalfPi) / std::sin(tails * kHalfPi);
  if (n < 2.5 && std::fabs(n - 2) < 1e-9) return std::sqrt(2 / (tails * (2 - tails)) - 2);
  const double a = 1 / (n - 0.5), b = 48 / (a * a);
  double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
  const double d = ((94.5 / (b + c) - 3) / b + 1) * std::sqrt(a * kHalfPi) * n;
  double x = d * tails;
  double y = std::pow(x, 2 / n);
  if (y > 0.05 + a) {
    x = normal_quantile(tails / 2);
    y = x * x;
    if (n < 5) c += 0.3 * (n - 4.5) * (x + 0.6);
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
    y = std::expm1(a * y * y);
  } else {
    y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) *
            (n + 1) / (n + 2) +
        1 / y;
  }
  return std::sqrt(n * y);
}

Mean mean_of(const WeightedSeries& series) {
  const size_t n = series.weight.size();
  double weight = 0, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    weight += series.weight[i];
    sum += series.weight[i] * series.value[i];
  }
  if (weight <= 0) return {0, kInfinite, 0};
  Mean mean{sum / weight, kInfinite, static_cast<double>(n > 0)};
  if (n < 2) return mean;
  std::vector<double> residual(n);
  for (size_t i = 0; i < n; ++i) residual[i] = series.weight[i] * (series.value[i] - mean.value);
  const std::vector<double> usual = clipped(residual);
  const size_t length = block_length(usual);
  const double blocks = static_cast<double>(n) / static_cast<double>(length);
  double block = 0, squares = 0;
  for (size_t i = 0; i < length; ++i) block += residual[i];
  for (size_t i = 0; i < n; ++i) {
    squares += block * block;
    block += residual[(i + length) % n] - residual[i];
  }
  // One block's variance, as often as a draw has blocks; of blocks around their own mean one degree is lost.
  const double variance = blocks * squares / static_cast<double>(n) * blocks / (blocks - 1) *
                          beyond_block(usual, length);
  mean.error = std::sqrt(variance) / weight;
  mean.blocks = blocks;
  return mean;
}

Interval difference(const Mean& a, const Mean& b, double level) {
  const double estimate = b.value - a.value;
  if (!std::isfinite(a.error) || !std::isfinite(b.error)) return {estimate, -kInfinite, kInfinite};
  const double va = a.error * a.error, vb = b.error * b.error;
  if (va + vb <= 0) return {estimate, estimate, estimate};
  const double freedom =  // Welch
      (va + vb) * (va + vb) /
      (va * va / std::max(a.blocks - 1, 1.0) + vb * vb / std::max(b.blocks - 1, 1.0));
  const double half = student_t(level, freedom) * std::sqrt(va + vb);
  return {estimate, estimate - half, estimate + half};
}

}  // namespace stepscope::engine
