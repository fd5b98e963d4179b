"""CRC-32C (Castagnoli), the checksum of TensorFlow checkpoints, over numpy arrays.

The register after some bytes is linear in them over GF(2). Therefore a long array is cut into rows, all rows advance
together by one 32-bit word at a time, and neighbouring rows are joined: the register of "left right" is the register of
"left" after as many zero bytes as "right" has, xor the register of "right". Zero bytes in front change nothing if the
register starts at 0. This reads 300 MB a second on one core; a Python loop over the bytes reads 8.
"""

from __future__ import annotations

import functools

import numpy as np

ROWS = 2048
PIECE = 4 * 2**20
BITS = np.arange(32, dtype=np.uint32)


def crc32c(data: np.ndarray) -> int:
    """Return the CRC-32C of an array of bytes."""
    table = _byte_table().tolist()
    register = 0xFFFFFFFF
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        if len(piece) < ROWS:
            for byte in piece.tolist():
                register = table[(register ^ byte) & 0xFF] ^ register >> 8
        else:
            register = int(_move(np.array([register], np.uint32), len(piece))[0]) ^ _register(piece)
    return register ^ 0xFFFFFFFF


def _register(piece: np.ndarray) -> int:
    """Return the register after a long piece, started at 0."""
    low, high = _word_tables()
    length = 4 * -(-len(piece) // (4 * ROWS))  # bytes of a row, a multiple of four
    padded = np.zeros(ROWS * length, np.uint8)
    padded[len(padded) - len(piece) :] = piece
    registers = np.zeros(ROWS, np.uint32)
    for column in padded.view("<u4").reshape(ROWS, -1).T:
        registers = registers ^ column
        registers = low[registers & 0xFFFF] ^ high[registers >> 16]
    while len(registers) > 1:
        registers = _move(registers[0::2], length) ^ registers[1::2]
        length *= 2
    return int(registers[0])


@functools.cache
def _byte_table() -> np.ndarray:
    """Return the register after each byte, started at 0."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78), table >> 1)
    return table


@functools.cache
def _word_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the register after a 32-bit word, started at 0, for its lower 16 bits and for its upper ones."""
    halves = np.arange(2**16, dtype=np.uint32)
    return _move(halves, 4), _move(halves << np.uint32(16), 4)


def _move(registers: np.ndarray, count: int) -> np.ndarray:
    """Return the registers after `count` more zero bytes."""
    bits = np.uint32(1) << BITS
    move = _byte_table()[bits & 0xFF] ^ bits >> 8  # the effect of one zero byte on each bit of a register
    while count:
        if count & 1:
            registers = _apply(move, registers)
        move = _apply(move, move)
        count >>= 1
    return registers


def _apply(move: np.ndarray, registers: np.ndarray) -> np.ndarray:
    moved: np.ndarray = np.bitwise_xor.reduce(np.where(registers[:, None] >> BITS & 1, move, np.uint32(0)), axis=1)
    return moved


def masked(crc: int) -> int:
    """Return a checksum as LevelDB stores it, so that data which contain checksums still have useful ones."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
