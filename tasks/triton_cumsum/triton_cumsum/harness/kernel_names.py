"""The names of Triton's language that a kernel may use in the ``cpu`` profile.

Left out on purpose: everything that reaches outside the language (inline assembly, external libraries, printing,
mapping Python functions) and everything that shows the interpreter's insides (``handle``, ``data``, ``type``).
"""

from __future__ import annotations

BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range"})

_TYPES = "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 constexpr dtype"
_MATH = "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
_LANGUAGE = """
add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min
atomic_or atomic_xchg atomic_xor bitonic_merge broadcast broadcast_to cast cat cdiv clamp cumprod cumsum debug_barrier
device_assert dot expand_dims flip full gather histogram interleave join load load_tensor_descriptor make_block_ptr
make_tensor_descriptor max max_constancy max_contiguous maximum min minimum mul multiple_of num_programs permute
pointer_type program_id range ravel reduce reduce_or reshape sigmoid softmax sort split squeeze static_assert
static_range store store_tensor_descriptor sub sum swizzle2d topk trans unsqueeze view where xor_sum zeros zeros_like
"""

MODULES: dict[str, frozenset[str]] = {
    "triton": frozenset({"cdiv", "next_power_of_2"}),
    "triton.language": frozenset((_TYPES + " " + _MATH + _LANGUAGE).split()),
    "triton.language.math": frozenset(_MATH.split()),
}
SUBMODULES = {("triton", "language"): "triton.language", ("triton.language", "math"): "triton.language.math"}

_OF_TENSORS = """
T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype exp exp2 expand_dims flip floor gather
histogram load log log2 max min numel permute ravel reduce reshape rsqrt shape sin sort split sqrt store sum to trans
view xor_sum
"""
_OF_TYPES = "element_ty int_bitwidth is_floating is_int is_int_signed is_int_unsigned is_ptr primitive_bitwidth"

ATTRIBUTES = frozenset((_OF_TENSORS + " " + _OF_TYPES + " value").split())
