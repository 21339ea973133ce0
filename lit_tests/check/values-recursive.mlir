// RUN: sh -c 'tilepass check %s > %t 2>&1; echo "status $?" >> %t'
// RUN: %filecheck %s < %t

// CHECK:      recursive.mlir:7:8: error: tt.call cannot be simulated: a recursive call of count
// CHECK-NEXT: status 2
tt.func private @count(%n: i32) -> i32 {
  %r = tt.call @count(%n) : (i32) -> i32
  tt.return %r : i32
}
tt.func public @kernel(%out: !tt.ptr<i32>, %n: i32) {
  %r = tt.call @count(%n) : (i32) -> i32
  tt.store %out, %r : !tt.ptr<i32>
  tt.return
}
