// The part of main() that tiled kernels share: this thread stages row w_row of W and, with the others, the rows
// x_row(x_first, 0 … X_TILE - 1) of x; sumI_J becomes row tm + 8 I of the tile's x against row tn + 8 J of its W.
#unroll i X_PER
#unroll j 8
  var sum{i}_{j} = 0.0;
#end
#end
  for (var g = 0u; g < p.groups; g++) {
    workgroupBarrier();
    let w = w_load(w_row, g);
    let scale = w_scale(w_row, g);
#if INT8
    w_tile[thread * 2u] = w.a;
    w_tile[thread * 2u + 1u] = w.b;
    w_scales[thread] = vec4<f32>(scale.s, scale.m);
    for (var i = thread; i < X_TILE * 2u; i += 64u) {
      x_tile[i] = xq[(x_row(x_first, i / 2u) * p.groups + g) * 2u + i % 2u];
    }
    if (thread < X_TILE) {
      x_scale[thread] = xs[x_row(x_first, thread) * p.groups + g];
    }
#else
    let low = w_low(w);
    let high = w_high(w);
#unroll c 4
    put_w(thread, {c}u, low[{c}], scale.s.x, scale.m.x);
#end
#unroll c 4
    put_w(thread, {c}u + 4u, high[{c}], scale.s.y, scale.m.y);
#end
    for (var i = thread; i < X_TILE * 8u; i += 64u) {
      let row = i / 8u;
      let c = i % 8u;
      x_tile[row * 8u + (c ^ (row & 7u))] = x_vec4(x_row(x_first, row), g * 8u + c);
    }
#endif
    workgroupBarrier();
#if INT8
#unroll j 8
    let wa{j} = w_tile[(tn + {j}u * 8u) * 2u];
    let wb{j} = w_tile[(tn + {j}u * 8u) * 2u + 1u];
    let ws{j} = w_scales[tn + {j}u * 8u];
#end
#unroll i X_PER
    {
      let xa = x_tile[(tm + {i}u * 8u) * 2u];
      let xb = x_tile[(tm + {i}u * 8u) * 2u + 1u];
      let xsc = x_scale[tm + {i}u * 8u];
#if HALF_MINS
      let first16 = xsc.x * f32(sum_int8(xa));
#endif
#unroll j 8
      {
        let a = dot4I8Packed(wa{j}.x, xa.x) + dot4I8Packed(wa{j}.y, xa.y) + dot4I8Packed(wa{j}.z, xa.z) + dot4I8Packed(wa{j}.w, xa.w);
        let b = dot4I8Packed(wb{j}.x, xb.x) + dot4I8Packed(wb{j}.y, xb.y) + dot4I8Packed(wb{j}.z, xb.z) + dot4I8Packed(wb{j}.w, xb.w);
#if HALVES
        sum{i}_{j} += xsc.x * (ws{j}.x * f32(a) + ws{j}.y * f32(b));
#if HALF_MINS
        sum{i}_{j} += ws{j}.z * first16 + ws{j}.w * (xsc.y - first16);
#endif
#else
#if MIN
        sum{i}_{j} += xsc.x * ws{j}.x * f32(a + b) + ws{j}.z * xsc.y;
#else
        sum{i}_{j} += xsc.x * ws{j}.x * f32(a + b);
#endif
#endif
      }
#end
    }
#end
#else
    for (var c = 0u; c < 8u; c++) {
#unroll i X_PER
      let x{i} = x_tile[(tm + {i}u * 8u) * 8u + (c ^ tm)];
#end
#unroll j 8
      {
        let wv = w_tile[(tn + {j}u * 8u) * 8u + (c ^ tn)];
#unroll i X_PER
        sum{i}_{j} += dot(x{i}, wv);
#end
      }
#end
    }
#endif
  }
