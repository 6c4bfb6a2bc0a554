// f16 scale and min a group, one word.
fn w_scale(row: u32, g: u32) -> Scale {
  let dm = unpack2x16float(aux[p.scale_start + row * p.scale_words + g]);
  return Scale(dm.xx, dm.yy);
}
