#!/usr/bin/env python3
"""Writes `by_hand.json`: kernel vectors that can be checked by hand.

Nothing here knows the engine. Functions and angles are computed by mpmath with 60 digits and rounded
once; sums and products are chosen so that every intermediate result is a float32, which the script
checks with fractions, so no order of additions can change them. Needs mpmath.
"""

import hashlib
import json
import struct
from fractions import Fraction
from pathlib import Path

import mpmath

mpmath.mp.dps = 60
VECTORS = []


def bits(x):
    """The nearest float32 of an mpmath number, fraction or float, as its bit pattern."""
    if isinstance(x, Fraction):
        exact = x
    elif isinstance(x, mpmath.mpf):
        sign, man, exp, _ = x._mpf_
        exact = Fraction((-1) ** sign * int(man)) * Fraction(2) ** exp
    else:
        return struct.unpack("<I", struct.pack("<f", x))[0]
    if exact == 0:
        return 0
    sign, size = exact < 0, abs(exact)
    exponent = -149
    while size >= Fraction(2) ** (exponent + 24):
        exponent += 1
    scaled = size / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    nearest = float(whole * Fraction(2) ** exponent) * (-1 if sign else 1)
    pattern = struct.unpack("<I", struct.pack("<f", nearest))[0]
    return pattern | (0x80000000 if sign else 0)


def value(pattern):
    return Fraction(struct.unpack("<f", struct.pack("<I", pattern))[0])


def exact(x):
    """The bits of a fraction that is a float32; fails if it is not."""
    assert value(bits(x)) == x, x
    return bits(x)


def words(patterns):
    return [f"{p:#010x}" for p in patterns]


def vector(operator, name, shape, floats, expected, ulp, source, layout="f32", **more):
    raw = b"".join(struct.pack("<I", p) for p in floats) + bytes.fromhex(more.get("blocks", ""))
    VECTORS.append(
        {
            "schema": "tinyrustlm.golden-vector.v1",
            "runtime_semantics": 1,
            "operator": operator,
            "name": name,
            "layout": layout,
            "shape": shape,
            "input": {"floats": words(floats), **more},
            "input_sha256": hashlib.sha256(raw).hexdigest(),
            "expected": {"kind": "f32_bits", "values": words(expected)},
            "alternate_tolerance": {"max_ulp": ulp},
            "provenance": {
                "oracle": "mpmath, 60 digits" if ulp or operator == "rope" else "exact fractions",
                "source": source,
                "generator": "runtime/vectors/make.py",
                "generated_utc": "2026-11-30",
            },
        }
    )


def rounded(total, in_floats):
    """One rounding; a zero has the sign that IEEE's operations give it."""
    return bits(total) if total != 0 else bits(in_floats)


def rope():
    """128 elements of alternating ones and zeros turned at the ends of Qwen3's context.

    With halves paired the two elements of a pair are equal: cos - sin and cos + sin, or zeros.
    With neighbours paired they are 1 and 0: cos and sin themselves.
    """
    for pairing in ["half", "interleaved"]:
        for base, position in [(1000000, 0), (1000000, 1), (1000000, 40959), (10000, 131071)]:
            cos, sin = [], []
            for pair in range(64):
                angle = position * mpmath.mpf(base) ** (-mpmath.mpf(2 * pair) / 128)
                cos.append(value(bits(mpmath.cos(angle))))
                sin.append(value(bits(mpmath.sin(angle))))
            floats = [bits(1.0 - at % 2) for at in range(128)]
            out = [0] * 128
            for pair in range(64):
                a, b = (pair, pair + 64) if pairing == "half" else (2 * pair, 2 * pair + 1)
                x, y = value(floats[a]), value(floats[b])
                c, s = cos[pair], sin[pair]
                out[a] = rounded(x * c - y * s, float(x) * float(c) - float(y) * float(s))
                out[b] = rounded(y * c + x * s, float(y) * float(c) + float(x) * float(s))
            vector(
                "rope",
                f"base {base}, position {position}, {pairing}",
                {"head_dim": 128},
                floats,
                out,
                0,
                "Su et al. 2021, equation 15; base and length of Qwen3-0.6B's config.json",
                base=base,
                position=position,
                pairing=pairing,
            )


def swiglu():
    """The gate's far tails: below -103 the exponential alone is no float32 any more, and what
    leaks is subnormal, negative, and not nothing."""
    gates = [-126.0, -110.0, -104.0, -103.0, -100.0, -88.0, -87.5, -30.0, -17.0, -1.0, -1e-5]
    gates += [-1e-45, 1e-45, 1e-5, 1.0, 17.0, 30.0, 88.0, 100.0, 3e38]
    gates = [bits(x) for x in gates]
    for up in [1.0, -1.0]:
        out = []
        for gate in gates:
            x = mpmath.mpf(value(gate).numerator) / value(gate).denominator
            silu = bits(x / (1 + mpmath.exp(-x)))
            out.append(silu ^ (0x80000000 if up < 0 else 0))
        floats = gates + [bits(up)] * len(gates)
        source = "Shazeer 2020, SwiGLU; silu(x) = x / (1 + e^-x)"
        shape = {"length": len(gates)}
        vector("silu_mul", f"tails, up {up}", shape, floats, out, 2, source)


HALVES = {"least subnormal": 1, "greatest subnormal": 0x03FF, "least normal": 0x0400, "one": 0x3C00}
HALVES |= {"greatest": 0x7BFF, "negative least": 0x8001, "zero": 0}


def half(pattern):
    return Fraction(struct.unpack("<e", struct.pack("<H", pattern))[0])


def tails():
    """Blocks with codes at both ends of their range, and rows that fill no group of four."""
    for blocks in range(1, 6):
        for name, scale in HALVES.items():
            rows = [1, 3, 5, 6, 7][blocks - 1]
            data, weights = b"", []
            for row in range(rows):
                for _ in range(blocks):
                    codes = [[127, -127], [1, -1], [-127, -127], [0, 127]][row % 4] * 16
                    data += struct.pack("<H", scale) + struct.pack("<32b", *codes)
                    weights.append([code * half(scale) for code in codes])
            # Signs that keep every sum small, and the last column of all apart.
            cols = 32 * blocks
            x = [Fraction(1 if at % 4 in (0, 3) else -1) for at in range(cols)]
            x[-1] = Fraction(2)
            out = []
            for row in range(rows):
                total = Fraction(0)
                for at in range(cols):
                    weight = weights[row * blocks + at // 32][at % 32]
                    total = value(exact(total + value(exact(x[at] * weight))))
                out.append(exact(total))
            vector(
                "matmul_strict",
                f"{rows} rows of {blocks} blocks, scale {name}",
                {"rows": rows, "cols": cols},
                [exact(x) for x in x],
                out,
                0,
                "ggml's block of 32 signed bytes and a float16 scale",
                layout="q8_0",
                blocks=data.hex(),
            )


if __name__ == "__main__":
    rope()
    swiglu()
    tails()
    text = ",\n".join(json.dumps(record) for record in VECTORS)
    Path(__file__).with_name("by_hand.json").write_text(f"[\n{text}\n]\n")
    print(len(VECTORS), "vectors")
