// RUN: tilepass-opt %s --mlir-print-debuginfo > %t.before
// RUN: tilepass-opt %s --mlir-print-debuginfo -p test-round-trip > %t.after
// RUN: diff %t.before %t.after
// RUN: %filecheck %s --input-file %t.after

// Every kind of location makes the trip, that of a block argument too.
// CHECK-DAG: loc("k.py":1:2)
// CHECK-DAG: loc("named"(#{{.+}}))
// CHECK-DAG: loc(callsite(#{{.+}} at #{{.+}}))
// CHECK-DAG: loc(fused[#{{.+}}, #{{.+}}])
// CHECK-DAG: loc(unknown)
// CHECK-DAG: loc("{{.*}}locations.mlir":16:11)
#file = loc("k.py":1:2)
tt.func @f(%x: i32 loc("argument"("k.py":9:9))) -> i32 {
  %named = arith.addi %x, %x : i32 loc("named"("k.py":1:2))
  %here = arith.addi %named, %x : i32
  %call = arith.addi %here, %x : i32 loc(callsite("lib.py":3:4 at #file))
  %fused = arith.addi %call, %x : i32 loc(fused["k.py":5:6, "k.py":7:8])
  %unknown = arith.addi %fused, %x : i32 loc(unknown)
  tt.return %unknown : i32
}
