module {
  tt.func @f(%x: i32) {
    %0 = arith.ad