// act(x) of one graph::Activation over VALUE, f32 or vec4<f32>: the flag that is set says which.
fn sigmoid(x: VALUE) -> VALUE {
  return 1.0 / (1.0 + exp(-x));
}

#if GELU_ERF
// 0.5 x (1 + erf(x / sqrt(2))), by way of erfc(z) = t poly(t) exp(-z^2), t = 1 / (1 + 0.44 z), which is within 5e-7 of
// it for every z >= 0 (a Chebyshev fit): for negative x nothing cancels.
fn gelu_erf(x: VALUE) -> VALUE {
  let z = abs(x) * 0.7071067811865476;
  let t = 1.0 / (1.0 + 0.44 * z);
  var poly = t * 0.07044641 - 0.2748469;
  poly = poly * t + 0.2916195;
  poly = poly * t - 0.015810046;
  poly = poly * t + 0.2136773;
  poly = poly * t + 0.21790086;
  poly = poly * t + 0.24878727;
  poly = poly * t + 0.24822576;
  let tail = 0.5 * t * poly * exp(-z * z);
  return x * select(tail, 1.0 - tail, x > VALUE(0.0));
}
#endif

fn act(x: VALUE) -> VALUE {
#if SILU
  return x / (1.0 + exp(-x));
#endif
#if GELU_TANH
  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); beyond 10 tanh is 1, and some drivers overflow in it.
  let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + tanh(clamp(inner, VALUE(-10.0), VALUE(10.0))));
#endif
#if GELU_ERF
  return gelu_erf(x);
#endif
#if GELU_QUICK
  return x * sigmoid(1.702 * x);
#endif
#if RELU
  return max(x, VALUE(0.0));
#endif
#if SIGMOID
  return sigmoid(x);
#endif
}
