"""Makes the vectors of tests/proofs.rs with libtorrent 2.1.1 (Python package `libtorrent`).

A torrent with pieces of 16 KiB has the hashes of all leaves as its piece layer, one with pieces of
1 MiB those of our pieces; the root is the same. The file's content is `content` below.
"""

import os
import sys
import tempfile

import libtorrent as lt

LENGTHS = [49152, 1048577, 3198983]


def content(length):
    state, out = 0x9E3779B9, bytearray()
    for _ in range(length):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        out.append(state >> 24)
    return bytes(out)


def layer(path, piece_len):
    storage = lt.file_storage()
    lt.add_files(storage, path)
    torrent = lt.create_torrent(storage, piece_len, lt.create_torrent.v2_only)
    lt.set_piece_hashes(torrent, os.path.dirname(path))
    made = torrent.generate()
    (entry,) = made[b"info"][b"file tree"].values()
    root = entry[b""][b"pieces root"]
    return root, made[b"piece layers"].get(root, root)


def main(folder):
    for length in LENGTHS:
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "file")
            with open(path, "wb") as file:
                file.write(content(length))
            root, leaves = layer(path, 16 * 1024)
            root_again, pieces = layer(path, 1024 * 1024)
            assert root == root_again
        for name, data in [("root", root), ("leaves", leaves), ("pieces", pieces)]:
            with open(os.path.join(folder, f"{length}.{name}"), "wb") as file:
                file.write(data)


main(sys.argv[1])
