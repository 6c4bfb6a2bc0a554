// The part of main() that matrix-vector kernels share: sums of rows row0, row1, … of W against X_ROWS rows of x from row
// x_first, each team's partial sums left in `partial`.
#unroll r ROWS
#unroll c X_ROWS
  var sum{r}_{c} = 0.0;
#end
#end
  for (var g = lane; g < p.groups; g += TEAM) {
#unroll c X_ROWS
#if INT8
    let xa{c} = xq[((x_first + {c}u) * p.groups + g) * 2u];
    let xb{c} = xq[((x_first + {c}u) * p.groups + g) * 2u + 1u];
    let xscale{c} = xs[(x_first + {c}u) * p.groups + g];
#if HALF_MINS
    let first{c} = xscale{c}.x * f32(sum_int8(xa{c}));
#endif
#else
#unroll i 8
    let x{c}_{i} = x_vec4(x_first + {c}u, g * 8u + {i}u);
#end
#if HALF_MINS
    let xa{c} = dot((x{c}_0 + x{c}_1) + (x{c}_2 + x{c}_3), vec4<f32>(1.0));
    let xb{c} = dot((x{c}_4 + x{c}_5) + (x{c}_6 + x{c}_7), vec4<f32>(1.0));
#endif
#if MIN
    let xsum{c} = dot(((x{c}_0 + x{c}_1) + (x{c}_2 + x{c}_3)) + ((x{c}_4 + x{c}_5) + (x{c}_6 + x{c}_7)), vec4<f32>(1.0));
#endif
#endif
#end
#unroll r ROWS
    {
      let w = w_load(row{r}, g);
      let scale = w_scale(row{r}, g);
#if INT8
#unroll c X_ROWS
#if HALVES
      let low{c} = dot4I8Packed(w.a.x, xa{c}.x) + dot4I8Packed(w.a.y, xa{c}.y) + dot4I8Packed(w.a.z, xa{c}.z) + dot4I8Packed(w.a.w, xa{c}.w);
      let high{c} = dot4I8Packed(w.b.x, xb{c}.x) + dot4I8Packed(w.b.y, xb{c}.y) + dot4I8Packed(w.b.z, xb{c}.z) + dot4I8Packed(w.b.w, xb{c}.w);
      sum{r}_{c} += xscale{c}.x * (scale.s.x * f32(low{c}) + scale.s.y * f32(high{c}));
#if HALF_MINS
      sum{r}_{c} += scale.m.x * first{c} + scale.m.y * (xscale{c}.y - first{c});
#endif
#else
      let all{c} = dot4I8Packed(w.a.x, xa{c}.x) + dot4I8Packed(w.a.y, xa{c}.y) + dot4I8Packed(w.a.z, xa{c}.z) + dot4I8Packed(w.a.w, xa{c}.w)
          + dot4I8Packed(w.b.x, xb{c}.x) + dot4I8Packed(w.b.y, xb{c}.y) + dot4I8Packed(w.b.z, xb{c}.z) + dot4I8Packed(w.b.w, xb{c}.w);
#if MIN
      sum{r}_{c} += xscale{c}.x * scale.s.x * f32(all{c}) + scale.m.x * xscale{c}.y;
#else
      sum{r}_{c} += xscale{c}.x * scale.s.x * f32(all{c});
#endif
#endif
#end
#else
      let low = w_low(w);
      let high = w_high(w);
#unroll c X_ROWS
      let a{c} = (dot(low[0], x{c}_0) + dot(low[1], x{c}_1)) + (dot(low[2], x{c}_2) + dot(low[3], x{c}_3));
      let b{c} = (dot(high[0], x{c}_4) + dot(high[1], x{c}_5)) + (dot(high[2], x{c}_6) + dot(high[3], x{c}_7));
#if MIN
      sum{r}_{c} += scale.s.x * (a{c} + b{c}) + scale.m.x * xsum{c};
#else
      sum{r}_{c} += scale.s.x * a{c} + scale.s.y * b{c};
#if HALF_MINS
      sum{r}_{c} += scale.m.x * xa{c} + scale.m.y * xb{c};
#endif
#endif
#end
#endif
    }
#end
  }
#unroll r ROWS
#unroll c X_ROWS
  {
    let result = (team * kResults + {r}u * X_ROWS + {c}u) * kPartials;
#if SUBGROUPS
    let part = quad_sum(sum{r}_{c});
    if (lane % 4u == 0u) {
      partial[result + lane / 4u] = part;
    }
#else
    partial[result + lane] = sum{r}_{c};
#endif
  }
#end
#end
  workgroupBarrier();
