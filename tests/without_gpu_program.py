"""A program for one GPU with the habits of many: run by test_without_gpu.py where there is none.

`--check allclose` ends in an assertion about results, `--check bug` in its own error;
`--few` launches one kernel, `--few bug` and exits with 1.
"""

# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false

import sys
import threading

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)


@triton.autotune(
    [
        triton.Config({"B": size}, num_warps=warps)
        for size, warps in ((256, 2), (512, 4), (1024, 8))
    ],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["B"] == 0})
@triton.jit
def tuned(x, o, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(o + i, tl.load(x + i) * 2)
    else:
        tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def host_made(a, o, K, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, N):
        total += a.load([row + M, k])
    o.store([row, 0], total.to(tl.float16))


@triton.jit
def device_made(x, o, M, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [B, B])
    b = tl.make_tensor_descriptor(o, [M, K], [K, 1], [B, B])
    row = tl.program_id(0) * B
    b.store([row, 0], a.load([row, 0]))


@triton.jit
def occupied(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.exp(tl.load(x + i, mask=i < n)), mask=i < n)


def double(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda
    o = torch.empty_like(x)
    assert o.device == x.device == DEVICE
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, o, x.numel())
    return o


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return double(x)

    @staticmethod
    def backward(ctx, gradient):
        return double(gradient.contiguous())


def host_descriptors() -> None:
    cuda = torch.cuda.get_device_properties("cuda")
    assert cuda.multi_processor_count == PROPERTIES["multiprocessor_count"] > 100
    assert cuda.warp_size == PROPERTIES["warpSize"] == 32
    a = torch.randn((256, 128), device="cuda", dtype=torch.float16)
    o = torch.empty((256, 64), device=a.device, dtype=a.dtype)
    blocks = [TensorDescriptor.from_tensor(each, [64, 64]) for each in (a, o)]
    host_made[(3,)](*blocks, a.shape[1], 64, 64, num_warps=8)


def device_descriptors() -> None:
    a = torch.randn((256, 128), device="cuda", dtype=torch.float16)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda"))
    device_made[(4,)](a, torch.empty_like(a), *a.shape, 64)


def occupancy() -> int:
    """Programs of an SM, by the registers of the compiled kernel."""
    x = torch.zeros(128, device="cuda")
    kernel = occupied.warmup(x, x.numel(), B=128, num_warps=4, grid=(1,))
    kernel._init_handles()
    return PROPERTIES["max_num_regs"] // (kernel.n_regs * 32 * 4)


def times(x: torch.Tensor) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(torch.cuda.Stream()):
        start.record()
        double(x)
        end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double(x)
    graph.replay()
    assert str(triton.testing.do_bench(lambda: double(x))) == "nan"
    assert len(triton.testing.do_bench(lambda: double(x), quantiles=[0.5, 0.2, 0.8])) == 3


def places() -> None:
    """Where tensors say that they are."""
    on_cpu = torch.arange(4)
    assert on_cpu.device.type == "cpu"
    assert not on_cpu.is_cuda
    assert on_cpu.cuda().is_cuda
    assert on_cpu.to("cuda:0").get_device() == 0
    assert on_cpu.cuda().cpu().device.type == on_cpu.cuda().to("cpu").device.type == "cpu"
    assert (on_cpu.cuda() + 1).is_cuda
    assert on_cpu.cuda().data_ptr() != on_cpu.data_ptr()
    assert on_cpu.pin_memory().cuda(non_blocking=True).tolist() == [0, 1, 2, 3]
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda
    torch.set_default_device("cuda")
    assert torch.ones(2).is_cuda
    assert torch.get_default_device().type == "cuda"
    torch.set_default_device("cpu")
    layer = torch.nn.Linear(2, 2).to("cuda")
    layer(torch.ones(1, 2, device="cuda")).sum().backward()
    assert layer.weight.is_cuda
    assert layer.weight.grad.is_cuda
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="cuda").is_cuda))
    thread.start()
    thread.join()
    assert seen == [True]
    # More than is computed here: the product is not known, nor its gradient.
    large = torch.randn(4096, 4096, device="cuda", requires_grad=True)
    (large @ large).sum().backward()
    assert large.grad.isnan().all()
    generator = torch.Generator(device="cuda").manual_seed(0)
    assert torch.rand(2, device="cuda", generator=generator).is_cuda


def main() -> None:
    if sys.argv[1] == "--few":
        host_descriptors()
        sys.exit(sys.argv[2:] == ["bug"])
    x = torch.rand(98432, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    host_descriptors()
    device_descriptors()
    print("programs of an SM:", occupancy())
    times(x)
    places()
    print("all launched")
    torch.testing.assert_close(double(x), x * 2)
    assert torch.allclose(double(x), x * 2), "goes on"
    double(torch.rand(1024, device="cuda"))
    if sys.argv[1:] == ["--check", "bug"]:
        raise ValueError("no such option")
    if sys.argv[1:] == ["--check", "allclose"]:
        assert bool(double(x).isnan().all()), "the results differ"
        print("not reached")


if __name__ == "__main__":
    main()
